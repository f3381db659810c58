from __future__ import annotations

import json
import logging
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from storm_on_spark import BaseRichBolt, BaseRichSpout, TopologyBuilder
from storm_on_spark.api.metrics import EventInfo, IEventLogger
from storm_on_spark.api.topology import Topology
from storm_on_spark.runtime.processes.diagnostics.log_levels import VARIABLE
from storm_on_spark.runtime.samples.book import FILE_BYTES, SampleBook
from storm_on_spark.runtime.samples.events import TupleEvent, decoded, encoded
from storm_on_spark.runtime.samples.loggers import EventLoggers
from storm_on_spark.runtime.samples.sampler import MOST_A_FLUSH, MOST_FILES, Sampler, is_chosen
from storm_on_spark.runtime.samples.switch import RATES, read_switch, write_rates
from storm_on_spark.runtime.samples.trees import tree_of
from storm_on_spark.testing.simulated import SimulatedSpark


class Lines(BaseRichSpout):
    def declare_output_fields(self, declarer: Any) -> None:
        declarer.declare(["line", "password"])

    def open(self, conf: Any, context: Any, collector: Any) -> None:
        self.collector, self.left = collector, ["to be", "or not", "bad one"]

    def next_tuple(self) -> None:
        if self.left:
            line = self.left.pop(0)
            self.collector.emit([line, "hush"], message_id=f"m-{line}")

    def exhausted(self) -> bool:
        return not self.left


class Split(BaseRichBolt):
    def declare_output_fields(self, declarer: Any) -> None:
        declarer.declare(["word"])

    def prepare(self, conf: Any, context: Any, collector: Any) -> None:
        self.collector = collector

    def execute(self, tup: Any) -> None:
        for word in tup["line"].split():
            self.collector.emit([word], anchors=[tup])
        self.collector.ack(tup)


class Count(BaseRichBolt):
    def prepare(self, conf: Any, context: Any, collector: Any) -> None:
        self.collector, self.seen = collector, 0

    def execute(self, tup: Any) -> None:
        if tup["word"] == "bad":
            raise ValueError("a poison word")
        self.seen += 1
        self.collector.ack(tup)


def words() -> Topology:
    builder = TopologyBuilder()
    builder.set_spout("lines", Lines())
    builder.set_bolt("split", Split()).shuffle_grouping("lines")
    builder.set_bolt("count", Count()).fields_grouping("split", ["word"])
    return builder.create_topology()


def sampled(folder: Path, rates: dict[str, float], seed: int = 0) -> list[TupleEvent]:
    """Returns the samples of a whole run of `words` without Spark."""
    with SimulatedSpark.of(words(), folder, seed=seed) as spark:
        spark.coordinator.samples.set_all(rates)
        spark.run_to_end()
        for worker in (*spark.workers, *(loop.task for host in spark.hosts for loop in host.loops.values())):
            worker.sampler.flush()
        return spark.coordinator.samples.gather()


def test_the_way_of_each_message_is_whole_and_ends_as_the_spout_heard(tmp_path: Path) -> None:
    events = sampled(tmp_path, {"*": 100.0})
    ends = {event.message_id: event for event in events if event.kind == "end"}
    assert {name: end.outcome for name, end in ends.items()} == {
        "'m-to be'": "acked",
        "'m-or not'": "acked",
        "'m-bad one'": "failed",
    }
    tree = tree_of(events, ends["'m-to be'"].roots[0])
    assert tree is not None
    assert (tree.spout, tree.outcome, tree.message_id) == ("lines", "acked", "'m-to be'")
    seen = [
        (step.depth, step.emit and step.emit.component, step.execute and step.execute.component) for step in tree.steps
    ]
    assert seen == [(0, "lines", "split"), (1, "split", "count"), (1, "split", "count")]
    assert all(step.waited is not None and step.waited >= 0 for step in tree.steps)
    assert [step.execute.values for step in tree.steps if step.execute] == ["('to be', *****)", "('to',)", "('be',)"]
    poison = tree_of(events, ends["'m-bad one'"].roots[0])
    assert poison is not None
    raised = [step.execute for step in poison.steps if step.execute and step.execute.outcome == "raised"]
    assert [(event.component, event.values) for event in raised] == [("count", "('bad',)")]
    assert all("hush" not in event.values for event in events)


def test_an_event_logger_gets_what_a_whole_run_emitted(tmp_path: Path) -> None:
    class Collecting(IEventLogger):
        def log(self, event: EventInfo) -> None:
            got.append((event.component, event.stream, event.values, event.message_id))

    got: list[tuple[str, str, str, str]] = []
    with SimulatedSpark.of(words(), tmp_path, seed=1) as spark:
        loggers = EventLoggers([Collecting()], spark.coordinator.samples, 3600)
        loggers.start()
        spark.coordinator.samples.set("split", 100)
        spark.coordinator.samples.set("lines", 100)
        spark.run_to_end()
        for worker in (*spark.workers, *(loop.task for host in spark.hosts for loop in host.loops.values())):
            worker.sampler.flush()
        loggers.close()
    lines = {message_id for component, _, _, message_id in got if component == "lines"}
    assert lines == {"'m-to be'", "'m-or not'", "'m-bad one'"}
    split = {(stream, values) for component, stream, values, _ in got if component == "split"}
    assert split == {("default", f"('{word}',)") for word in ("to", "be", "or", "not", "bad", "one")}
    assert {component for component, *_ in got} == {"lines", "split"}
    assert "hush" not in str(got)


def test_nothing_is_sampled_and_nothing_is_written_while_it_is_off(tmp_path: Path) -> None:
    assert sampled(tmp_path, {}) == []
    assert not (tmp_path / "samples").exists() or list((tmp_path / "samples").iterdir()) == []


def test_only_the_wanted_component_is_sampled_and_poison_always_is(tmp_path: Path) -> None:
    events = sampled(tmp_path, {"count": 0.0001})
    assert {(event.component, event.outcome, event.values) for event in events} == {("count", "raised", "('bad',)")}


def test_switching_on_and_off_reaches_a_sampler_that_runs(tmp_path: Path) -> None:
    sampler = Sampler(lambda: tmp_path)
    assert not sampler.is_on(1.0)
    book = SampleBook(tmp_path)
    book.set("count", 5)
    assert not sampler.is_on(1.5), "it looks once a second"
    assert sampler.is_on(2.5)
    assert (sampler.percent("count"), sampler.percent("split")) == (5.0, 0.0)
    book.set("", 0)
    assert not sampler.is_on(4.0)


@pytest.mark.parametrize("percent", [-1, 100.5, float("nan"), float("inf")])
def test_what_is_no_percentage_is_refused(tmp_path: Path, percent: float) -> None:
    with pytest.raises(ValueError, match="must be a number from 0 to 100"):
        SampleBook(tmp_path).set("count", percent)


@pytest.mark.parametrize(
    "text", ["", "[]", "{", '{"version": 9, "rates": {"a": 1}}', '{"version": 1, "rates": {"a": 900}}']
)
def test_damaged_rates_sample_nothing(tmp_path: Path, text: str) -> None:
    write_rates(tmp_path, {"a": 1.0})
    assert read_switch(tmp_path)[0] == {"a": 1.0}
    (tmp_path / "samples" / RATES).write_text(text)
    assert read_switch(tmp_path)[0] == {}


@given(st.binary(max_size=300))
def test_damaged_samples_are_left_out(data: bytes) -> None:
    good = TupleEvent(1.0, "emit", "a", 1)
    assert good in list(decoded(encoded([good]) + data.replace(b"\n", b"") + b"\n" + encoded([good])))


@given(st.lists(st.sampled_from([None, 1, "a", [], {}, float("inf")]), max_size=16))
def test_samples_of_wrong_types_are_left_out(fields: list[Any]) -> None:
    assert list(decoded(json.dumps([1, *fields]).encode())) == []


def test_what_nobody_reads_stays_bounded(tmp_path: Path) -> None:
    SampleBook(tmp_path).set("", 100)
    sampler = Sampler(lambda: tmp_path)
    assert sampler.is_on(1.0)
    task = type("Task", (), {"component": "a", "task": 1})()
    for turn in range(3 * MOST_FILES):
        for _ in range(MOST_A_FLUSH):
            sampler.ended(task, [turn + 1] * 20, ["x" * 300] * 20, [1] * 20, [0.1] * 20)
        sampler.flush()
    files = [path for path in (tmp_path / "samples").iterdir() if path.name != RATES]
    assert len(files) == MOST_FILES
    assert max(path.stat().st_size for path in files) < MOST_A_FLUSH * 600


def test_the_file_of_samples_is_bounded_and_only_its_owner_reads_it(tmp_path: Path) -> None:
    book = SampleBook(tmp_path / "own", tmp_path / "events.log")
    book.set("", 100)
    (tmp_path / "events.log").write_bytes(b"x" * (FILE_BYTES + 1))
    event = TupleEvent(1.0, "emit", "a", 1)
    (tmp_path / "own" / "samples" / "abc-1").write_bytes(encoded([event]))
    assert book.gather() == [event]
    assert (tmp_path / "events.log").read_bytes() == encoded([event])
    assert (tmp_path / "events.log").stat().st_mode & 0o077 == 0
    assert (tmp_path / "events.log.1").stat().st_size == FILE_BYTES + 1
    assert not (tmp_path / "own" / "samples" / "abc-1").exists()


ELSEWHERE = """
import logging, sys
from pathlib import Path
from storm_on_spark.runtime.samples.sampler import Sampler

sampler, now = Sampler(lambda: Path(sys.argv[1])), 0.0
for line in sys.stdin:
    now += 100
    is_on = sampler.is_on(now)
    print(logging.getLogger("some.bolt").level, is_on, flush=True)
"""


def test_a_process_on_another_machine_learns_levels_of_loggers_from_the_checkpoint(tmp_path: Path) -> None:
    """The driver's machine has a file, whose path is in the environment; another one has only the checkpoint."""
    environment = {name: value for name, value in os.environ.items() if name != VARIABLE}
    book = SampleBook(tmp_path)
    with subprocess.Popen(
        [sys.executable, "-c", ELSEWHERE, str(tmp_path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=environment,
    ) as child:
        assert child.stdin is not None
        assert child.stdout is not None
        steps: list[tuple[Any, int, bool]] = [
            (lambda: book.set_levels({"some.bolt": "DEBUG"}), 10, False),
            (lambda: book.set("", 100), 10, True),
            (lambda: book.set_levels({"some.bolt": "ERROR"}), 40, True),
            (lambda: book.set("", 0), 40, False),
            (lambda: book.set_levels({}), 0, False),
        ]
        for step, level, sampled in steps:
            step()
            print(file=child.stdin, flush=True)
            assert child.stdout.readline().split() == [str(level), str(sampled)]
        child.stdin.close()


def test_where_the_file_of_levels_is_the_checkpoint_changes_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(VARIABLE, str(tmp_path / "levels.json"))
    SampleBook(tmp_path).set_levels({"some.other.bolt": "DEBUG"})
    assert not Sampler(lambda: tmp_path).is_on(1.0)
    assert logging.getLogger("some.other.bolt").level == logging.NOTSET


def test_levels_that_are_none_change_nothing(tmp_path: Path) -> None:
    SampleBook(tmp_path).set("a", 5.0)
    rates = tmp_path / "samples" / RATES
    rates.write_text('{"version": 1, "rates": {}, "levels": {"a": "LOUD"}}')
    assert read_switch(tmp_path) == ({}, {})


def test_about_the_wanted_share_of_messages_is_chosen() -> None:
    for base in (0, 3 << 44, 1 << 63):
        chosen = sum(is_chosen(base + number, 20.0) for number in range(20_000))
        assert 3500 < chosen < 4500
