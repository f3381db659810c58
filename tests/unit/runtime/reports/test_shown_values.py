"""What a component had in hand is shown shortly, in a bounded time, and without secrets."""

from __future__ import annotations

import json
import time
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from storm_on_spark.api.text.printable import is_one_line
from storm_on_spark.runtime.reports.shown_values import MOST_CHARS, input_text, values_text
from storm_on_spark.testing import make_tuple


def of(*values: Any) -> str:
    return values_text(values, [f"f{number}" for number in range(len(values))])


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.binary(),
    lambda inner: st.lists(inner) | st.tuples(inner) | st.dictionaries(st.text() | st.integers(), inner),
    max_leaves=20,
)


@given(st.lists(VALUES, max_size=8))
def test_any_values_become_one_short_line(values: list[Any]) -> None:
    text = of(*values)
    assert len(text) <= MOST_CHARS
    assert is_one_line(text)
    shown = repr(tuple(values))
    if len(shown) <= MOST_CHARS and is_one_line(shown) and "://" not in shown:
        assert text == shown


class Raises:
    def __repr__(self) -> str:
        raise ValueError("no words")


def nested(depth: int) -> list[Any]:
    found: list[Any] = []
    for _ in range(depth):
        found = [found]
    return found


def around() -> list[Any]:
    found: list[Any] = [1]
    found.append(found)
    return found


@pytest.mark.parametrize(
    "value",
    [
        "x" * 50_000_000,
        b"x" * 50_000_000,
        [[[list(range(300))] * 300] * 300] * 300,
        {number: [number] * 1000 for number in range(100_000)},
        nested(100_000),
        around(),
        10**100_000,
        Raises(),
        "\x1b[2J" * 1_000_000,
        '"password":"' * 1_000_000,
    ],
    ids=lambda value: type(value).__name__,
)
def test_large_and_odd_values_cost_no_more_than_others(value: Any) -> None:
    began = time.process_time()
    text = of("first", value)
    assert time.process_time() - began < 1
    assert text.startswith("('first', ")
    assert len(text) <= MOST_CHARS
    assert is_one_line(text)


SECRET = "hush-hush"
CARD = {"number": 1, "api_key": SECRET, "nested": [{"my.password": [SECRET]}]}


@pytest.mark.parametrize(
    ("values", "fields"),
    [
        ([SECRET], ["password"]),
        ([b"x", SECRET], ["a", "db.token"]),
        ([CARD], ["card"]),
        ([json.dumps(CARD["nested"][0]["my.password"] and {"password": SECRET, "a": 1})], ["json"]),  # type: ignore[index]
        ([json.dumps({"body": json.dumps({"access_token": SECRET, "a": 1})})], ["json"]),
        ([f"https://ann:{SECRET}@host/"], ["url"]),
        ([f"padding {'.' * 170} password={SECRET}"], ["text"]),
        ([f"https://ann:{SECRET}@host/{'x' * 500}".encode()], ["bytes"]),
    ],
)
def test_secrets_are_hidden(values: list[Any], fields: list[str]) -> None:
    text = values_text(values, fields)
    assert SECRET[:4] not in text
    assert "*****" in text or len(text) == MOST_CHARS


def test_a_batch_is_told_by_its_rows() -> None:
    assert input_text(pa.record_batch([[1, 2], ["a", "b"]], ["n", "word"])) == "a batch of 2 rows: n, word"
    assert input_text(make_tuple(["a"], ["word"])) == "('a',)"


def test_a_message_is_shown_and_the_secrets_in_it_are_not() -> None:
    message = "http://ann:hush@host", {"token": "hush"}
    assert values_text(message, ["payload", "headers"]) == "('http://ann:*****@host', {'token': *****})"
    assert values_text(["hush"], ["topology.auth.payload"]) == "(*****,)"
