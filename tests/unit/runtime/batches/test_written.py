"""What bolts hand over to the driver: by task and in order, and what a sink that raises does."""

from __future__ import annotations

from typing import ClassVar

import pytest

from storm_on_spark import CheckpointError, Fields, InvalidTopologyError, SetupError, SinkBolt, TopologyBuilder
from storm_on_spark.api.config import effective_conf
from storm_on_spark.connectors.files import FileBolt
from storm_on_spark.plan.compile import compile_graph, place
from storm_on_spark.plan.explain.words import what_is_live
from storm_on_spark.runtime.batches.written import WriteError, Written
from storm_on_spark.runtime.codec import chunk
from storm_on_spark.runtime.in_process import InProcessTopology
from storm_on_spark.runtime.run.spec import make_spec
from storm_on_spark.testing import ListSpout


class Notes(SinkBolt):
    noted: ClassVar[list] = []

    def execute(self, tup): ...

    def take_written(self):
        return b""

    def open_sink(self, context):
        if context.spark == "none":
            raise SetupError("no session")

    def write(self, written, context):
        if context.spark == "broken":
            raise ValueError("the disk\nis full")
        self.noted.append((written, context.writer, context.transaction))


class Planned:
    """A checkpoint whose plans have their number, times ten, as fingerprint."""

    last = 4

    def of(self, micro_batch):
        return 10 * micro_batch


@pytest.fixture
def plan():
    builder = TopologyBuilder()
    builder.set_spout("words", ListSpout(["a"], fields=["word"]))
    builder.set_bolt("out", Notes(), 2).fields_grouping("words", Fields("word"))
    graph = compile_graph(builder.create_topology(), effective_conf({"topology.profile": "realtime"}))
    return place(graph, 1)


@pytest.fixture
def written(plan):
    Notes.noted.clear()
    return Written(plan, "words-1", Planned())


def test_what_tasks_hand_over_comes_by_task_and_in_the_order_of_its_executions(plan, written):
    first, second = plan.components["out"].tasks
    handed = [
        chunk.encode_written(b"d", source=second, sequence=0),
        chunk.encode_written(b"b", source=first, sequence=9),
        chunk.encode_written(b"a", source=first, sequence=2),
    ]
    written.begin("spark", 5)
    written.write("spark", 5, handed)
    written.begin("spark", 6)
    written.write("spark", 6, [])
    assert Notes.noted == [([b"a", b"b", b"d"], "words-1/out", (5, 50))]
    assert all(chunk.is_for_sink(chunk.read_header(body)) for body in handed)


def test_a_sink_that_raises_is_named_with_the_micro_batch_and_the_first_line(plan, written):
    handed = [chunk.encode_written(b"a", source=plan.components["out"].tasks[0], sequence=0)]
    with pytest.raises(WriteError) as caught:
        written.write("broken", 5, handed)
    assert caught.value.failure.message == 'bolt "out" could not write micro-batch 5: ValueError: the disk'
    assert caught.value.failure.component == "out"


def test_a_sink_that_cannot_be_opened_is_named(written):
    written.open("spark")
    with pytest.raises(SetupError, match='bolt "out" can\'t write: no session'):
        written.open("none")


def test_nothing_is_live_beside_a_bolt_that_the_driver_writes(plan):
    assert what_is_live(plan) == "nothing: the tuples of out are written with each micro-batch"
    assert not make_spec(plan, "words", "words-1", "start", ()).realtime


def test_nothing_is_live_beside_a_bolt_whose_tasks_write_by_number(tmp_path):
    builder = TopologyBuilder()
    builder.set_spout("words", ListSpout(["a"], fields=["word"]))
    builder.set_bolt("out", FileBolt(tmp_path, ["word"])).shuffle_grouping("words")
    placed = place(compile_graph(builder.create_topology(), effective_conf({"topology.profile": "realtime"})), 1)
    assert what_is_live(placed) == "nothing: the tuples of out are written with each micro-batch"
    assert not make_spec(placed, "words", "words-1", "start", ()).realtime


def test_without_spark_such_a_topology_is_refused(plan):
    graph = compile_graph(plan.topology, effective_conf({}))
    with pytest.raises(InvalidTopologyError, match='bolt "out": the driver writes its tuples through Spark'):
        InProcessTopology(graph, "words")


def test_the_plan_is_on_the_disk_before_anything_of_it_is_written(plan):
    happened = []

    class Disk:
        def force(self):
            happened.append("forced")

        def committed(self, batch): ...

    class Asked(Planned):
        def of(self, micro_batch):
            happened.append(f"plan of {micro_batch} read")
            return super().of(micro_batch)

    written = Written(plan, "words-1", Asked(), Disk())
    written.begin("spark", 5)
    assert happened == ["forced", "plan of 5 read"]


def test_a_bolt_that_writes_by_number_hears_of_a_plan_before_its_tasks_execute_it(tmp_path):
    builder = TopologyBuilder()
    builder.set_spout("words", ListSpout(["a"], fields=["word"]))
    builder.set_bolt("out", FileBolt(tmp_path, ["word"])).shuffle_grouping("words")
    placed = place(compile_graph(builder.create_topology(), effective_conf({})), 1)
    written = Written(placed, "words-1", Planned())
    written.open("spark")
    written.begin("spark", 4)
    Written(placed, "words-1", Planned()).open("spark")
    written.begin("spark", 5)
    with pytest.raises(CheckpointError, match=r'bolt "out" can.t write: .* micro-batch 5 of words-1/out'):
        Written(placed, "words-1", Planned()).open("spark")
