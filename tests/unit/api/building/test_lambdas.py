"""Functions as spouts and bolts."""

from __future__ import annotations

import re
from typing import Any

import pytest

from storm_on_spark.api import BaseBasicBolt, ComponentKind, Fields, InvalidTopologyError, TopologyBuilder
from storm_on_spark.testing import BoltTester, make_tuple

total = 0


def line(text: str) -> Any:
    return make_tuple([text], fields=["line"])


def component(function: Any, **options: Any) -> Any:
    builder = TopologyBuilder()
    builder.set_bolt("x", function, **options)
    return builder.create_topology()["x"]


def test_a_function_of_a_tuple_and_a_collector_is_a_basic_bolt() -> None:
    spec = component(lambda tup, out: [out.emit([word]) for word in tup["line"].split()], fields="word")
    assert spec.kind is ComponentKind.BASIC_BOLT
    assert spec.streams["default"].fields == Fields("word")
    tester = BoltTester(spec.component)
    tester.execute(line("storm on spark"))
    assert tester.collector.values() == [("storm",), ("on",), ("spark",)]


def test_a_function_of_a_tuple_alone_consumes() -> None:
    seen = []

    def show(tup: Any) -> None:
        print(tup["line"])

    spec = component(show)
    assert not spec.streams
    tester = BoltTester(spec.component)
    tester.execute(line("storm"))
    assert seen == tester.collector.values() == []


def test_a_function_without_arguments_is_a_spout_with_storms_field() -> None:
    builder = TopologyBuilder()
    builder.set_spout("one", lambda: 1)
    builder.set_spout("two", lambda: (1, 2), fields=["a", "b"])
    topology = builder.create_topology()
    assert topology["one"].streams["default"].fields == Fields("lambda")
    assert topology["two"].streams["default"].fields == Fields("a", "b")


def _closing_over(value: Any) -> Any:
    return lambda tup, out: out.emit([value])


def _counting() -> Any:
    count = 0

    def bolt(tup: Any, out: Any) -> None:
        nonlocal count
        count += 1
        out.emit([count])

    return bolt


def _counting_deeper() -> Any:
    count = 0

    def bolt(tup: Any, out: Any) -> None:
        def add() -> None:
            nonlocal count
            count += 1

        add()
        out.emit([count])

    return bolt


def _counting_beside() -> Any:
    counting = _counting()
    return lambda tup, out: counting(tup, out)


def _adding_up(tup: Any, out: Any) -> None:
    global total
    total += tup[0]


@pytest.mark.parametrize(
    ("function", "problem"),
    [
        (_closing_over([]), "captures value, [] (list)"),
        (_closing_over(([],)), "captures value, ([],) (tuple)"),
        (_closing_over([].append), "captures value, <built-in method append"),
        (_counting(), "assigns count, a variable outside of it"),
        (_counting_deeper(), "assigns count, a variable outside of it"),
        (_counting_beside(), "assigns count, a variable outside of it"),
        (_adding_up, "assigns total, a variable outside of it"),
        (lambda tup, out, seen=set(): seen.add(tup[0]), "keeps the default argument seen, set() (set)"),
    ],
)
def test_a_function_that_keeps_state_is_refused(function: Any, problem: str) -> None:
    with pytest.raises(InvalidTopologyError, match=re.escape(problem)) as caught:
        component(function, fields="x")
    assert str(caught.value).startswith('bolt "x": the function ')
    assert str(caught.value).endswith("write a class, whose attributes do")
    assert caught.value.component == "x"


@pytest.mark.parametrize(
    "value", [1, "a", (1, ("b",)), frozenset({2}), re.compile("a"), re, str.upper, len, Fields, line]
)
def test_what_cannot_change_may_be_captured(value: Any) -> None:
    assert component(_closing_over(value), fields="x").component.function.__closure__[0].cell_contents is value


async def _async(tup: Any, out: Any) -> None: ...


def _generator(tup: Any, out: Any) -> Any:
    yield 1


class _Bolt(BaseBasicBolt):
    def execute(self, tup: Any, collector: Any) -> None: ...


@pytest.mark.parametrize(
    ("bolt", "fields", "problem"),
    [
        (lambda: None, None, "is called with (tup, collector) or (tup), but takes ()"),
        (lambda a, b, c: None, None, "but takes (a, b, c)"),
        (_async, None, "is async"),
        (_generator, None, "is a generator"),
        (lambda tup: None, ["a", "a"], "a"),
        (_Bolt(), "word", "fields are for functions; _Bolt declares its own"),
    ],
)
def test_what_is_no_bolt_is_refused(bolt: Any, fields: Any, problem: str) -> None:
    with pytest.raises(InvalidTopologyError, match=re.escape(problem)):
        component(bolt, fields=fields)


def test_a_spout_takes_nothing_and_emits_something() -> None:
    builder = TopologyBuilder()
    with pytest.raises(
        InvalidTopologyError, match=r'^spout "s": the function .* is called with nothing, but takes \(a\)$'
    ):
        builder.set_spout("s", lambda a: a)
    with pytest.raises(InvalidTopologyError, match=r'^spout "s": .* needs at least one field$'):
        builder.set_spout("s", lambda: 1, fields=[])
