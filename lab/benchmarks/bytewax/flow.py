"""The word count as a dataflow of bytewax: `python -m bytewax.run flow:flow` in this folder.

The environment says what it reads and writes: `BENCH_CONTROL`, as `lab.benchmarks.workloads.feed.Control` writes it;
`BENCH_SOURCE`, the sentences; `BENCH_RESULTS`, a folder in which each worker appends what it has done so far, a line of
JSON at a time: monotonic seconds, sentences, milliseconds by logarithm. It knows nothing of this project.
"""

from __future__ import annotations

import json
import math
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import bytewax.operators as op
from bytewax.dataflow import Dataflow
from bytewax.inputs import FixedPartitionedSource, StatefulSourcePartition
from bytewax.outputs import DynamicSink, StatelessSinkPartition

_BURST = 1000
"""Sentences at a time, at full speed."""
_LOOK_SECS = 0.05
_TELL_SECS = 0.1


class _Sentences(StatefulSourcePartition):  # type: ignore[misc] # the types of bytewax aren't in this environment
    def __init__(self, number: int) -> None:
        self._texts = Path(os.environ["BENCH_SOURCE"]).read_text("utf-8").splitlines()
        self._control = Path(os.environ["BENCH_CONTROL"])
        self._number = number
        self._looks_at, self._seen = 0.0, 0
        self._rate: float | None = 0.0
        self._since, self._granted = 0.0, 0

    def next_batch(self) -> list[tuple[str, float]]:
        now = time.monotonic()
        if now >= self._looks_at:
            self._looks_at = now + _LOOK_SECS
            self._look(now)
        count = _BURST if self._rate is None else int((now - self._since) * self._rate) - self._granted
        first, texts = self._number, self._texts
        self._number += count
        self._granted += count
        return [(texts[number % len(texts)], now) for number in range(first, first + count)]

    def _look(self, now: float) -> None:
        changed = self._control.stat().st_mtime_ns
        if changed != self._seen:
            self._seen, self._rate = changed, json.loads(self._control.read_text())["rate"]
            self._since, self._granted = now, 0

    def snapshot(self) -> int:
        return self._number


class _Source(FixedPartitionedSource):  # type: ignore[misc]
    def list_parts(self) -> list[str]:
        return ["feed"]

    def build_part(self, step_id: str, for_part: str, resume_state: int | None) -> _Sentences:
        if resume_state:
            Path(os.environ["BENCH_RESULTS"], "resumed").write_text(str(resume_state))
        return _Sentences(resume_state or 0)


class _Results(StatelessSinkPartition):  # type: ignore[misc]
    def __init__(self, worker: int) -> None:
        self._file = Path(os.environ["BENCH_RESULTS"], f"{worker}.{os.getpid()}.jsonl").open("w")  # noqa: SIM115
        self._done = 0
        self._latencies: dict[int, int] = {}
        self._tells_at = 0.0

    def write_batch(self, items: list[tuple[str, tuple[int, float]]]) -> None:
        now = time.monotonic()
        for _, (_, made) in items:
            if made:
                self._done += 1
                place = round(32 * math.log2(max(1e-3, 1000 * (now - made))))
                self._latencies[place] = self._latencies.get(place, 0) + 1
        if now >= self._tells_at:
            self._tells_at = now + _TELL_SECS
            self._file.write(json.dumps([now, self._done, self._latencies]) + "\n")
            self._file.flush()


class _Sink(DynamicSink):  # type: ignore[misc]
    def build(self, step_id: str, worker_index: int, worker_count: int) -> _Results:
        return _Results(worker_index)


def _split(item: tuple[str, float]) -> Iterator[tuple[str, float]]:
    """Yields words; the last one of a sentence has the time at which that was made."""
    *words, last = item[0].split()
    for word in words:
        yield word, 0.0
    yield last, item[1]


def _count(counted: int | None, made: float) -> tuple[int, tuple[int, float]]:
    count = (counted or 0) + 1
    return count, (count, made)


def _flow() -> Dataflow:
    made = Dataflow("word_count")
    sentences = op.input("feed", made, _Source())
    words: Any = op.flat_map("split", sentences, _split)
    op.output("results", op.stateful_map("count", words, _count), _Sink())
    return made


flow = _flow()
