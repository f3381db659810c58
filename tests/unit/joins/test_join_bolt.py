"""Join selection: Storm's rules of `JoinBolt`, and the kinds of joins that Storm lacks."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from storm_on_spark import Count, Duration, InvalidTopologyError, JoinBolt, OutputFieldsDeclarer, Tuple, TupleError
from storm_on_spark.testing import BoltTester, make_tuple

FIELDS = {
    "users": ["id", "name", "city"],
    "orders": ["order", "buyer", "item"],
    "stores": ["store", "shop", "city"],
    "cities": ["number", "town", "country"],
}
USERS = [(1, "ann", "oslo"), (2, "bob", "rome"), (3, "cyd", "oslo"), (4, "dan", None)]
ORDERS = [(11, 1, "book"), (12, 1, "pen"), (13, 2, "ink"), (14, 9, "ink")]
STORES = [(21, "north", "oslo"), (22, "south", "rome"), (23, "east", "riga")]
CITIES = [(31, "oslo", "norway"), (32, "riga", "latvia")]


def rows(name: str, values: list[tuple[Any, ...]], stream: str = "default") -> list[Tuple]:
    return [make_tuple(row, FIELDS[name], name, stream) for row in values]


def declared(bolt: JoinBolt) -> Any:
    declarer = OutputFieldsDeclarer("join")
    bolt.declare_output_fields(declarer)
    return declarer.streams


def joined(bolt: JoinBolt, *streams: list[Tuple], stream: str = "default") -> list[tuple[Any, ...]]:
    tuples = [tup for found in streams for tup in found]
    tester = BoltTester(bolt.with_tumbling_window(Count(len(tuples))), [found[0] for found in streams])
    tester.execute(*tuples)
    return tester.collector.values(stream)


def test_one_stream_is_passed_on() -> None:
    assert joined(JoinBolt("users", "id").select("name,city"), rows("users", USERS[:1])) == [("ann", "oslo")]


def test_an_inner_join_has_all_pairs_with_equal_keys_in_the_order_of_the_first_stream() -> None:
    bolt = JoinBolt("users", "id").join("orders", "buyer", "users").select("name, item")
    result = joined(bolt, rows("orders", ORDERS), rows("users", USERS))
    assert result == [("ann", "book"), ("ann", "pen"), ("bob", "ink")]


def test_a_left_join_keeps_what_has_no_partner() -> None:
    bolt = JoinBolt("users", "id").left_join("orders", "buyer", "users").select("name, item")
    result = joined(bolt, rows("orders", ORDERS), rows("users", USERS))
    assert result == [("ann", "book"), ("ann", "pen"), ("bob", "ink"), ("cyd", None), ("dan", None)]


def test_a_right_join_keeps_what_is_new_without_a_partner() -> None:
    bolt = JoinBolt("users", "id").right_join("orders", "buyer", "users").select("name, item")
    result = joined(bolt, rows("orders", ORDERS), rows("users", USERS))
    assert result == [("ann", "book"), ("ann", "pen"), ("bob", "ink"), (None, "ink")]


def test_a_full_join_keeps_both() -> None:
    bolt = JoinBolt("users", "id").full_join("orders", "buyer", "users").select("name, item")
    result = joined(bolt, rows("orders", ORDERS), rows("users", USERS))
    assert Counter(result[-3:]) == Counter([("cyd", None), ("dan", None), (None, "ink")])


def test_a_tuple_whose_key_is_missing_or_none_is_in_no_result() -> None:
    bolt = JoinBolt("users", "city").left_join("stores", "city", "users").select("name, shop")
    assert ("dan", None) not in joined(bolt, rows("users", USERS), rows("stores", STORES))
    bolt = JoinBolt("users", "village").left_join("stores", "city", "users").select("name, shop")
    assert joined(bolt, rows("users", USERS), rows("stores", STORES)) == []
    bolt = JoinBolt("stores", "city").full_join("users", "city", "stores").select("name, shop")
    assert ("dan", None) not in joined(bolt, rows("users", USERS), rows("stores", STORES))


def test_three_streams_are_joined_by_the_key_of_the_one_named() -> None:
    def of(prior: str) -> list[tuple[Any, ...]]:
        bolt = JoinBolt("users", "city").left_join("stores", "city", "users").left_join("cities", "town", prior)
        streams = [rows("users", USERS[:3]), rows("stores", STORES[:1]), rows("cities", CITIES)]
        return joined(bolt.select("name,shop,country"), *streams)

    assert of("users") == [("ann", "north", "norway"), ("bob", None, None), ("cyd", "north", "norway")]
    # Bob has no store by which a city could be found.
    assert of("stores") == [("ann", "north", "norway"), ("cyd", "north", "norway")]


def test_fields_without_stream_are_those_of_the_first_that_has_one() -> None:
    bolt = (
        JoinBolt("users", "city").right_join("stores", "city", "users").select("city, users:city, STORES:city, :name")
    )
    (fields,) = [spec.fields.to_list() for spec in declared(bolt).values()]
    assert fields == ["city", "users:city", "STORES:city", "name"]
    result = joined(bolt, rows("users", USERS[:1]), rows("stores", STORES))
    assert result == [("oslo", "oslo", "oslo", "ann"), ("rome", None, "rome", None), ("riga", None, "riga", None)]


def test_fields_inside_of_maps() -> None:
    users = [make_tuple([{"id": 1, "at": {"city": "oslo"}}], ["user"], "users")]
    bolt = JoinBolt("users", "user.at.city").join("stores", "city", "users").select("user.id, shop, user.at.street")
    assert joined(bolt, users, rows("stores", STORES)) == [(1, "north", None)]
    deeper = JoinBolt("users", "user.id.city").join("stores", "city", "users").select("shop")
    with pytest.raises(TupleError, match="city is looked for in 1"):
        joined(deeper, users, rows("stores", STORES))


def test_streams_are_told_apart_by_their_id_if_asked() -> None:
    users, orders = rows("users", USERS, "people"), rows("orders", ORDERS, "bought")
    bolt = JoinBolt(JoinBolt.Selector.STREAM, "people", "id").join("bought", "buyer", "people").select("people:name")
    assert joined(bolt, users, orders) == [("ann",), ("ann",), ("bob",)]


def test_a_join_on_several_fields_and_on_lists() -> None:
    users = [make_tuple([1, "a", [7]], ["x", "y", "z"], "users"), make_tuple([1, "b", [8]], ["x", "y", "z"], "users")]
    orders = [make_tuple([1, "b", [7]], ["p", "q", "r"], "orders")]
    bolt = JoinBolt("users", ["x", "y"]).join("orders", ["p", "q"], "users").select("z")
    assert joined(bolt, users, orders) == [([8],)]
    assert joined(JoinBolt("users", "z").join("orders", "r", "users").select("y"), users, orders) == [("a",)]


def test_a_result_is_anchored_to_the_tuples_that_it_is_made_of() -> None:
    users, orders = rows("users", USERS), rows("orders", ORDERS)
    bolt = JoinBolt("users", "id").join("orders", "buyer", "users").select("name, item").with_output_stream("sold")
    tester = BoltTester(bolt.with_tumbling_window(Count(8)), [users[0], orders[0]])
    tester.execute(*users, *orders)
    assert {emission.stream for emission in tester.collector.emitted} == {"sold"}
    anchors = [[tup[1] for tup in emission.anchors] for emission in tester.collector.emitted]
    assert anchors == [["ann", 1], ["ann", 1], ["bob", 2]]


def test_a_sliding_window_joins_again_and_a_restart_loses_nothing() -> None:
    users, orders = rows("users", USERS), rows("orders", ORDERS)
    bolt = JoinBolt("users", "id").join("orders", "buyer", "users").select("name, item")
    bolt.with_window(Duration.seconds(4), Duration.seconds(2))
    tester = BoltTester(bolt, [users[0], orders[0]])
    for tuples in (users, orders, []):
        tester.execute(*tuples)
        tester.restart()
        tester.advance(2)
    assert tester.collector.values() == [("ann", "book"), ("ann", "pen"), ("bob", "ink")]


def test_a_tuple_of_another_stream_is_an_error() -> None:
    bolt = JoinBolt("users", "id").select("name")
    with pytest.raises(TupleError, match='a tuple of source "orders" came, which is not part of the join'):
        joined(bolt, rows("users", USERS), rows("orders", ORDERS))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: JoinBolt("users"), "takes a stream and the field"),
        (lambda: JoinBolt("users", "id").join("users", "id", "users"), "part of the join already"),
        (lambda: JoinBolt("users", "id").join("orders", "buyer", "user"), 'Did you mean "users"'),
        (lambda: JoinBolt("users", "stores:id"), "is one of stream"),
        (lambda: JoinBolt("users", ["a", "b"]).join("orders", "a", "users"), "1 and 2 fields"),
        (lambda: JoinBolt("users", []), "joined on no field"),
        (lambda: JoinBolt("users", "id").select("a,,b"), "is a text such as"),
        (lambda: BoltTester(JoinBolt("users", "id").with_tumbling_window(Count(1))), "no output fields"),
    ],
)
def test_what_makes_no_sense_is_refused(make: Any, message: str) -> None:
    with pytest.raises(InvalidTopologyError, match=message):
        make()


@pytest.mark.parametrize(
    ("join", "said"),
    [
        (JoinBolt("users", "id").join("order", "buyer", "users"), '"order", which is none of its inputs: "users", '),
        (
            JoinBolt(JoinBolt.Selector.STREAM, "late", "id"),
            '"late", which is none of its inputs by stream id: "default"',
        ),
    ],
    ids=["component", "stream"],
)
def test_a_stream_that_never_comes_is_refused(join: JoinBolt, said: str) -> None:
    bolt = join.select("id").with_tumbling_window(Count(1))
    with pytest.raises(InvalidTopologyError) as refused:
        BoltTester(bolt, [rows("users", USERS)[0], rows("orders", ORDERS)[0]])
    assert f"joins {said}" in str(refused.value)
    assert ('Did you mean "orders"?' in str(refused.value)) == (join._plan.selector is JoinBolt.Selector.SOURCE)  # noqa: SLF001


KEYS = st.sampled_from([1, 2, 3, None])


@given(st.lists(KEYS), st.lists(KEYS), st.randoms(), st.sampled_from(["join", "left_join", "right_join", "full_join"]))
def test_every_kind_agrees_with_a_naive_join(first: list[Any], second: list[Any], random: Any, kind: str) -> None:
    left = [make_tuple([key, number], ["k", "l"], "a") for number, key in enumerate(first)]
    right = [make_tuple([key, number], ["k", "r"], "b") for number, key in enumerate(second)]
    keyed = [[tup for tup in side if tup["k"] is not None] for side in (left, right)]
    expected = Counter((a["l"], b["r"]) for a in keyed[0] for b in keyed[1] if a["k"] == b["k"])
    partners = [{tup["k"] for tup in side} for side in keyed]
    if kind in ("left_join", "full_join"):
        expected.update((a["l"], None) for a in keyed[0] if a["k"] not in partners[1])
    if kind in ("right_join", "full_join"):
        expected.update((None, b["r"]) for b in keyed[1] if b["k"] not in partners[0])
    bolt = getattr(JoinBolt("a", "k"), kind)("b", "k", "a").select("l, r")
    tuples = [*left, *right]
    random.shuffle(tuples)
    samples = [make_tuple([1, 1], ["k", "l"], "a"), make_tuple([1, 1], ["k", "r"], "b")]
    with BoltTester(bolt.with_tumbling_window(Duration.seconds(1)), samples) as tester:
        tester.execute(*tuples)
        tester.advance(1)
        assert Counter(tester.collector.values()) == expected
