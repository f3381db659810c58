"""Expressions: their values, and the position of each error."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from storm_on_spark.xd.expressions import ExpressionError, parse_expression
from storm_on_spark.xd.expressions.parsing import MAXIMUM_DEPTH, MAXIMUM_LENGTH


@pytest.mark.parametrize(
    ("text", "payload", "value"),
    [
        ("payload", "a", "a"),
        ("payload.length() > 2 and payload.contains('b')", "abc", True),
        ("payload.a[1] * 2 + 1", {"a": [1, 5]}, 11),
        ("payload['it''s']", {"it's": 1}, 1),
        ("1 + 2 * 3 - 4 / 2", None, 5),
        ("(1 + 2) * 3", None, 9),
        ("10 - 2 - 3", None, 5),
        ("7 / 2", None, 3),
        ("7 / 2.0", None, 3.5),
        ("7 % 4", None, 3),
        ("-payload", 3, -3),
        ("!(payload == 3) || false", 3, False),
        ("not payload", False, True),
        ("payload ? 'yes' : 'no'", True, "yes"),
        ("payload == 1 ? 'a' : payload == 2 ? 'b' : 'c'", 2, "b"),
        ("'a' < 'b' && 1 le 2", None, True),
        ("'it''s ' + true + null + 1", None, "it's truenull1"),
        ("payload == true", 1, False),
        ("payload != null", None, False),
        ("payload.trim().toUpperCase()", " a ", "A"),
        ("payload.substring(1, 2) + payload.substring(2)", "abc", "bc"),
        ("payload.replace('a', 'b')", "aa", "bb"),
        ("payload.split(' ')", "a b", ["a", "b"]),
        ("payload.indexOf('b')", "ab", 1),
        ("payload.size()", [1, 2], 2),
        ("payload.isEmpty()", "", True),
        ("payload.startsWith('a') and payload.endsWith('c')", "abc", True),
        ("payload.not", {"not": 1}, 1),
        ("false && payload.missing", {}, False),
        ("headers.n", None, 7),
    ],
)
def test_value(text: str, payload: Any, value: Any) -> None:
    found = parse_expression(text).value(payload, {"n": 7})
    assert (found, type(found)) == (value, type(value))


@pytest.mark.parametrize(
    ("text", "position"),
    [
        ("", 0),
        ("payload +", 9),
        ("payload.", 8),
        ("payload.foo()", 8),
        ("payload.length(1)", 8),
        ("payload.length(", 15),
        ("other", 0),
        ("'open", 0),
        ("  #", 2),
        ("(1", 2),
        ("1 2", 2),
        ("1 ? 2", 5),
        ("1a", 0),
        ("payload[1", 9),
        ("(" * 100, MAXIMUM_DEPTH),
        ("!" * 100 + "true", MAXIMUM_DEPTH),
        ("1" * 19, 0),
    ],
)
def test_what_is_no_expression(text: str, position: int) -> None:
    with pytest.raises(ExpressionError) as caught:
        parse_expression(text)
    assert caught.value.position == position


@pytest.mark.parametrize(
    ("text", "payload", "position"),
    [
        ("payload.__class__", "a", 8),
        ("payload.b", {"a": 1}, 8),
        ("payload[2]", [1], 7),
        ("payload[-1]", [1], 7),
        ("1 / 0", None, 2),
        ("1.0 % 0", None, 4),
        ("payload + 1", None, 8),
        ("payload < 'a'", 1, 8),
        ("payload && true", 1, 0),
        ("-payload", "a", 0),
        ("payload.length()", 1, 8),
        ("payload.substring(2, 1)", "abc", 8),
        ("payload.substring(true)", "abc", 8),
        ("payload.split('')", "abc", 8),
        ("payload.contains(payload)", [1], 8),
        ("payload * payload", 1 << 4000, 8),
        ("payload * payload", 1e308, 8),
        ("payload + payload", "a" * 600_000, 8),
        ("payload.replace('a', payload)", "a" * 2000, 8),
    ],
)
def test_what_has_no_value(text: str, payload: Any, position: int) -> None:
    with pytest.raises(ExpressionError) as caught:
        parse_expression(text).value(payload)
    assert caught.value.position == position


@pytest.mark.parametrize(
    ("text", "position", "instead"),
    [
        ("#jsonPath(payload,'$.user.names[0]') == 'a'", 0, "write payload.user.names[0]"),
        ("1 + #jsonPath(payload, '$..name')", 4, "write a path such as payload.user.name or payload['user'][0]"),
        ("#jsonPath(headers, '$.a')", 0, "put the module json-to-tuple before this one"),
        ("#root.payload", 0, "there are no variables and no functions with '#'"),
    ],
)
def test_what_spring_xd_has_with_a_hash_is_refused_with_what_to_use(text: str, position: int, instead: str) -> None:
    with pytest.raises(ExpressionError, match=re.escape(instead)) as caught:
        parse_expression(text)
    assert caught.value.position == position


def test_a_test_is_true_or_false() -> None:
    with pytest.raises(ExpressionError, match="Expected true or false, got an integer"):
        parse_expression("payload").test(1)


def test_an_error_has_a_caret_and_long_texts_are_refused() -> None:
    with pytest.raises(ExpressionError) as caught:
        parse_expression("1 +\n  * 2")
    assert str(caught.value).splitlines()[1:] == ["  * 2", "  ^"]
    with pytest.raises(ExpressionError, match=f"at most {MAXIMUM_LENGTH} characters"):
        parse_expression(" " * (MAXIMUM_LENGTH + 1))


_WORDS = st.sampled_from([*"()[].,?:+-*/%<>! '\"12a", "payload", "headers", "==", "&&", "||", "and", "length", "split"])
_PAYLOADS = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=5,
)


@given(st.lists(_WORDS, max_size=30).map(" ".join) | st.text(), _PAYLOADS)
def test_any_text_has_a_value_or_a_position_in_it(text: str, payload: Any) -> None:
    position = 0
    try:
        parse_expression(text).value(payload)
    except ExpressionError as error:
        position = error.position
    assert 0 <= position <= len(text)


_OPERANDS = st.integers(0, 99)


@given(st.lists(st.tuples(st.sampled_from("+-*"), _OPERANDS), max_size=12), _OPERANDS)
def test_arithmetic_is_pythons(steps: list[tuple[str, int]], first: int) -> None:
    text = " ".join([str(first), *(f"{sign} {number}" for sign, number in steps)])
    assert parse_expression(text).value(None) == eval(text)  # the oracle: digits and three signs


@given(st.text())
def test_a_quoted_text_is_itself(text: str) -> None:
    assert parse_expression("'" + text.replace("'", "''") + "'").value(None) == text
