"""The nodes of a parsed expression. Each has the position in the text that an error points at."""

from __future__ import annotations

from dataclasses import dataclass

Value = str | int | float | bool | None


@dataclass(frozen=True)
class Literal:
    """A text, a number, `true`, `false` or `null`."""

    position: int
    value: Value


@dataclass(frozen=True)
class Root:
    """The root of a path: `payload` or `headers` of a message."""

    position: int
    name: str


@dataclass(frozen=True)
class Item:
    """`of.key` or `of[key]`."""

    position: int
    of: Node
    key: Node


@dataclass(frozen=True)
class Call:
    """`of.name(arguments)`: one of the functions in the table."""

    position: int
    of: Node
    name: str
    arguments: tuple[Node, ...]


@dataclass(frozen=True)
class Unary:
    """`-of` or `!of`."""

    position: int
    sign: str
    of: Node


@dataclass(frozen=True)
class Binary:
    """`left sign right`."""

    position: int
    sign: str
    left: Node
    right: Node


@dataclass(frozen=True)
class Choice:
    """`test ? yes : no`."""

    position: int
    test: Node
    yes: Node
    no: Node


Node = Literal | Root | Item | Call | Unary | Binary | Choice
