"""A topology with all that can go wrong, and a driver, hosts and workers that tests kill anywhere."""

from __future__ import annotations

import dataclasses
import random
from collections import Counter
from pathlib import Path
from random import Random
from typing import Any, ClassVar

import pyarrow as pa
import pytest
from stormtest import make_worker

from storm_on_spark.api import BaseBasicBolt, BaseRichBolt, BaseRichSpout, BatchBolt, Fields, TopologyBuilder
from storm_on_spark.api.component import BaseTickTupleAwareRichBolt
from storm_on_spark.runtime.run.spec import RunSpec
from storm_on_spark.runtime.spouts.log import MESSAGE_IDS, read_entries
from storm_on_spark.runtime.storage import LocalPlace, inside
from storm_on_spark.runtime.tracking.acker import ACKED
from storm_on_spark.runtime.tracking.ids import SEQUENCE_BITS, root_base
from storm_on_spark.runtime.values import pickling
from storm_on_spark.testing.simulated import DriverKilled, SimulatedSpark

POISON = 8
"""Numbers with this remainder by 11 can't be executed."""


TRIES = 3


class Numbers(BaseRichSpout):
    def __init__(self, limit: int):
        self.limit = limit

    def open(self, conf, context, collector):
        self.collector, self.task = collector, context.this_task_index
        self.next, self.acked, self.fails, self.again = 0, [], Counter(), []

    def next_tuple(self):
        if self.again:
            self.emit(self.again.pop())
        elif self.next < self.limit:
            self.emit(self.next)
            self.next += 1

    def emit(self, number):
        message_id = None if number % 7 == 6 else (self.task, number)
        self.collector.emit([self.task, number], message_id=message_id)

    def ack(self, message_id):
        self.acked.append(message_id[1])

    def fail(self, message_id):
        number = message_id[1]
        self.fails[number] += 1
        if number % 11 != POISON or self.fails[number] < TRIES:
            self.again.append(number)

    def exhausted(self):
        return self.next >= self.limit and not self.again

    def declare_output_fields(self, declarer):
        declarer.declare(Fields("task", "number"))


class Split(BaseBasicBolt):
    """Fused with the spout."""

    def execute(self, tup, collector):
        for part in range(parts_of(tup["number"])):
            collector.emit([tup["task"], tup["number"], part])

    def declare_output_fields(self, declarer):
        declarer.declare(Fields("task", "number", "part"))


def parts_of(number: int) -> int:
    return 1 + number % 3


class Count(BaseBasicBolt):
    def prepare(self, conf, context):
        self.counts = Counter()

    def execute(self, tup, collector):
        self.counts[tuple(tup)] += 1
        collector.emit([*tup, self.counts[tuple(tup)]])

    def declare_output_fields(self, declarer):
        declarer.declare(Fields("task", "number", "part", "count"))


class Fork(BaseRichBolt):
    """Stateless, so it runs inside the stage of `Count`; several tasks of that share a partition."""

    stateless = True

    def prepare(self, conf, context, collector):
        self.collector = collector

    def execute(self, tup):
        self.collector.emit([*tup], anchors=tup)
        self.collector.emit([*tup], anchors=[tup, tup], stream="columns")
        self.collector.ack(tup)

    def declare_output_fields(self, declarer):
        declarer.declare(Fields("task", "number", "part", "count"))
        declarer.declare_stream("columns", Fields("task", "number", "part", "count"))


class Audit(BaseBasicBolt):
    """Sees everything, in every task."""

    def prepare(self, conf, context):
        self.seen = Counter()

    def execute(self, tup, collector):
        self.seen[tuple(tup)[:3]] += 1


class Pairs(BaseTickTupleAwareRichBolt):
    """Holds tuples back, joins each two, and lets go of the rest with a tick."""

    def prepare(self, conf, context, collector):
        self.collector, self.held, self.joined = collector, [], 0

    def process(self, tup):
        self.held.append(tup)
        if len(self.held) == 2:
            self.joined += 1
            self.collector.emit([self.joined], anchors=self.held)
            self.release()

    def on_tick_tuple(self, tup):
        self.release()

    def release(self):
        for held in self.held:
            self.collector.ack(held)
        self.held = []

    def declare_output_fields(self, declarer):
        declarer.declare(Fields("joined"))


class Loop(BaseRichBolt):
    """Fails what comes from outside a few times, raises for poison, and sends the rest round once.

    Args:
        flaky: how likely it fails a tuple for no reason, another one with every attempt.
    """

    def __init__(self, flaky: float):
        self.flaky = flaky

    def prepare(self, conf, context, collector):
        self.collector, self.failed, self.done = collector, Counter(), Counter()

    def execute(self, tup):
        key = tuple(tup)[:3]
        if tup.source_component == "back":
            self.done[key] += 1
            self.collector.ack(tup)
        elif key[1] % 11 == POISON:
            self.failed[key] += 100
            self.collector.emit([*key], anchors=tup)
            raise ValueError(key)
        elif key[1] % 7 != 6 and random.random() < self.flaky:
            self.collector.fail(tup)
        elif key[1] % 7 != 6 and key[2] == 0 and self.failed[key] < key[1] % 3:
            self.failed[key] += 1
            self.collector.fail(tup)
        else:
            self.collector.emit([*key], anchors=tup)
            self.collector.ack(tup)

    def declare_output_fields(self, declarer):
        declarer.declare(Fields("task", "number", "part"))


class Back(BaseBasicBolt):
    def execute(self, tup, collector):
        collector.emit([*tup])

    def declare_output_fields(self, declarer):
        declarer.declare(Fields("task", "number", "part"))


class Columns(BatchBolt):
    def prepare(self, conf, context, collector):
        self.total = 0

    def execute_batch(self, batch, collector):
        self.total += batch.num_rows
        collector.emit(pa.record_batch([batch["number"]], ["joined"]))

    def declare_output_fields(self, declarer):
        declarer.declare(Fields("joined"))


class End(BaseBasicBolt):
    def prepare(self, conf, context):
        self.total = 0

    def execute(self, tup, collector):
        self.total += 1


def build(limit: int, flaky: float = 0.0) -> TopologyBuilder:
    builder = TopologyBuilder()
    builder.set_spout("numbers", Numbers(limit), 2)
    builder.set_bolt("split", Split(), 2).shuffle_grouping("numbers")
    builder.set_bolt("count", Count(), 3).fields_grouping("split", ["task", "number", "part"])
    builder.set_bolt("fork", Fork(), 2).shuffle_grouping("count")
    builder.set_bolt("audit", Audit(), 2).all_grouping("fork")
    builder.set_bolt("columns", Columns(), 2).shuffle_grouping("fork", stream="columns")
    pairs = builder.set_bolt("pairs", Pairs(), 2).partial_key_grouping("fork", "number")
    pairs.add_configuration("topology.tick.tuple.freq.secs", 5)
    loop = builder.set_bolt("loop", Loop(flaky), 2).fields_grouping("fork", ["task", "number", "part"])
    loop.fields_grouping("back", ["task", "number", "part"])
    builder.set_bolt("back", Back(), 2).shuffle_grouping("loop")
    builder.set_bolt("end", End()).global_grouping("pairs").global_grouping("columns")
    return builder


class Simulation:
    """Runs the topology to its end and checks after each micro-batch and at the end."""

    spark = SimulatedSpark
    partitions = (1, 2, 3)
    conf: ClassVar = {}

    def __init__(
        self,
        folder: Path,
        seed: int,
        *,
        limit: int,
        kills: float = 0.0,
        retries: float = 0.0,
        ackers: int = 2,
        flaky: float = 0.0,
        stored: bool = False,
    ) -> None:
        self.random = Random(seed)
        self.limit, self.kills, self.flaky = limit, kills, flaky
        #: Each point at which the driver can be killed comes at least once.
        self.due = self.random.sample(POINTS, len(POINTS)) if kills else []
        partitions = self.random.choice(self.partitions)
        spec = make_worker(self.built(), {"topology.acker.executors": ackers, **self.conf}, partitions).spec
        spec = self.specified(spec, folder)
        if stored:
            spec = dataclasses.replace(spec, place=LocalPlace(str(folder)))
        self.plan = spec.plan
        self.cluster = self.spark(spec, spec.open_folder() if stored else folder, self.random, retries=retries)
        self.cluster.deterministic = not flaky
        self.cluster.calls = self.random.choice([1, 3, 8])
        self.kinds: Counter = Counter()
        self.checked = 0
        self.numbers: dict[int, int] = {}
        self.noted = 0

    def built(self) -> TopologyBuilder:
        return build(self.limit, self.flaky)

    def specified(self, spec: RunSpec, folder: Path) -> RunSpec:
        return spec

    def on_death(self) -> None:
        """Called between the death of a driver and the start of the next."""

    def run(self) -> None:
        cluster = self.cluster
        cluster.start()
        for _ in range(3000):
            cluster.clock.advance(self.random.choice([0.1, 1, 2]))
            self.kill_something()
            try:
                cluster.step(self.kill_point())
            except DriverKilled as killed:
                self.kinds[str(killed)] += 1
                self.due = self.due[:-1]
                self.on_death()
                cluster.start()
            self.note_numbers()
            self.check_acks()
            if cluster.coordinator.completed.is_set():
                return
        raise AssertionError("the topology did not end")

    def kill_point(self) -> str | None:
        if self.due:
            return self.due[-1]
        return self.random.choice(POINTS) if self.random.random() < self.kills else None

    def kill_something(self) -> None:
        if self.random.random() < self.kills:
            host = self.random.choice(self.cluster.hosts)
            if host.kill() is not None:
                self.kinds["host"] += 1
                host.start()

    def merged(self, component: str, attribute: str) -> Counter:
        return sum((state[attribute] for state in self.cluster.states(component)), Counter())

    def check_acks(self) -> None:
        """Nothing was acked before all of its tree was processed, in all branches and round the loop."""
        outcomes = self.cluster.outcomes[self.checked :]
        self.checked = len(self.cluster.outcomes)
        if not outcomes:
            return
        audits = [state["seen"] for state in self.cluster.states("audit")]
        done = self.merged("loop", "done")
        spouts = self.plan.components["numbers"].tasks
        for _, root, code in outcomes:
            if code == ACKED:
                number = self.numbers[root]
                task = spouts.index(root >> SEQUENCE_BITS)
                for part in range(parts_of(number)):
                    assert all(seen[task, number, part] for seen in audits)
                    assert done[task, number, part]

    def note_numbers(self) -> None:
        """Notes the numbers that messages are about, from the log, which is trimmed later."""
        offsets = self.cluster.offsets
        for start, end in zip(offsets[self.noted :], offsets[self.noted + 1 :], strict=False):
            for task, position in end.logs.items():
                log = inside(self.cluster.folder, "spouts", str(task))
                begin, epoch = start.logs.get(task, 0), end.epochs[task]
                for cut, _, body in read_entries(log, begin, position, lambda t: t == MESSAGE_IDS, epoch):
                    ids = enumerate(pickling.loads(body), root_base(task) + cut.first)
                    self.numbers.update({at: number for at, (_, number) in ids})
        self.noted = len(offsets) - 1

    def check_end(self) -> None:
        cluster = self.cluster
        assert not cluster.failures
        roots = [root for _, root, _ in cluster.outcomes]
        assert len(set(roots)) == len(roots), "a root ended twice"
        fails: Counter = Counter()
        for host in cluster.hosts:
            for loop in host.loops.values():
                spout = loop.task.spout
                assert not loop.task.pending
                tracked = [n for n in range(self.limit) if n % 7 != 6]
                assert sorted(spout.acked) == [n for n in tracked if n % 11 != POISON]
                assert {n: c for n, c in spout.fails.items() if n % 11 == POISON} == {
                    n: TRIES for n in tracked if n % 11 == POISON
                }
                if not self.flaky:
                    assert {n: c for n, c in spout.fails.items() if n % 11 != POISON} == {
                        n: n % 3 for n in tracked if n % 11 != POISON and n % 3
                    }
                done = self.merged("loop", "done")
                assert all(done[spout.task, n, part] for n in spout.acked for part in range(parts_of(n)))
                fails.update({(spout.task, n): c for n, c in spout.fails.items()})
        assert sum(fails.values()) == sum(code != ACKED for _, _, code in cluster.outcomes)
        # Every emit was counted once: replays are new emits.
        expected: Counter = Counter()
        for task in range(2):
            for number in range(self.limit):
                emits = 1 + fails[task, number] - (number % 11 == POISON and number % 7 != 6)
                expected.update({(task, number, part): emits for part in range(parts_of(number))})
        assert self.merged("count", "counts") == expected
        for state in self.cluster.states("audit"):
            assert state["seen"] == expected
        total = sum(expected.values())
        assert sum(state["total"] for state in self.cluster.states("columns")) == total
        joined = sum(state["joined"] for state in self.cluster.states("pairs"))
        assert sum(state["total"] for state in self.cluster.states("end")) == total + joined
        if not self.kills:  # a driver that is started again counts from zero
            self.check_counters(total)
        # After what is left of failed trees has expired, the acker's state is empty.
        for _ in range(3):
            cluster.clock.advance(31)
            cluster.step()
        for task in self.plan.acker_tasks:
            assert cluster.state[task] == {}
        for host in cluster.hosts:
            assert all(cut.tuples == 0 for loop in host.loops.values() for cut in [loop.task.log.last])

    def check_counters(self, total: int) -> None:
        found = self.cluster.coordinator.metrics.components()
        counts = {name: (part.executed, part.emitted, part.transferred) for name, part in found.items()}
        assert counts["count"] == (total, total, total)
        # Two tasks of `audit`, one each of `pairs`, `loop` and `columns`.
        assert counts["fork"] == (total, 2 * total, 5 * total)
        assert counts["audit"] == (2 * total, 0, 0)


POINTS = ("planned", "executed", "delivered", "committed")


def seeds(count: int) -> list[Any]:
    """Returns the seeds of a simulation: `make test` has the first, CI half of them, and the soak the others."""
    half = (count + 1) // 2
    slow = [pytest.param(seed, marks=pytest.mark.slow) for seed in range(1, half)]
    return [0, *slow, *(pytest.param(seed, marks=pytest.mark.soak) for seed in range(half, count))]
