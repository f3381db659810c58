"""Errors of the language: a stable code, a position and a caret under the input."""

from __future__ import annotations

from enum import Enum


class Code(Enum):
    """The kinds of errors. The value is the code that a message starts with."""

    EMPTY = "XD100E"
    TOO_LONG = "XD101E"
    UNCLOSED_QUOTE = "XD102E"
    EXPECTED_MODULE = "XD103E"
    EXPECTED_OPTION = "XD104E"
    EXPECTED_VALUE = "XD105E"
    EXPECTED_CHANNEL = "XD106E"
    DUPLICATE_OPTION = "XD107E"
    DUPLICATE_LABEL = "XD108E"
    UNEXPECTED_TEXT = "XD109E"
    NAMED_LIKE_MODULE = "XD110E"
    NAME = "XD111E"
    UNKNOWN_MODULE = "XD112E"
    UNKNOWN_OPTION = "XD113E"
    BAD_VALUE = "XD114E"
    MISSING_OPTION = "XD115E"
    INCOMPLETE = "XD116E"
    NOT_FUSED = "XD117E"
    UNKNOWN_STREAM = "XD118E"
    TRANSITION = "XD119E"


class DslError(ValueError):
    """A text that is not a valid definition; `position` counts characters from 0."""

    def __init__(self, code: Code, text: str, position: int, message: str) -> None:
        super().__init__(code, text, position, message)
        self.code = code
        self.text = text
        self.position = position
        self.message = message

    def __str__(self) -> str:
        start = self.text.rfind("\n", 0, self.position) + 1
        line = self.text[start:].split("\n", 1)[0]
        caret = " " * (self.position - start) + "^"
        return f"{self.code.value}: (pos {self.position}): {self.message}\n{line}\n{caret}"
