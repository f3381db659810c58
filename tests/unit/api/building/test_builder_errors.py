"""Every early rule, with its whole message: it must say where, what was given and what is allowed."""

from __future__ import annotations

import functools
from collections.abc import Callable
from unittest import mock

import pytest

from storm_on_spark.api import (
    BaseBasicBolt,
    BaseRichBolt,
    BaseRichSpout,
    BaseTickTupleAwareRichBolt,
    BatchSpout,
    Config,
    ConfigError,
    CustomStreamGrouping,
    Fields,
    GlobalStreamId,
    InvalidTopologyError,
    ShuffleGrouping,
    TopologyBuilder,
)


class Lines(BaseRichSpout):
    def next_tuple(self):
        pass


class Columns(BatchSpout):
    def next_batch(self):
        pass


class Count(BaseBasicBolt):
    def execute(self, tup, collector):
        pass


class First(CustomStreamGrouping):
    def choose_tasks(self, task_id, values):
        return [task_id]


def problem_of(action: Callable[[], object]) -> str:
    with pytest.raises(InvalidTopologyError) as caught:
        action()
    assert caught.value.component in (None, "count", "lines", "__count")
    return str(caught.value)


# --- ids and numbers ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(("given", "shown"), [("", "'' (str)"), (None, "None"), (3, "3 (int)"), (b"x", "b'x' (bytes)")])
def test_ids_are_strings(given: object, shown: str) -> None:
    builder = TopologyBuilder()
    expected = f"must be a string that is not empty, not {shown}"
    problem = problem_of(lambda: builder.set_spout(given, Lines()))  # type: ignore[arg-type]
    assert problem == f"the id of a spout {expected}"
    problem = problem_of(lambda: builder.set_bolt(given, Count()))  # type: ignore[arg-type]
    assert problem == f"the id of a bolt {expected}"


def test_system_ids_are_reserved() -> None:
    builder = TopologyBuilder()
    assert problem_of(lambda: builder.set_bolt("__count", Count())) == (
        'bolt "__count": ids that start with "__" are reserved for the system'
    )
    builder.set_bolt("_count", Count())


def test_ids_are_unique_across_spouts_and_bolts() -> None:
    builder = TopologyBuilder()
    builder.set_spout("lines", Lines())
    assert problem_of(lambda: builder.set_bolt("lines", Count())) == (
        'bolt "lines": the id is taken by spout "lines" (Lines); ids must differ'
    )
    assert problem_of(lambda: builder.set_spout("lines", Lines())) == (
        'spout "lines": the id is taken by spout "lines" (Lines); ids must differ'
    )


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        (0, "0 (int)"),
        (-2, "-2 (int)"),
        (2.0, "2.0 (float)"),
        ("2", "'2' (str)"),
        (None, "None"),
        (True, "True (bool)"),
    ],
)
def test_parallelism_and_tasks_are_counts(given: object, shown: str) -> None:
    builder = TopologyBuilder()
    assert problem_of(lambda: builder.set_bolt("count", Count(), given)) == (  # type: ignore[arg-type]
        f'bolt "count": the parallelism must be an int of at least 1, not {shown}'
    )
    bolt = builder.set_bolt("count", Count())
    assert problem_of(lambda: bolt.set_num_tasks(given)) == (  # type: ignore[arg-type]
        f'bolt "count": the number of tasks must be an int of at least 1, not {shown}'
    )


def test_a_component_that_was_refused_leaves_its_id_free() -> None:
    builder = TopologyBuilder()
    problem_of(lambda: builder.set_bolt("count", Count(), 0))
    problem_of(lambda: builder.set_bolt("count", Count))  # type: ignore[arg-type]
    builder.set_bolt("count", Count())


# --- what kind of object ------------------------------------------------------------------------------------


def test_a_class_is_no_instance() -> None:
    builder = TopologyBuilder()
    assert problem_of(lambda: builder.set_bolt("count", Count)) == (  # type: ignore[arg-type]
        'bolt "count": needs an instance, not the class Count: did you forget the parentheses?'
    )
    assert problem_of(lambda: builder.set_spout("lines", Lines)) == (  # type: ignore[arg-type]
        'spout "lines": needs an instance, not the class Lines: did you forget the parentheses?'
    )


def test_spouts_and_bolts_are_not_mixed_up() -> None:
    builder = TopologyBuilder()
    assert problem_of(lambda: builder.set_bolt("count", Lines())) == (  # type: ignore[arg-type]
        'bolt "count": Lines is a spout; add it with set_spout'
    )
    assert problem_of(lambda: builder.set_bolt("count", Columns())) == (  # type: ignore[arg-type]
        'bolt "count": Columns is a spout; add it with set_spout'
    )
    assert problem_of(lambda: builder.set_spout("lines", Count())) == (  # type: ignore[arg-type]
        'spout "lines": Count is a bolt (a BaseBasicBolt); add it with set_bolt'
    )


def test_other_objects_are_refused() -> None:
    builder = TopologyBuilder()
    assert problem_of(lambda: builder.set_bolt("count", 3)) == (  # type: ignore[arg-type]
        'bolt "count": must be an instance of a subclass of BaseRichBolt, BaseBasicBolt or BatchBolt, not 3 (int)'
    )
    assert problem_of(lambda: builder.set_spout("lines", None)) == (  # type: ignore[arg-type]
        'spout "lines": must be an instance of a subclass of BaseRichSpout or BatchSpout, not None'
    )


def test_an_object_that_can_not_even_be_shown_is_named_by_its_type() -> None:
    class Opaque:
        def __repr__(self):
            raise RuntimeError("no repr")

    assert "Opaque> (" in problem_of(lambda: TopologyBuilder().set_bolt("count", Opaque()))  # type: ignore[arg-type]


def test_one_component_is_one_kind() -> None:
    class Both(BaseBasicBolt, BaseRichBolt):
        def execute(self, *args):
            pass

    assert problem_of(lambda: TopologyBuilder().set_bolt("count", Both())).endswith(
        "Both inherits from BaseRichBolt and BaseBasicBolt; it can be only one of them"
    )

    class BothSpouts(Lines, Columns):
        pass

    assert problem_of(lambda: TopologyBuilder().set_spout("lines", BothSpouts())).endswith(
        "BothSpouts inherits from BaseRichSpout and BatchSpout; it can be only one of them"
    )


def bolt_with(**methods: object) -> BaseBasicBolt:
    bolt: BaseBasicBolt = type("Mine", (Count,), methods)()
    return bolt


def yields(self, tup, collector):
    yield [tup[0]]


async def waits(self, tup, collector):
    pass


async def waits_and_yields(self, tup, collector):
    yield [tup[0]]


@pytest.mark.parametrize(
    ("methods", "problem"),
    [
        (
            {"execute": lambda self, tup: None},
            "Mine.execute is called with (tup, collector), but takes (tup)",
        ),
        (
            {"prepare": lambda self, conf, context, collector: None},
            "Mine.prepare is called with (conf, context), but takes (conf, context, collector)",
        ),
        ({"cleanup": lambda: None}, "Mine.cleanup takes no arguments, not even self"),
        ({"cleanup": 3}, "Mine.cleanup must be a method, not 3 (int)"),
        ({"execute": None}, "Mine.execute must be a method, not None"),
        (
            {"execute": yields},
            "Mine.execute is a generator (it has a yield), so its body would never run; "
            "emit through the collector instead",
        ),
        ({"execute": waits}, "Mine.execute is async, and nothing would await it; make it a plain method"),
        (
            {"execute": waits_and_yields},
            "Mine.execute is async, and nothing would await it; make it a plain method",
        ),
        (
            {"declareOutputFields": lambda self, declarer: None},
            "Mine defines declareOutputFields, which nothing calls; name it declare_output_fields",
        ),
        (
            {"getComponentConfiguration": lambda self: None},
            "Mine defines getComponentConfiguration, which nothing calls; name it get_component_configuration",
        ),
    ],
)
def test_methods_that_could_not_be_called_are_refused(methods: dict[str, object], problem: str) -> None:
    assert problem_of(lambda: TopologyBuilder().set_bolt("count", bolt_with(**methods))) == f'bolt "count": {problem}'


@pytest.mark.parametrize(
    "methods",
    [
        {"execute": lambda self, *args: None},
        {"execute": lambda self, tup, collector, more=None: None},
        {"execute": mock.Mock()},
        {"execute": staticmethod(functools.partial(print, end=""))},
        {"execute": print},
        {"execute": max},  # has no signature
        {
            "declareOutputFields": lambda self, declarer: None,
            "declare_output_fields": lambda self, declarer: None,
        },
    ],
)
def test_methods_that_can_be_called_are_accepted(methods: dict[str, object]) -> None:
    TopologyBuilder().set_bolt("count", bolt_with(**methods))


@pytest.mark.parametrize(("wrong", "right"), [("ack", "ack_batch"), ("fail", "fail_batch")])
def test_methods_of_a_spout_that_is_not_columnar(wrong: str, right: str) -> None:
    spout = type("Mine", (BatchSpout,), {"next_batch": lambda self: None, wrong: lambda self, message_id: None})()
    assert problem_of(lambda: TopologyBuilder().set_spout("lines", spout)).endswith(
        f"Mine defines {wrong}, which nothing calls; name it {right}"
    )


def test_java_spelling_of_a_tick_method() -> None:
    class Ticking(BaseTickTupleAwareRichBolt):
        def process(self, tup):
            pass

        def onTickTuple(self, tup):
            pass

    assert problem_of(lambda: TopologyBuilder().set_bolt("count", Ticking())).endswith(
        "Ticking defines onTickTuple, which nothing calls; name it on_tick_tuple"
    )


def test_methods_of_spouts_are_checked_too() -> None:
    class Eager(Lines):
        def open(self, conf, context):
            pass

    assert problem_of(lambda: TopologyBuilder().set_spout("lines", Eager())).endswith(
        "Eager.open is called with (conf, context, collector), but takes (conf, context)"
    )


def yields_batches(self):
    yield [1]


async def waits_for_a_batch(self):
    pass


@pytest.mark.parametrize(
    ("methods", "problem"),
    [
        (
            {"open": lambda self, conf, context: None},
            "Mine.open is called with (conf, context, collector), but takes (conf, context)",
        ),
        (
            {"next_batch": lambda self, collector: None},
            "Mine.next_batch is called with (), but takes (collector)",
        ),
        (
            {"ack_batch": lambda self: None},
            "Mine.ack_batch is called with (message_ids), but takes ()",
        ),
        (
            {"fail_batch": lambda self, message_ids, codes: None},
            "Mine.fail_batch is called with (message_ids), but takes (message_ids, codes)",
        ),
        ({"exhausted": True}, "Mine.exhausted must be a method, not True (bool)"),
        (
            {"next_batch": yields_batches},
            "Mine.next_batch is a generator (it has a yield), so its body would never run; "
            "emit through the collector instead",
        ),
        (
            {"next_batch": waits_for_a_batch},
            "Mine.next_batch is async, and nothing would await it; make it a plain method",
        ),
    ],
)
def test_methods_of_batch_spouts_are_checked_too(methods: dict[str, object], problem: str) -> None:
    spout: BatchSpout = type("Mine", (Columns,), methods)()
    assert problem_of(lambda: TopologyBuilder().set_spout("lines", spout)) == f'spout "lines": {problem}'


# --- groupings ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("given", "shown"), [("", "'' (str)"), (None, "None"), (Lines, f"{Lines!r} (ABCMeta)")])
def test_a_grouping_on_nothing(given: object, shown: str) -> None:
    bolt = TopologyBuilder().set_bolt("count", Count())
    assert problem_of(lambda: bolt.shuffle_grouping(given)) == (  # type: ignore[arg-type]
        f'bolt "count": a grouping (shuffle) on nothing: a component id must be a string that is not empty, not {shown}'
    )
    assert "a stream id must be a string that is not empty" in problem_of(
        lambda: bolt.all_grouping("split", given)  # type: ignore[arg-type]
    )


@pytest.mark.parametrize("method", ["fields_grouping", "partial_key_grouping"])
def test_a_grouping_by_wrong_fields(method: str) -> None:
    group = getattr(TopologyBuilder().set_bolt("count", Count()), method)
    where = "bolt \"count\": the grouping on 'split' (str)"
    assert problem_of(lambda: group("split", Fields())) == (
        f"{where} names no fields; use global_grouping to send everything to one task"
    )
    assert problem_of(lambda: group("split", "late", Fields("word"))) == (
        f"{where}: the stream must be a string, not Fields('word') (Fields); the order is (component, fields, stream)"
    )
    assert problem_of(lambda: group("split", 3)) == f"{where}: a field name must be a string, not 3 (int)"
    assert problem_of(lambda: group("split", ["a", "a"])) == (
        f'{where}: field "a" occurs twice in "a", "a"; names must differ'
    )


def test_a_stream_is_subscribed_once() -> None:
    bolt = TopologyBuilder().set_bolt("count", Count()).shuffle_grouping("split")
    assert problem_of(lambda: bolt.fields_grouping("split", Fields("word"))) == (
        'bolt "count": is subscribed twice to stream "default" of "split" (shuffle and fields(word)); '
        "a bolt gets each stream once"
    )


def test_custom_groupings_are_instances() -> None:
    bolt = TopologyBuilder().set_bolt("count", Count())
    assert problem_of(lambda: bolt.custom_grouping("split", First)) == (  # type: ignore[arg-type]
        "bolt \"count\": custom_grouping on 'split' (str): a custom grouping must be an instance, "
        "not the class First: did you forget the parentheses?"
    )
    assert "must be an instance of a subclass of CustomStreamGrouping, not 'late' (str)" in problem_of(
        lambda: bolt.custom_grouping("split", "late", First())  # type: ignore[arg-type]
    )


def test_grouping_takes_a_stream_and_a_grouping() -> None:
    bolt = TopologyBuilder().set_bolt("count", Count())
    assert problem_of(lambda: bolt.grouping("split", ShuffleGrouping())) == (  # type: ignore[arg-type]
        "bolt \"count\": grouping takes a GlobalStreamId first, not 'split' (str)"
    )
    assert problem_of(lambda: bolt.grouping(GlobalStreamId("split"), "shuffle")) == (  # type: ignore[arg-type]
        'bolt "count": the grouping on "split" must be a Grouping, not \'shuffle\' (str)'
    )


# --- what components say ------------------------------------------------------------------------------------


def created(**methods: object) -> Callable[[], object]:
    builder = TopologyBuilder()
    builder.set_bolt("count", bolt_with(**methods))
    return builder.create_topology


def test_an_exception_in_declare_output_fields_is_wrapped() -> None:
    def fails(self, declarer):
        raise KeyError("fields")

    with pytest.raises(InvalidTopologyError) as caught:
        created(declare_output_fields=fails)()
    assert str(caught.value) == "bolt \"count\": Mine.declare_output_fields raised KeyError: 'fields'"
    assert caught.value.component == "count"
    assert isinstance(caught.value.__cause__, KeyError)


def test_wrong_fields_are_said_to_be_of_the_component() -> None:
    def repeats(self, declarer):
        declarer.declare(Fields("word", "word"))

    assert problem_of(created(declare_output_fields=repeats)) == (
        'bolt "count": Mine.declare_output_fields raised InvalidTopologyError: '
        'field "word" occurs twice in "word", "word"; names must differ'
    )


def test_an_error_of_the_declarer_is_not_wrapped_again() -> None:
    def twice(self, declarer):
        declarer.declare("word")
        declarer.declare("word")

    assert problem_of(created(declare_output_fields=twice)).startswith('component "count": stream "default" is')


def test_fields_that_are_returned_are_not_declared() -> None:
    assert problem_of(created(declare_output_fields=lambda self, declarer: Fields("word"))) == (
        "bolt \"count\": Mine.declare_output_fields returned Fields('word') (Fields); "
        "call declarer.declare(...) instead"
    )


def test_an_exception_in_get_component_configuration_is_wrapped() -> None:
    def fails(self):
        raise OSError("no file")

    assert problem_of(created(get_component_configuration=fails)) == (
        'bolt "count": Mine.get_component_configuration raised OSError: no file'
    )


def test_component_configuration_is_a_mapping() -> None:
    assert problem_of(created(get_component_configuration=lambda self: ["x"])) == (
        "bolt \"count\": Mine.get_component_configuration must return a mapping or None, not ['x'] (list)"
    )


def test_component_configuration_is_checked() -> None:
    with pytest.raises(ConfigError) as caught:
        created(get_component_configuration=lambda self: {Config.TOPOLOGY_TICK_TUPLE_FREQ_SECS: "10"})()
    assert str(caught.value) == (
        'bolt "count", Mine.get_component_configuration: topology.tick.tuple.freq.secs '
        "must be an int of at least 1, not '10' (str)"
    )


def test_declared_configuration_is_checked_at_once() -> None:
    bolt = TopologyBuilder().set_bolt("count", Count())
    with pytest.raises(ConfigError) as caught:
        bolt.add_configuration("topology.tick.tuple.freq.sec", 10)
    assert str(caught.value) == (
        'bolt "count": unknown key "topology.tick.tuple.freq.sec". Did you mean "topology.tick.tuple.freq.secs"?'
    )
    with pytest.raises(ConfigError, match=r'bolt "count": topology.workers is a setting of the whole topology'):
        bolt.add_configuration(Config.TOPOLOGY_WORKERS, 2)
    with pytest.raises(ConfigError, match=r'bolt "count": nimbus.seeds is a setting of the cluster'):
        bolt.add_configuration(Config.NIMBUS_SEEDS, ["a"])
    with pytest.raises(ConfigError, match="at least 1, not 0"):
        bolt.set_max_spout_pending(0)
    assert "add_configurations takes a mapping, not 'x' (str)" in problem_of(
        lambda: bolt.add_configurations("x")  # type: ignore[arg-type]
    )
