"""Changes of reader between Spark's source and the task of a `KafkaSpout`, with crashes at any moment: a model."""

from __future__ import annotations

import json
import pickle
import re
from collections import Counter
from types import SimpleNamespace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lengths import examples

from storm_on_spark import BaseBasicBolt, CheckpointError, InvalidTopologyError, TopologyBuilder, compile_topology
from storm_on_spark.connectors.kafka import KafkaSpout, KafkaSpoutConfig
from storm_on_spark.connectors.kafka.reading.by_task import begun_at, position_of, positions_of
from storm_on_spark.runtime.storage import Storage, StoredObject
from storm_on_spark.spark.checkpoint.readers import Readers

PLACE = ("lines", 0)


class Seen(BaseBasicBolt):
    def execute(self, tup, collector): ...


def spout(**options: str) -> KafkaSpout:
    config = KafkaSpoutConfig.builder("127.0.0.1:9", "lines").set_group_id("g").build()
    return KafkaSpout(config, options={name.replace("_", "."): value for name, value in options.items()})


def compiled(made: KafkaSpout, profile: str | None = "realtime"):
    builder = TopologyBuilder()
    builder.set_spout("kafka", made)
    builder.set_bolt("seen", Seen()).shuffle_grouping("kafka")
    return compile_topology(builder.create_topology(), {} if profile is None else {"topology.profile": profile})


PLAN = compiled(spout()).placed(1)
TASK = PLAN.components["kafka"].tasks[0]


class Crashed(Exception):
    """The driver is killed."""


class Disk(Storage):
    """A checkpoint in memory, on which only some more writes succeed."""

    url = "memory"

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {}
        self.left = -1

    def create(self, name: str, data: bytes) -> None:
        self.put(name, data)

    def put(self, name: str, data: bytes) -> None:
        if self.left == 0:
            raise Crashed
        self.left -= 1
        self.files[name] = data

    def read(self, name: str, start: int = 0, length: int | None = None) -> bytes:
        if name not in self.files:
            raise FileNotFoundError(name)
        return self.files[name]

    def list_folder(self, folder: str = "", *, deep: bool = False) -> list[StoredObject]:
        return [StoredObject(name, len(data)) for name, data in self.files.items() if name.startswith(f"{folder}/")]

    def delete(self, name: str) -> None:
        self.files.pop(name, None)


class World:
    """A topic, a checkpoint, and what became of each record: how often it is in the state."""

    def __init__(self) -> None:
        self.disk = Disk()
        self.counted: Counter[int] = Counter()
        self.end = 0
        #: The saved state of the task.
        self.saved = b""

    def run(self, *, by_task: bool, writes: int, steps: list[int]) -> None:
        """Runs the topology until a crash: after some writes of its start, or after some steps."""
        self.disk.left = writes
        try:
            readers = Readers(self.disk, PLAN)
            reader = readers.begin(by_task=by_task)["kafka"]
            task = self.opened(reader)
            readers.settle({TASK: task.reached()})
        except Crashed:
            return
        self.disk.left = -1
        if not steps:
            return  # before the query starts
        (self.by_task if reader.by_task else self.by_spark)(task, steps)

    def opened(self, reader) -> KafkaSpout:
        task = spout()
        task.read_by(reader)
        context = SimpleNamespace(
            this_component_id="kafka", this_task_id=1, this_task_index=0, component_tasks=lambda name: [1]
        )
        task.open({}, context, None)
        if self.saved:
            task.state_holder.__dict__.update(pickle.loads(self.saved))
        return task

    def by_task(self, task: KafkaSpout, steps: list[int]) -> None:
        reader = task._task_reader()  # noqa: SLF001 # without Kafka, next_tuple would call for it
        if again := self.again():
            assert reader.committable() == {}, "the group is ahead of the checkpoint"
            task.passed({PLACE: again})
        for step in steps:
            self.end += step
            # As a look-up finds it, where nobody has read yet.
            reader.offsets.begin(PLACE, 0)
            offsets = reader.offsets.partitions[PLACE]
            read = range(offsets.position, self.end)
            for offset in read:
                offsets.emit(offset)
                offsets.ack(offset)
            if step % 3 == 0:
                return  # it dies before the cut
            self.counted.update(read)
            self.saved = pickle.dumps(task.state_holder.__dict__)
            if step == 4:
                return  # it dies before the micro-batch: a new topology begins before Spark does
            self.batch(self.planned(), committed=bool(step % 2))
            if step % 2 == 0:
                return

    def by_spark(self, task: KafkaSpout, steps: list[int]) -> None:
        self.again()
        for step in steps:
            self.end += step
            begin = self.planned() or self.begun()
            self.batch(self.end, committed=bool(step % 2))
            if step % 2 == 0:
                return
            self.counted.update(range(begin, self.end))

    def again(self) -> int:
        """Spark executes the last micro-batch again if it isn't committed; returns the end of its rows, 0 for none."""
        last = self.last("offsets")
        if last > self.last("commits"):
            begin, end = self.offset(last - 1) if last else self.begun(), self.offset(last)
            assert begin <= end, "Spark's source ends the query"
            self.counted.update(range(begin, end))
            self.disk.put(f"commits/{last}", b"v1")
            return end if begin < end else 0
        return 0

    def batch(self, end: int | None, committed: bool) -> None:
        self.begun()
        number = self.last("offsets") + 1
        position = position_of({PLACE: self.begun() if end is None else end})
        self.disk.put(f"offsets/{number}", "\n".join(["v1", "{}", '{"logs":{}}', position]).encode())
        if committed:
            self.disk.put(f"commits/{number}", b"v1")

    def planned(self) -> int | None:
        last = self.last("offsets")
        return None if last < 0 else self.offset(last)

    def offset(self, number: int) -> int:
        return positions_of(self.disk.read(f"offsets/{number}").decode().split("\n")[3])[PLACE]

    def begun(self) -> int:
        """Where Spark's source begins; it writes that down when it is asked first."""
        try:
            data = self.disk.read("sources/1/0")
        except FileNotFoundError:
            data = begun_at(position_of({PLACE: 0}))
            self.disk.put("sources/1/0", data)
        return positions_of(data[4:].decode())[PLACE]

    def last(self, log: str) -> int:
        return max((int(found.name.rpartition("/")[2]) for found in self.disk.list_folder(log)), default=-1)


RUN = st.tuples(st.booleans(), st.integers(-1, 6), st.lists(st.integers(0, 6), max_size=4))


@settings(max_examples=examples(100), deadline=None)
@given(st.lists(RUN, max_size=9))
def test_each_record_is_in_the_state_once_wherever_the_driver_is_killed(runs) -> None:
    world = World()
    for by_task, writes, steps in runs:
        world.run(by_task=by_task, writes=writes, steps=steps)
    for by_task in (False, True, False, False):
        world.run(by_task=by_task, writes=-1, steps=[1, 1])
    assert world.counted == Counter(range(world.end))


def test_the_start_after_a_crash_between_both_readers_of_one_micro_batch_leaves_the_task_reading(caplog) -> None:
    world = World()
    world.run(by_task=False, writes=-1, steps=[1, 4])  # planned and not committed
    assert Readers(world.disk, PLAN).begin(by_task=True)["kafka"].start == '{"lines":{"0":5}}'
    assert Readers(world.disk, PLAN).begin(by_task=False)["kafka"].by_task
    assert 'spout "kafka" reads its rows itself until the next start' in caplog.text


def test_notes_of_another_version_or_for_another_kind_of_spout_are_refused() -> None:
    disk = Disk()
    disk.put("storm/readers.json", json.dumps({"version": 2, "spouts": {}}).encode())
    with pytest.raises(CheckpointError, match="version"):
        Readers(disk, PLAN)
    disk.put("storm/readers.json", b"{}")
    with pytest.raises(CheckpointError, match=r"memory/storm/readers\.json can't be read"):
        Readers(disk, PLAN)
    note = {"change": 1, "by_task": True, "start": None}
    disk.put("storm/readers.json", json.dumps({"version": 1, "spouts": {"other": note}}).encode())
    with pytest.raises(CheckpointError, match='spout "other" has read its rows itself'):
        Readers(disk, PLAN)


def notes(**changes: object) -> bytes:
    note = {"change": 1, "by_task": False, "start": None, **changes}
    return json.dumps({"version": 1, "spouts": {"kafka": note}}).encode()


@pytest.mark.parametrize(
    ("name", "data", "sentence"),
    [
        ("offsets/0", b"v2\n{}\n{}\n{}", "offsets/0 can't be read: its version is v2, and not v1"),
        ("offsets/0", b"v1\n{}\n{}", "offsets/0 can't be read: sources are missing"),
        ("offsets/0", b'v1\n{}\n{}\n{"a":{"0":-1}}', 'read: {"a":{"0":-1}} names no offsets of Kafka\'s topics'),
        ("offsets/0", b'v1\n{}\n{}\n{"a":{"0":9223372036854775808}}', "names no offsets"),
        ("offsets/0", b'v1\n{}\n{}\n{"a":{"x":1}}', "names no offsets"),
        ("offsets/0", b'v1\n{}\n{}\n{"a":7}', "names no offsets"),
        ("offsets/0", b"v1\n{}\n{}\n" + b"[" * 100_000, "names no offsets"),
        ("offsets/0", b"\xff", "offsets/0 can't be read"),
        ("sources/1/0", b"\0v2\n{}", "sources/1/0, of Spark's source, can't be read: it begins with"),
        ("sources/1/0", b'\0v1\n{"a":{"0":true}}', "sources/1/0, of Spark's source, can't be read"),
        ("storm/readers.json", b'{"version": 1, "spouts": []}', "readers.json can't be read"),
        ("storm/readers.json", notes(change="1"), "readers.json can't be read: '1' is no int"),
        ("storm/readers.json", notes(by_task=1), "readers.json can't be read: 1 is no bool"),
        ("storm/readers.json", notes(start=5), "readers.json can't be read: 5 names no offsets"),
        ("storm/readers.json", notes(moving_to="{"), "readers.json can't be read: { names no offsets"),
    ],
)
def test_what_makes_no_sense_on_the_disk_is_refused_and_nothing_is_changed(name, data, sentence) -> None:
    disk = Disk()
    disk.put(name, data)
    before = dict(disk.files)
    with pytest.raises(CheckpointError, match=re.escape(sentence)):
        Readers(disk, PLAN).begin(by_task=True)
    assert disk.files == before


def test_no_offset_is_committed_to_the_group_before_the_last_micro_batch_of_spark_is_done() -> None:
    world = World()
    world.run(by_task=False, writes=-1, steps=[1, 4])  # planned and not committed
    reader = Readers(world.disk, PLAN).begin(by_task=True)["kafka"]
    assert (reader.start, reader.planned) == ('{"lines":{"0":5}}', True)
    task = world.opened(reader)
    inside = task._task_reader()  # noqa: SLF001
    assert inside.committable() == {}
    task.passed({PLACE: 5})
    assert inside.committable() == {PLACE: 5}


def test_where_the_task_may_read_and_why_not() -> None:
    live = compiled(spout()).placed(1)
    assert live.components["kafka"].only_spark is None
    asked = compiled(spout(minPartitions="8")).explain(master="local[2]")
    assert "all tasks of bolts and acker; kafka reads without Spark; a micro-batch each" in asked
    with pytest.raises(InvalidTopologyError, match=r"only Spark's source has the option kafka\.interceptor\.classes"):
        compiled(spout(kafka_interceptor_classes="x"))
    by_default = compiled(spout(), profile=None).explain(master="local[2]")
    assert "nothing: Spark reads the rows of kafka faster, in micro-batches" in by_default
    own = compiled(spout(kafka_interceptor_classes="x"), profile=None).explain(master="local[2]")
    assert "Spark itself reads the rows of kafka, in micro-batches; only Spark's source has the option" in own
