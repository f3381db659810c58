"""What the builder accepts, and what it makes of it. What it refuses is in test_builder_errors.py."""

from __future__ import annotations

import pytest

from storm_on_spark.api import (
    AllGrouping,
    BaseBasicBolt,
    BaseRichBolt,
    BaseRichSpout,
    BatchBolt,
    BatchSpout,
    BoltDeclarer,
    ComponentKind,
    Config,
    CustomGrouping,
    CustomStreamGrouping,
    DirectGrouping,
    Fields,
    FieldsGrouping,
    GlobalGrouping,
    GlobalStreamId,
    LocalOrShuffleGrouping,
    NoneGrouping,
    PartialKeyGrouping,
    ShuffleGrouping,
    SpoutDeclarer,
    StreamSpec,
    TopologyBuilder,
)


class Lines(BaseRichSpout):
    def next_tuple(self):
        pass

    def declare_output_fields(self, declarer):
        declarer.declare(Fields("line"))
        declarer.declare_stream("late", Fields("line", "secs"), direct=True)


class Split(BaseBasicBolt):
    def __init__(self):
        self.declared = 0

    def execute(self, tup, collector):
        pass

    def declare_output_fields(self, declarer):
        self.declared += 1
        declarer.declare(Fields("word"))


class Count(BaseRichBolt):
    def execute(self, tup):
        pass

    def get_component_configuration(self):
        return {Config.TOPOLOGY_TICK_TUPLE_FREQ_SECS: 10, Config.TOPOLOGY_DEBUG: True, "my.key": 1}


class Columns(BatchBolt):
    def execute_batch(self, batch, collector):
        pass


class Numbers(BatchSpout):
    def next_batch(self):
        pass

    def declare_output_fields(self, declarer):
        declarer.declare(Fields("number"))


class First(CustomStreamGrouping):
    def choose_tasks(self, task_id, values):
        return [task_id]


def test_components_become_specs() -> None:
    builder = TopologyBuilder()
    spout, split, count, columns = Lines(), Split(), Count(), Columns()
    assert type(builder.set_spout("lines", spout)) is SpoutDeclarer
    assert type(builder.set_bolt("split", split, 3).shuffle_grouping("lines")) is BoltDeclarer
    builder.set_bolt("count", count, parallelism=2).fields_grouping("split", Fields("word"))
    builder.set_bolt("columns", columns).shuffle_grouping("lines", "late")
    assert type(builder.set_spout("numbers", Numbers(), 2)) is SpoutDeclarer
    topology = builder.create_topology()

    assert list(topology) == ["lines", "split", "count", "columns", "numbers"]
    assert {spec.id: (spec.kind, spec.parallelism, spec.num_tasks) for spec in topology.components.values()} == {
        "lines": (ComponentKind.SPOUT, 1, None),
        "split": (ComponentKind.BASIC_BOLT, 3, None),
        "count": (ComponentKind.BOLT, 2, None),
        "columns": (ComponentKind.BATCH_BOLT, 1, None),
        "numbers": (ComponentKind.BATCH_SPOUT, 2, None),
    }
    assert [name for name, spec in topology.components.items() if spec.is_spout] == ["lines", "numbers"]
    assert set(topology.spouts) == {"lines", "numbers"}
    assert topology["lines"].component is spout
    assert dict(topology["lines"].streams) == {
        "default": StreamSpec(Fields("line")),
        "late": StreamSpec(Fields("line", "secs"), direct=True),
    }
    assert dict(topology["count"].streams) == {}
    assert topology["count"].inputs == ((GlobalStreamId("split"), FieldsGrouping(Fields("word"))),)
    assert topology["columns"].inputs == ((GlobalStreamId("lines", "late"), ShuffleGrouping()),)


first = First()


@pytest.mark.parametrize(
    ("method", "arguments", "grouping"),
    [
        ("shuffle_grouping", (), ShuffleGrouping()),
        ("fields_grouping", (Fields("word"),), FieldsGrouping(Fields("word"))),
        ("fields_grouping", ("word",), FieldsGrouping(Fields("word"))),
        ("fields_grouping", (["word", "day"],), FieldsGrouping(Fields("word", "day"))),
        ("all_grouping", (), AllGrouping()),
        ("global_grouping", (), GlobalGrouping()),
        ("none_grouping", (), NoneGrouping()),
        ("local_or_shuffle_grouping", (), LocalOrShuffleGrouping()),
        ("partial_key_grouping", (Fields("word"),), PartialKeyGrouping(Fields("word"))),
        ("direct_grouping", (), DirectGrouping()),
        ("custom_grouping", (first,), CustomGrouping(first)),
    ],
)
def test_every_grouping_on_the_default_stream_and_on_a_named_one(method, arguments, grouping) -> None:
    builder = TopologyBuilder()
    bolt = builder.set_bolt("count", Count())
    assert getattr(bolt, method)("split", *arguments) is bolt
    assert getattr(bolt, method)("split", *arguments, "late") is bolt
    assert getattr(bolt, method)("split", *arguments, stream="early") is bolt
    assert builder.create_topology()["count"].inputs == tuple(
        (GlobalStreamId("split", stream), grouping) for stream in ("default", "late", "early")
    )


def test_grouping_objects() -> None:
    builder = TopologyBuilder()
    builder.set_bolt("count", Count()).grouping(GlobalStreamId("split", "late"), AllGrouping())
    assert builder.create_topology()["count"].inputs == ((GlobalStreamId("split", "late"), AllGrouping()),)


def test_a_bolt_may_subscribe_to_what_comes_later_and_to_itself() -> None:
    builder = TopologyBuilder()
    builder.set_bolt("count", Count()).shuffle_grouping("later").shuffle_grouping("count", "again")
    builder.set_spout("later", Lines())
    assert [str(source) for source, _ in builder.create_topology()["count"].inputs] == [
        "later",
        "count:again",
    ]


def test_declarers_set_configuration() -> None:
    builder = TopologyBuilder()
    declarer = builder.set_spout("lines", Lines(), 2)
    chained = (
        declarer.set_num_tasks(4)
        .set_max_spout_pending(100)
        .set_max_task_parallelism(8)
        .set_debug(True)
        .set_memory_load(256, 64.5)
        .set_cpu_load(50)
        .add_configuration("my.key", object)
        .add_configurations({Config.TOPOLOGY_TICK_TUPLE_FREQ_SECS: 3, "my.other": None})
    )
    assert chained is declarer
    spec = builder.create_topology()["lines"]
    assert (spec.parallelism, spec.num_tasks) == (2, 4)
    assert dict(spec.conf) == {
        Config.TOPOLOGY_TASKS: 4,
        Config.TOPOLOGY_MAX_SPOUT_PENDING: 100,
        Config.TOPOLOGY_MAX_TASK_PARALLELISM: 8,
        Config.TOPOLOGY_DEBUG: True,
        Config.TOPOLOGY_COMPONENT_RESOURCES_ONHEAP_MEMORY_MB: 256,
        Config.TOPOLOGY_COMPONENT_RESOURCES_OFFHEAP_MEMORY_MB: 64.5,
        Config.TOPOLOGY_COMPONENT_CPU_PCORE_PERCENT: 50,
        Config.TOPOLOGY_TICK_TUPLE_FREQ_SECS: 3,
        "my.key": object,
        "my.other": None,
    }


def test_memory_load_without_off_heap() -> None:
    builder = TopologyBuilder()
    builder.set_bolt("count", Split()).set_memory_load(256)
    assert dict(builder.create_topology()["count"].conf) == {Config.TOPOLOGY_COMPONENT_RESOURCES_ONHEAP_MEMORY_MB: 256}


def test_the_declarer_wins_over_the_component() -> None:
    builder = TopologyBuilder()
    builder.set_bolt("count", Count()).set_debug(False).add_configuration("my.key", 2)
    assert dict(builder.create_topology()["count"].conf) == {
        Config.TOPOLOGY_TICK_TUPLE_FREQ_SECS: 10,
        Config.TOPOLOGY_DEBUG: False,
        "my.key": 2,
    }


def test_a_component_may_set_its_own_number_of_tasks() -> None:
    class Three(Count):
        def get_component_configuration(self):
            return {Config.TOPOLOGY_TASKS: 3}

    builder = TopologyBuilder()
    builder.set_bolt("three", Three())
    builder.set_bolt("five", Three()).set_num_tasks(5)
    builder.set_bolt("default", Three()).add_configuration(Config.TOPOLOGY_TASKS, None)
    topology = builder.create_topology()
    assert [topology[name].num_tasks for name in ("three", "five", "default")] == [3, 5, None]


def test_declare_output_fields_is_called_once_per_topology() -> None:
    builder = TopologyBuilder()
    split = Split()
    builder.set_bolt("split", split)
    assert split.declared == 0
    builder.create_topology()
    assert split.declared == 1


def test_a_topology_does_not_change_with_its_builder() -> None:
    builder = TopologyBuilder()
    declarer = builder.set_bolt("count", Count()).shuffle_grouping("a")
    topology = builder.create_topology()
    declarer.shuffle_grouping("b").set_debug(False)
    builder.set_spout("a", Lines())
    assert list(topology) == ["count"]
    assert len(topology["count"].inputs) == 1
    assert topology["count"].conf[Config.TOPOLOGY_DEBUG] is True


def test_an_empty_builder_makes_an_empty_topology() -> None:
    assert len(TopologyBuilder().create_topology()) == 0


def test_reprs_name_what_they_are_of() -> None:
    builder = TopologyBuilder()
    assert repr(builder.set_spout("lines", Lines())) == '<SpoutDeclarer of spout "lines">'
    assert repr(builder.set_bolt("count", Count())) == '<BoltDeclarer of bolt "count">'
    assert repr(builder) == "TopologyBuilder(['lines', 'count'])"
