"""Tuples that tests make."""

from __future__ import annotations

import pytest

from storm_on_spark import Fields, TupleError
from storm_on_spark.testing import make_tick_tuple, make_tuple


def test_a_made_tuple_has_the_values_and_origin_that_were_given() -> None:
    tup = make_tuple(["storm", 3], ["word", "count"], component="split", stream="words", task=7)
    assert (tup["word"], tup["count"], tup.values) == ("storm", 3, ["storm", 3])
    assert (tup.source_component, tup.source_stream, tup.source_task) == ("split", "words", 7)
    assert not tup.is_tick


def test_without_names_there_are_default_names() -> None:
    assert make_tuple(["a"]).fields == Fields("value")
    assert make_tuple(["a", "b"]).fields == Fields("value0", "value1")
    assert make_tuple([]).fields == Fields()


def test_each_tuple_is_the_root_of_a_tree_of_its_own_unless_told_otherwise() -> None:
    one, other = make_tuple(["a"]), make_tuple(["a"])
    assert len(one.message_id) == 1
    assert one.message_id.keys().isdisjoint(other.message_id)
    assert make_tuple(["a"], roots=()).message_id == {}
    assert make_tuple(["a"], roots=(5, 6)).message_id.keys() == {5, 6}


def test_values_and_fields_must_fit() -> None:
    with pytest.raises(TupleError, match=r"1 value\(s\) for 2 field\(s\) \(word, count\): \['a'\]"):
        make_tuple(["a"], ["word", "count"])
    with pytest.raises(TupleError, match=r"not the text 'word'; give \['word'\]"):
        make_tuple("word")


def test_a_tick_tuple_is_one_of_the_system() -> None:
    tick = make_tick_tuple(5)
    assert tick.is_tick
    assert (tick.source_component, tick.source_stream, tick.source_task) == ("__system", "__tick", -1)
    assert tick["rate_secs"] == 5
    assert tick.message_id == {}
