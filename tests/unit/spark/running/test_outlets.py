"""What a topology's configuration asks for is opened with it, gets what it counts and samples, and ends with it."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, cast

import pytest
from otlp_receiver import Receiver, attributes, points
from waiting import eventually

from storm_on_spark.api.errors import ConfigError
from storm_on_spark.api.info import ComponentWindow, TaskCounts, TopologyInfo, WindowInfo
from storm_on_spark.api.metrics import EventInfo, IEventLogger
from storm_on_spark.runtime.batches.metrics.recorder import Recorder
from storm_on_spark.runtime.processes.diagnostics import otlp
from storm_on_spark.runtime.samples.book import SampleBook
from storm_on_spark.runtime.samples.events import TupleEvent, encoded
from storm_on_spark.spark.running.outlets import Outlets
from storm_on_spark.spark.running.topology import TopologyQuery

got: list[object] = []
EXECUTED = "storm_component_executed_tuples"


class Noting(IEventLogger):
    """Notes what it gets in `got`."""

    def prepare(self, conf: Any, arguments: Any) -> None:
        got.append((conf["topology.name"], dict(arguments)))

    def log(self, event: EventInfo) -> None:
        got.append(event.values)

    def close(self) -> None:
        got.append("closed")


class Running:
    """What outlets see of a topology that runs."""

    def __init__(self, folder: Path) -> None:
        self.samples = SampleBook(folder)
        self.executed = 0
        self._end = contextlib.ExitStack()

    def at_end(self, action: Callable[[], None]) -> None:
        self._end.callback(action)

    def status_info(self, windows: Iterable[str] = ()) -> TopologyInfo:
        self.executed += 1
        counted = ComponentWindow(executed=self.executed, tasks={3: TaskCounts()})
        return TopologyInfo(
            "words", "ACTIVE", 1.0, windows={name: WindowInfo(name, 9.0, {"split": counted}, None) for name in windows}
        )

    def end(self) -> None:
        self._end.close()


def test_metrics_are_pushed_and_samples_are_logged_until_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    # However slow the machine is, a push arrives.
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "1000")
    monkeypatch.setattr(otlp, "_END_SECS", 1000.0)
    monkeypatch.setattr("collections.Noting", Noting, raising=False)
    got.clear()
    receiver = Receiver()
    outlets = Outlets(
        {
            "topology.name": "words",
            "topology.metrics.otlp.endpoint": receiver.url,
            "topology.builtin.metrics.bucket.size.secs": 1,
            "topology.event.logger.register": [{"class": "collections.Noting", "arguments": {"to": "here"}}],
        }
    )
    running = Running(tmp_path)
    running.samples.set("", 100)
    outlets.open(cast(TopologyQuery, running), "words", Recorder(), 6700)
    try:
        eventually(lambda: len(receiver.got) >= 2, "pushes")
        whole = tmp_path / "whole"
        whole.write_bytes(encoded([TupleEvent(1.0, "emit", "split", 3, values="('a',)")]))
        whole.rename(tmp_path / "samples" / "p-0")
        eventually(lambda: "('a',)" in got, "a sample")
    finally:
        running.end()
        receiver.close()
    assert got == [("words", {"to": "here"}), "('a',)", "closed"]
    (point,) = points(receiver.metrics()[EXECUTED])
    assert attributes(point) == {"topology": "words", "component": "split"}
    # The last push has what was counted at the end, and is the last.
    assert point.as_double == len(receiver.got) == running.executed


@pytest.mark.parametrize(
    "conf",
    [
        {"topology.metrics.otlp.endpoint": "localhost:4318"},
        {"topology.event.logger.register": [{"class": "org.example.Unknown"}]},
    ],
)
def test_what_can_not_be_opened_is_refused_before_the_topology_runs(conf: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match=next(iter(conf))):
        Outlets(conf)
