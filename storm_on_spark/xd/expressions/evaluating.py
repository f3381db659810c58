"""The value of an expression for a message: a walk over its tree, without `eval` and without attributes of objects."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from storm_on_spark.xd.expressions.errors import ExpressionError
from storm_on_spark.xd.expressions.functions import FUNCTIONS, MAXIMUM_TEXT
from storm_on_spark.xd.expressions.model import Binary, Call, Choice, Item, Literal, Node, Root, Unary
from storm_on_spark.xd.expressions.parsing import MESSAGE, parse

_MAXIMUM_BITS: Final = 4096
_NUMBERS: Final[Mapping[str, Callable[[Any, Any], Any]]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "%": operator.mod,
}
_ORDERS: Final[Mapping[str, Callable[[Any, Any], bool]]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
_KINDS: Final = {str: "a text", bool: "true or false", int: "an integer", float: "a number", list: "a list"}


@dataclass(frozen=True)
class Expression:
    """An expression, parsed."""

    text: str
    node: Node

    def value(self, payload: Any, headers: Mapping[str, Any] | None = None) -> Any:
        """Returns the value for a message.

        Raises:
            ExpressionError: a property is missing, or a value has the wrong type.

        Example:
            >>> parse_expression("payload.contains('b') ? payload.length() : 0").value("abc")
            3
        """
        return self.of({"payload": payload, "headers": headers or {}})

    def of(self, roots: Mapping[str, Any]) -> Any:
        """Returns the value of an expression with other roots than a message's.

        Raises:
            ExpressionError: a property is missing, or a value has the wrong type.

        Example:
            >>> parse_expression("groups.contains('io')", roots=("groups",)).of({"groups": ["io"]})
            True
        """
        return _Evaluation(self.text, roots).value(self.node)

    def test(self, payload: Any, headers: Mapping[str, Any] | None = None) -> bool:
        """Returns the value, which must be true or false.

        Raises:
            ExpressionError: it is something else, or there is none.
        """
        value = self.value(payload, headers)
        if not isinstance(value, bool):
            raise ExpressionError(self.text, 0, f"Expected true or false, got {_kind(value)}")
        return value


def parse_expression(text: str, roots: Sequence[str] = MESSAGE) -> Expression:
    """Parses an expression.

    Args:
        text: the expression.
        roots: the names that it may begin with.

    Raises:
        ExpressionError: the text is not an expression, or exceeds a limit.
    """
    return Expression(text, parse(text, roots))


class _Evaluation:
    def __init__(self, text: str, roots: Mapping[str, Any]) -> None:
        self._text = text
        self._roots = roots

    def value(self, node: Node) -> Any:
        match node:
            case Literal(_, value):
                return value
            case Root(_, name):
                return self._roots[name]
            case Item():
                return self._item(node)
            case Call():
                return self._call(node)
            case Unary(_, "!", of):
                return not self._truth(of)
            case Unary(position, _, of):
                return -self._number(self.value(of), position)
            case Choice(_, test, yes, no):
                return self.value(yes if self._truth(test) else no)
            case Binary(_, "&&", left, right):
                return self._truth(left) and self._truth(right)
            case Binary(_, "||", left, right):
                return self._truth(left) or self._truth(right)
            case Binary():
                return self._binary(node)

    def _item(self, node: Item) -> Any:
        of, key = self.value(node.of), self.value(node.key)
        if isinstance(of, Mapping):
            if isinstance(key, str) and key in of:
                return of[key]
            names = ", ".join(sorted(map(str, of))[:10])
            raise self._error(node, f"Expected one of the properties {names or '(none)'}, got {key!r:.50}")
        if isinstance(of, list):
            if type(key) is int and 0 <= key < len(of):
                return of[key]
            raise self._error(node, f"Expected an index below {len(of)}, got {key!r:.50}")
        raise self._error(node, f"Expected a map or a list before {key!r:.50}, got {_kind(of)}")

    def _call(self, node: Call) -> Any:
        on, types, _, function = FUNCTIONS[node.name]
        of = self.value(node.of)
        values = [self.value(argument) for argument in node.arguments]
        if not isinstance(of, on):
            raise self._error(node, f"{node.name}() has no meaning for {_kind(of)}")
        for value, allowed in zip(values, types, strict=False):
            if not isinstance(value, allowed) or (isinstance(value, bool) and bool not in allowed):
                raise self._error(node, f"{node.name}() does not take {_kind(value)}")
        try:
            return function(of, *values)
        except (TypeError, ValueError) as error:
            raise self._error(node, f"{node.name}(): {error}") from error

    def _binary(self, node: Binary) -> Any:
        left, right = self.value(node.left), self.value(node.right)
        if node.sign in ("==", "!="):
            # In Python, True equals 1; here a truth value equals only a truth value.
            same = left == right and isinstance(left, bool) == isinstance(right, bool)
            return same if node.sign == "==" else not same
        if node.sign in _ORDERS:
            if not (isinstance(left, str) and isinstance(right, str)):
                left, right = self._number(left, node.position), self._number(right, node.position)
            return _ORDERS[node.sign](left, right)
        if node.sign == "+" and (isinstance(left, str) or isinstance(right, str)):
            text = as_text(left) + as_text(right)
            if len(text) > MAXIMUM_TEXT:
                raise self._error(node, f"Expected a text of at most {MAXIMUM_TEXT} characters, got {len(text)}")
            return text
        left, right = self._number(left, node.position), self._number(right, node.position)
        if node.sign in "/%" and right == 0:
            raise self._error(node, "Expected a divisor that is not 0")
        try:
            found = self._quotient(left, right) if node.sign == "/" else _NUMBERS[node.sign](left, right)
        except OverflowError as error:
            raise self._error(node, "Expected a smaller number") from error
        return self._number(found, node.position)

    def _quotient(self, left: float, right: float) -> float:
        """Divides: whole numbers give a whole number, rounded down, as `//` does."""
        return left // right if isinstance(left, int) and isinstance(right, int) else left / right

    def _truth(self, node: Node) -> bool:
        value = self.value(node)
        if not isinstance(value, bool):
            raise self._error(node, f"Expected true or false, got {_kind(value)}")
        return value

    def _number(self, value: Any, position: int) -> Any:
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise ExpressionError(self._text, position, f"Expected a number, got {_kind(value)}")
        if value.bit_length() > _MAXIMUM_BITS if isinstance(value, int) else not math.isfinite(value):
            raise ExpressionError(self._text, position, "Expected a smaller number")
        return value

    def _error(self, node: Node, message: str) -> ExpressionError:
        return ExpressionError(self._text, node.position, message)


def as_text(value: Any) -> str:
    """Returns a value in the notation of the language.

    >>> as_text(True), as_text(None), as_text("a")
    ('true', 'null', 'a')
    """
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    return str(value)


def _kind(value: Any) -> str:
    if value is None:
        return "null"
    return "a map" if isinstance(value, Mapping) else _KINDS.get(type(value), f"a {type(value).__name__}")
