"""What moving tasks between two live processes is worth: full speed before and after the first move, in one run.

Usage: python -m lab.benchmarks.studies.uneven [--times N]

The spout notes when messages were acked. Tasks can move at the third checkpoint, after 15 s. Where all tasks are even,
there is nothing to move. `Work` takes its time from the processor, and `Wait` sleeps, as for a service.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np

from lab.benchmarks.studies.minute import notes_of
from lab.benchmarks.workloads.feed import Control, Numbers
from lab.benchmarks.workloads.topologies import Work
from storm_on_spark import BaseBasicBolt, Config, CustomStreamGrouping, Fields, TopologyBuilder, compile_topology
from storm_on_spark.runtime.live.execution.rounds import ROUNDS
from storm_on_spark.spark.session import local_session, stop_session

_START_SECS: Final = 120.0
_BEFORE: Final = 3.0, 13.0
_AFTER: Final = 25.0, 45.0
"""Seconds from the first ack on."""


_WITH_MOVES: Final = 5
"""Parts of a round on the disk if tasks had moved."""


class Ratio(NamedTuple):
    """Messages a second, and whether tasks had moved between."""

    before: float
    after: float
    moved: bool


class _Notes:
    """Acks on their way to a file; no state."""

    def __init__(self, path: str) -> None:
        self._file = Path(path).open("ab", buffering=1 << 12)  # noqa: SIM115 # as long as the process

    def __reduce__(self) -> str:
        raise TypeError("created by open")

    def acked(self) -> None:
        self._file.write(np.float64(time.time()).tobytes())


class Noted(Numbers):
    """Numbers whose acks are noted in a file."""

    def open(self, conf: Mapping[str, Any], context: Any, collector: Any) -> None:
        super().open(conf, context, collector)
        self.notes = _Notes(notes_of(self.source))

    def ack(self, msg_id: Any) -> None:
        self.notes.acked()


class Wait(BaseBasicBolt):
    """Waits for some time with each tuple, as for a service.

    Args:
        micros: microseconds.
    """

    def __init__(self, micros: int) -> None:
        self.secs = micros / 1e6

    def execute(self, tup: Any, collector: Any) -> None:
        time.sleep(self.secs)


class Skewed(CustomStreamGrouping):
    """Sends nine of ten numbers to every other task: to those that begin in the first of two processes."""

    def prepare(self, context: Any, stream: Any, target_tasks: Sequence[int]) -> None:
        self.targets = target_tasks

    def choose_tasks(self, task_id: int, values: Sequence[Any]) -> list[int]:
        at = values[0] // 10 % len(self.targets)
        return [self.targets[at - at % 2 if values[0] % 10 else at - at % 2 + 1]]


def _even(builder: TopologyBuilder, bolt: type[Work | Wait]) -> None:
    builder.set_bolt("work", bolt(200), 8).fields_grouping("feed", Fields("value"))


def _skewed(builder: TopologyBuilder, bolt: type[Work | Wait]) -> None:
    builder.set_bolt("work", bolt(200), 8).custom_grouping("feed", Skewed())


def _one_is_long(builder: TopologyBuilder, bolt: type[Work | Wait]) -> None:
    builder.set_bolt("long", bolt(200)).fields_grouping("feed", Fields("value"))
    builder.set_bolt("short", bolt(50), 4).all_grouping("feed")


_CASES: Final = {
    "even: 8 tasks of 200 µs": _even,
    "9 of 10 tuples for half of 8 tasks of 200 µs": _skewed,
    "each tuple for 1 task of 200 µs and 4 of 50 µs": _one_is_long,
}


def measured(spark: Any, build: Callable[[TopologyBuilder, type[Work | Wait]], None], bolt: type[Work | Wait]) -> Ratio:
    """Runs a topology, and compares its speed before and after the first move."""
    with tempfile.TemporaryDirectory(prefix="uneven-") as name:
        folder = Path(name)
        source, control = folder / "unused.txt", Control(folder / "control.json")
        source.write_text("a sentence\n")
        control.set(None)
        builder = TopologyBuilder()
        builder.set_spout("feed", Noted(str(control.path), str(source)))
        build(builder, bolt)
        conf = {
            Config.TOPOLOGY_PROFILE: "realtime",
            Config.TOPOLOGY_WORKERS: 2,
            Config.TOPOLOGY_ACKER_EXECUTORS: 1,
            Config.TOPOLOGY_MAX_SPOUT_PENDING: 2000,  # rounds of a second
        }
        topology = compile_topology(builder.create_topology(), conf)
        query = topology.start(spark, name="uneven", checkpoint=folder / "checkpoint")
        try:
            if not query.wait_until(lambda: query.status_info().acked > 0, _START_SECS):
                raise TimeoutError(f"nothing was acked for {_START_SECS:.0f} s")
            time.sleep(_AFTER[1])
            files = [file.read_text() for file in folder.glob(f"checkpoint/**/{ROUNDS}/*")]
        finally:
            query.stop()
        at = np.fromfile(notes_of(str(source)))
    at -= at[0]
    before, after = (((begin <= at) & (at < end)).sum() / (end - begin) for begin, end in (_BEFORE, _AFTER))
    moved = any(len(line) == _WITH_MOVES for text in files for line in map(json.loads, text.splitlines()))
    return Ratio(before, after, moved)


def main() -> None:
    """Measures all cases in turn."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--times", type=int, default=3)
    times = parser.parse_args().times
    spark = local_session(None)
    found: dict[tuple[str, str], list[Ratio]] = {}
    try:
        for _ in range(times):
            for bolt in (Wait, Work):
                for case, build in _CASES.items():
                    ratio = measured(spark, build, bolt)
                    print(f"{case}, {bolt.__name__}: {ratio}", file=sys.stderr, flush=True)
                    found.setdefault((case, bolt.__name__), []).append(ratio)
    finally:
        stop_session(spark)
    for (case, name), ratios in found.items():
        each = [one.after / one.before for one in ratios]
        print(f"{case} | {name} | {statistics.median(each):.2f} ({min(each):.2f} to {max(each):.2f})")


if __name__ == "__main__":
    main()
