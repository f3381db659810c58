"""The parser of expressions, written by hand: one method per level of precedence."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final, NamedTuple

from storm_on_spark.xd.expressions.errors import ExpressionError
from storm_on_spark.xd.expressions.functions import FUNCTIONS
from storm_on_spark.xd.expressions.model import Binary, Call, Choice, Item, Literal, Node, Root, Unary

MESSAGE: Final = ("payload", "headers")
"""The roots of an expression over a message."""
MAXIMUM_LENGTH: Final = 4096
"""Characters that an expression may have."""
MAXIMUM_DEPTH: Final = 50
"""Levels of an expression: each operator, bracket, property and call is one."""

_TOKEN = re.compile(
    r"\s*(?:(?P<number>[0-9]{1,18}(?:\.[0-9]{1,18})?(?![0-9A-Za-z_]))|(?P<word>[A-Za-z_][A-Za-z0-9_]*)"
    r"|(?P<text>'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\")|(?P<sign>==|!=|<=|>=|&&|\|\||[-+*/%<>!?:.,()\[\]])|(?P<end>$))"
)
_JSON_PATH: Final = re.compile(
    r"""#jsonPath\(\s*payload\s*,\s*(?:'\$|"\$)((?:\.[A-Za-z_][A-Za-z0-9_]{0,99}|\[[0-9]{1,9}\]){1,50})['"]"""
)
"""A path that is also an expression here."""
_LITERALS: Final = {"true": True, "false": False, "null": None}
_WORDS: Final = {
    "and": "&&", "or": "||", "not": "!", "eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">=",
}  # fmt: skip
_LEVELS: Final = (("||",), ("&&",), ("==", "!=", "<", "<=", ">", ">="), ("+", "-"), ("*", "/", "%"))
"""Operators by precedence, the weakest first."""


class _Token(NamedTuple):
    kind: str
    text: str
    position: int


def parse(text: str, roots: Sequence[str] = MESSAGE) -> Node:
    """Returns the tree of an expression.

    Args:
        text: the expression.
        roots: the names that it may begin with.

    Raises:
        ExpressionError: the text is not an expression, or exceeds a limit.
    """
    if len(text) > MAXIMUM_LENGTH:
        raise ExpressionError("", 0, f"Expected at most {MAXIMUM_LENGTH} characters, got {len(text)}")
    return _Parser(text, tuple(roots)).whole()


class _Parser:
    def __init__(self, text: str, roots: tuple[str, ...]) -> None:
        self._text = text
        self._given = roots
        self._tokens = self._read()
        self._at = 0
        self._depth = 0

    def _read(self) -> list[_Token]:
        tokens: list[_Token] = []
        at = 0
        while not tokens or tokens[-1].kind != "end":
            match = _TOKEN.match(self._text, at)
            if match is None or match.lastgroup is None:
                raise self._unread(at)
            kind, found = match.lastgroup, match[match.lastgroup]
            if kind == "word" and found in _WORDS and not (tokens and tokens[-1].text == "."):
                kind, found = "sign", _WORDS[found]
            tokens.append(_Token(kind, found, match.start(match.lastgroup)))
            at = match.end()
        return tokens

    def _unread(self, at: int) -> ExpressionError:
        """Returns the error for a position where no token begins."""
        at += len(self._text[at:]) - len(self._text[at:].lstrip())
        got = self._text[at : at + 20]
        if got.startswith("#jsonPath"):
            path = _JSON_PATH.match(self._text, at)
            instead = f"payload{path[1]}" if path else "a path such as payload.user.name or payload['user'][0]"
            message = f"Expected no #jsonPath: put the module json-to-tuple before this one, and write {instead}"
        elif got[0] == "#":
            message = f"Expected a value or an operator, got {got!r}; there are no variables and no functions with '#'"
        else:
            what = "a closing quote" if got[0] in "'\"" else "a value or an operator"
            message = f"Expected {what}, got {got!r}"
        return ExpressionError(self._text, at, message)

    def whole(self) -> Node:
        node = self._choice()
        if self._next.kind != "end":
            raise self._error(f"Expected an operator or the end, got {self._next.text!r:.50}")
        return node

    @property
    def _next(self) -> _Token:
        return self._tokens[self._at]

    def _choice(self) -> Node:
        self._deeper()
        node = self._binary(0)
        if token := self._take("?"):
            yes = self._choice()
            self._need(":")
            node = Choice(token.position, node, yes, self._choice())
        self._depth -= 1
        return node

    def _binary(self, level: int) -> Node:
        if level == len(_LEVELS):
            return self._unary()
        node = self._binary(level + 1)
        before = self._depth
        while token := self._take(*_LEVELS[level]):
            # The tree of a chain is as deep as the chain is long.
            self._deeper()
            node = Binary(token.position, token.text, node, self._binary(level + 1))
        self._depth = before
        return node

    def _unary(self) -> Node:
        if token := self._take("-", "!"):
            self._deeper()
            node = Unary(token.position, token.text, self._unary())
            self._depth -= 1
            return node
        return self._path()

    def _path(self) -> Node:
        node = self._value()
        before = self._depth
        while token := self._take(".", "["):
            self._deeper()
            if token.text == "[":
                node = Item(token.position, node, self._choice())
                self._need("]")
                continue
            name = self._next
            if name.kind != "word":
                raise self._error("Expected the name of a property or function after '.'")
            self._at += 1
            node = (
                self._call(node, name)
                if self._take("(")
                else Item(name.position, node, Literal(name.position, name.text))
            )
        self._depth = before
        return node

    def _call(self, of: Node, name: _Token) -> Node:
        if name.text not in FUNCTIONS:
            some = ", ".join(sorted(FUNCTIONS))
            raise ExpressionError(self._text, name.position, f"Expected one of {some}, got {name.text!r:.50}")
        arguments: list[Node] = []
        if not self._take(")"):
            arguments.append(self._choice())
            while self._take(","):
                arguments.append(self._choice())
            self._need(")")
        _, types, least, _ = FUNCTIONS[name.text]
        if not least <= len(arguments) <= len(types):
            many = str(least) if least == len(types) else f"{least} to {len(types)}"
            message = f"Expected {many} arguments of {name.text}, got {len(arguments)}"
            raise ExpressionError(self._text, name.position, message)
        return Call(name.position, of, name.text, tuple(arguments))

    def _value(self) -> Node:
        kind, text, position = self._next
        if kind == "end":
            raise self._error("Expected a value, got the end")
        self._at += 1
        if kind == "number":
            return Literal(position, float(text) if "." in text else int(text))
        if kind == "text":
            return Literal(position, text[1:-1].replace(text[0] * 2, text[0]))
        if kind == "word" and text in _LITERALS:
            return Literal(position, _LITERALS[text])
        if kind == "word" and text in self._given:
            return Root(position, text)
        if text == "(":
            node = self._choice()
            self._need(")")
            return node
        self._at -= 1
        raise self._error(f"Expected {', '.join(self._given)}, a text in quotes, a number or '(', got {text!r:.50}")

    def _deeper(self) -> None:
        self._depth += 1
        if self._depth > MAXIMUM_DEPTH:
            raise self._error(f"Expected at most {MAXIMUM_DEPTH} levels")

    def _take(self, *signs: str) -> _Token | None:
        token = self._next
        if token.kind != "sign" or token.text not in signs:
            return None
        self._at += 1
        return token

    def _need(self, sign: str) -> None:
        if not self._take(sign):
            raise self._error(f"Expected {sign!r}, got {self._next.text!r:.50}")

    def _error(self, message: str) -> ExpressionError:
        return ExpressionError(self._text, self._next.position, message)
