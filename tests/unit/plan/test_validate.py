"""Every rule of a whole topology, with the message that its violation gives."""

from __future__ import annotations

import pytest

from storm_on_spark.api import (
    BaseBasicBolt,
    BaseRichSpout,
    ComponentKind,
    ComponentSpec,
    Fields,
    GlobalStreamId,
    Grouping,
    InvalidTopologyError,
    ShuffleGrouping,
    Topology,
    TopologyBuilder,
)
from storm_on_spark.plan.compile import compile_graph


class Spout(BaseRichSpout):
    def next_tuple(self): ...

    def declare_output_fields(self, declarer):
        declarer.declare(Fields("word", "day"))
        declarer.declare_stream("errors", ["reason"])
        declarer.declare_stream("control", ["signal"], direct=True)


class Bolt(BaseBasicBolt):
    def execute(self, tup, collector): ...

    def declare_output_fields(self, declarer):
        declarer.declare(Fields("word"))


class Silent(Bolt):
    def declare_output_fields(self, declarer): ...


class Undecided(Bolt):
    stateless = "maybe"


class OwnGrouping(Grouping):
    def describe(self):
        return "own"


@pytest.fixture
def builder():
    builder = TopologyBuilder()
    builder.set_spout("words", Spout())
    return builder


def problems(builder: TopologyBuilder) -> list[str]:
    with pytest.raises(InvalidTopologyError) as caught:
        compile_graph(builder.create_topology())
    return str(caught.value).split("\n")


def test_a_valid_topology_has_no_problem(builder):
    bolt = builder.set_bolt("b", Bolt()).shuffle_grouping("words").all_grouping("words", "errors")
    bolt.direct_grouping("words", "control")
    compile_graph(builder.create_topology())


def test_no_spout():
    builder = TopologyBuilder()
    assert problems(builder) == ["the topology has no spout, so nothing would ever happen; add one with set_spout"]


def test_a_bolt_without_input(builder):
    builder.set_bolt("count", Bolt())
    assert problems(builder) == [
        'bolt "count": has no inputs; subscribe it, as in set_bolt("count", ...).shuffle_grouping(...)'
    ]


def test_an_unknown_component(builder):
    builder.set_bolt("count", Bolt()).shuffle_grouping("wrods")
    assert problems(builder) == [
        'bolt "count": the shuffle grouping names an unknown component "wrods"; there are: "words", "count".'
        ' Did you mean "words"?'
    ]


def test_an_unknown_stream(builder):
    builder.set_bolt("count", Bolt()).shuffle_grouping("words", "eror")
    assert problems(builder) == [
        'bolt "count": the shuffle grouping names a stream "eror" that "words" doesn\'t have; '
        'it has: "default", "errors", "control". Did you mean "errors"?'
    ]


def test_a_stream_of_a_component_that_emits_nothing(builder):
    builder.set_bolt("silent", Silent()).shuffle_grouping("words")
    builder.set_bolt("count", Bolt()).shuffle_grouping("silent")
    assert problems(builder) == [
        'bolt "count": the shuffle grouping names stream "default" of "silent", which declares no streams at all'
    ]


@pytest.mark.parametrize("grouping", ["fields", "partial_key"])
def test_an_unknown_field(builder, grouping):
    bolt = builder.set_bolt("count", Bolt())
    getattr(bolt, f"{grouping}_grouping")("words", Fields("day", "wrod"))
    assert problems(builder) == [
        f'bolt "count": the {grouping}(day, wrod) grouping names a field "wrod" that stream "default" of '
        '"words" doesn\'t have; it has: "word", "day". Did you mean "word"?'
    ]


def test_direct_grouping_of_a_stream_that_is_not_direct(builder):
    builder.set_bolt("count", Bolt()).direct_grouping("words")
    assert problems(builder) == [
        'bolt "count": the direct grouping needs a direct stream, but stream "default" of "words" is none; '
        "declare it with direct=True"
    ]


def test_another_grouping_of_a_direct_stream(builder):
    builder.set_bolt("count", Bolt()).all_grouping("words", "control")
    assert problems(builder) == [
        'bolt "count": the all grouping can\'t be used on stream "control" of "words", which is direct; '
        "use direct_grouping"
    ]


def test_a_grouping_that_nobody_knows(builder):
    builder.set_bolt("count", Bolt()).grouping(GlobalStreamId("words"), OwnGrouping())
    assert problems(builder)[0].startswith(
        'bolt "count": OwnGrouping is not a known grouping; there are: ShuffleGrouping, FieldsGrouping, '
    )


def test_a_cycle_that_no_spout_feeds(builder):
    builder.set_bolt("b", Bolt()).shuffle_grouping("c")
    builder.set_bolt("c", Bolt()).shuffle_grouping("a")
    builder.set_bolt("a", Bolt()).shuffle_grouping("b")
    builder.set_bolt("after", Bolt()).shuffle_grouping("c").shuffle_grouping("words")
    assert problems(builder) == [
        'bolt "a": the cycle "a" -> "c" -> "b" -> "a" is fed by no spout, so no tuple would ever enter it; '
        "subscribe one of its bolts to a spout or to a bolt that a spout feeds"
    ]


def test_two_cycles_that_no_spout_feeds(builder):
    builder.set_bolt("a", Bolt()).shuffle_grouping("a")
    builder.set_bolt("b", Bolt()).shuffle_grouping("b")
    builder.set_bolt("c", Bolt()).shuffle_grouping("a").shuffle_grouping("b")
    assert [line.partition(" is fed")[0] for line in problems(builder)] == [
        'bolt "a": the cycle "a" -> "a"',
        'bolt "b": the cycle "b" -> "b"',
    ]


def test_a_cycle_that_a_spout_feeds_is_legal(builder):
    builder.set_bolt("a", Bolt()).shuffle_grouping("words").shuffle_grouping("b")
    builder.set_bolt("b", Bolt()).shuffle_grouping("a")
    compile_graph(builder.create_topology())


def test_stateless_must_be_a_bool(builder):
    builder.set_bolt("count", Undecided()).shuffle_grouping("words")
    assert problems(builder) == [
        "bolt \"count\": stateless must be True, False or None, not 'maybe' (str)",
    ]


@pytest.mark.parametrize(("secs", "shown"), [(0, "0 (int)"), (0.5, "0.5 (float)"), (True, "True (bool)")])
def test_turns_are_whole_seconds_apart(builder, secs, shown):
    bolt = Bolt()
    bolt.turn_secs = secs
    builder.set_bolt("count", bolt).shuffle_grouping("words")
    assert problems(builder) == [f'bolt "count": turn_secs must be a whole number of seconds or None, not {shown}']


def test_what_a_builder_would_refuse_is_refused_without_one_too():
    inputs = ((GlobalStreamId("__b"), ShuffleGrouping()),)
    spout = ComponentSpec("a", ComponentKind.SPOUT, Spout(), 1, None, {}, {}, inputs)
    bolt = ComponentSpec("__b", ComponentKind.BASIC_BOLT, Bolt(), 1, None, {}, {}, ())
    with pytest.raises(InvalidTopologyError) as caught:
        compile_graph(Topology({"a": spout, "__b": bolt}))
    assert str(caught.value).split("\n") == [
        'spout "a": subscribes to "__b", but a spout has no inputs',
        'bolt "__b": ids that start with "__" are reserved for the system',
        'bolt "__b": has no inputs; subscribe it, as in set_bolt("__b", ...).shuffle_grouping(...)',
    ]


def test_all_problems_are_told_at_once_and_the_first_is_named(builder):
    builder.set_bolt("a", Bolt()).shuffle_grouping("words", "x").fields_grouping("nobody", Fields("y"))
    builder.set_bolt("b", Bolt())
    with pytest.raises(InvalidTopologyError) as caught:
        compile_graph(builder.create_topology())
    assert len(str(caught.value).split("\n")) == 3
    assert (caught.value.component, caught.value.stream) == ("a", "x")


def test_what_follows_from_another_problem_is_not_told(builder):
    """Bolts behind an unknown component are not reported as unreachable as well."""
    builder.set_bolt("a", Bolt()).shuffle_grouping("nobody")
    builder.set_bolt("b", Bolt()).shuffle_grouping("a").shuffle_grouping("b")
    assert len(problems(builder)) == 1
