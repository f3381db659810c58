"""Errors of expressions: a position and a caret under the text."""

from __future__ import annotations

from storm_on_spark.api.errors import StormError


class ExpressionError(StormError, ValueError):
    """A text that is not an expression, or has no value for a message; `position` counts characters from 0."""

    def __init__(self, text: str, position: int, message: str) -> None:
        super().__init__(text, position, message)
        self.text = text
        self.position = position
        self.message = message

    def __str__(self) -> str:
        start = self.text.rfind("\n", 0, self.position) + 1
        line = self.text[start:].split("\n", 1)[0]
        return f"(pos {self.position}): {self.message}\n{line}\n{' ' * (self.position - start)}^"
