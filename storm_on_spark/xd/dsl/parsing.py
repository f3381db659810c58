"""The parser of streams, written by hand: one method per rule of the grammar."""

from __future__ import annotations

import re
from typing import Literal, cast

from storm_on_spark.xd.dsl.errors import Code, DslError
from storm_on_spark.xd.dsl.model import Channel, Module, Stream, Tap

MAXIMUM_LENGTH = 65_536
"""Characters that a definition may have."""

WORD = r"[A-Za-z_][A-Za-z0-9_-]*"
_NAME = re.compile(rf"({WORD})\s*=")
_CHANNEL = re.compile(rf"(queue|topic):({WORD}(?::{WORD})*)")
_TAP = re.compile(
    rf"tap:(?:(stream|job):({WORD})(?:\.({WORD})(?:\.([0-9]{{1,9}}))?)?|(queue|topic):({WORD}(?::{WORD})*))"
)
_CHANNEL_BEGUN = re.compile(r":|(?:tap|queue|topic):")
_SHORT_TAP = re.compile(rf":({WORD})\.({WORD})")
_OPTION = re.compile(rf"--({WORD}(?:\.[A-Za-z0-9_-]+)*)=")
QUOTED = {
    quote: re.compile(rf"{quote}([^{quote}]*(?:{quote}{quote}[^{quote}]*)*){quote}(?!{quote})") for quote in "'\""
}
IN_QUOTES = r"""'[^'\r\n]*'|"[^"\r\n]*\""""
"""The quoted parts of an unquoted value, which may have blanks, for example."""
_BARE = re.compile(rf"""(?:[^\s|>'"]|{IN_QUOTES}|['"]|>(?!\s*(?:queue|topic):))+""")
"""A `>` before a channel ends a value, as in Spring XD's parser. There, any other `>` is an error."""
_SPACE = re.compile(r"\s*")


def parse_stream(text: str, name: str | None = None) -> Stream:
    """Parses the definition of a stream.

    Args:
        text: the definition.
        name: the stream's name; None if the text may give one, as in `ticktock = time | log`.

    Raises:
        DslError: the text is not a stream, or gives another name; with a code and a position.

    Example:
        >>> [module.name for module in parse_stream("time --fixedDelay=1 | log").modules]
        ['time', 'log']
    """
    if len(text) > MAXIMUM_LENGTH:
        message = f"Expected at most {MAXIMUM_LENGTH} characters, got {len(text)}"
        raise DslError(Code.TOO_LONG, "", 0, message)
    return Parser(text).stream(name)


class Parser:
    """Reads a text from its beginning.

    Args:
        text: the definition.
    """

    bare: re.Pattern[str] = _BARE
    """A value without quotes."""
    module: re.Pattern[str] = re.compile(rf"(?:({WORD}):\s*)?({WORD})")
    """The label of a module, if it has one, and the name."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0

    def stream(self, name: str | None) -> Stream:
        """See `parse_stream`."""
        self._skip()
        if self._at == len(self._text):
            raise self._error(Code.EMPTY, "Expected a stream, got an empty text")
        name = self._name(name, "stream")
        source = self._source()
        sink = self._sink() if source is not None and self._take_arrow_channel() else None
        if sink is not None:
            modules: tuple[Module, ...] = (Module("bridge", "bridge"),)
        else:
            modules = self._modules(name)
            if self._peek(">"):
                self._at += 1
                self._skip()
                sink = self._sink()
        self._skip()
        if self._at < len(self._text):
            raise self._error(Code.UNEXPECTED_TEXT, f"Expected the end, '|' or '>', got {self._text[self._at]!r}")
        return Stream(modules, name, source, sink)

    def _name(self, name: str | None, kind: str) -> str | None:
        """Returns the given name, or that in the text; `kind` is stream or job."""
        if name is not None and not re.fullmatch(WORD, name):
            message = f"Expected a {kind}'s name of letters, digits, '_' and '-', got {name!r:.100}"
            raise DslError(Code.NAME, name[:100], 0, message)
        start = self._at
        if match := self._take(_NAME):
            if name not in (None, match[1]):
                message = f"Expected the name that was given, {name!r}, or none, got {match[1]!r}"
                raise DslError(Code.NAME, self._text, start, message)
            name = match[1]
            self._skip()
        return name

    def _take_arrow_channel(self) -> bool:
        return _CHANNEL.match(self._text, self._at) is not None

    def _source(self) -> Channel | Tap | None:
        found: Channel | Tap
        if match := self._take(_TAP):
            kind = cast(Literal["stream", "job", "queue", "topic"], match[1] or match[5])
            found = Tap(kind, match[2] or match[6], match[3], int(match[4]) if match[4] else None)
        elif match := self._take(_SHORT_TAP):
            found = Tap("stream", match[1], match[2])
        elif match := self._take(_CHANNEL):
            found = Channel(cast(Literal["queue", "topic"], match[1]), match[2])
        elif _CHANNEL_BEGUN.match(self._text, self._at):
            raise self._error(
                Code.EXPECTED_CHANNEL, "Expected queue:name, topic:name, tap:stream:name or :stream.label"
            )
        else:
            return None
        self._skip()
        if not self._peek(">"):
            raise self._error(Code.EXPECTED_CHANNEL, "Expected '>' after the channel")
        self._at += 1
        self._skip()
        return found

    def _sink(self) -> Channel:
        match = self._take(_CHANNEL)
        if not match:
            raise self._error(Code.EXPECTED_CHANNEL, "Expected queue:name or topic:name after '>'")
        return Channel(cast(Literal["queue", "topic"], match[1]), match[2])

    def _modules(self, stream: str | None) -> tuple[Module, ...]:
        modules: list[Module] = []
        labels: set[str] = set()
        while True:
            self._skip()
            module = self._module(stream, "stream")
            if module.label in labels:
                raise self._taken(module, "stream")
            labels.add(module.label)
            modules.append(module)
            if not self._peek("|"):
                return tuple(modules)
            self._at += 1

    def _module(self, whole: str | None, kind: str) -> Module:
        """Returns a module of the stream or job `whole`."""
        start = self._at
        match = self._take(self.module)
        if not match:
            raise self._error(Code.EXPECTED_MODULE, "Expected the name of a module")
        if match[2] == whole:
            message = f"Expected another name than that of the {kind}, {whole!r}"
            raise DslError(Code.NAMED_LIKE_MODULE, self._text, start, message)
        options: dict[str, str] = {}
        positions: list[int] = []
        end = self._at
        self._skip()
        while self._text.startswith("--", self._at):
            option = _OPTION.match(self._text, self._at)
            if self._at == end or not option:
                raise self._error(Code.EXPECTED_OPTION, "Expected ' --name=value' without spaces around '='")
            if option[1] in options:
                raise self._error(Code.DUPLICATE_OPTION, f"Expected each option once, got --{option[1]} again")
            self._at = option.end()
            options[option[1]], position = self._value()
            positions.append(position)
            end = self._at
            self._skip()
        return Module(
            match[2],
            match[1] or match[2],
            tuple(options.items()),
            position=match.start(),
            value_positions=tuple(positions),
        )

    def _value(self) -> tuple[str, int]:
        """Returns a value, and where it begins, after its quote."""
        start = self._at
        if quoted := QUOTED.get(self._text[start : start + 1]):
            match = self._take(quoted)
            if not match:
                raise self._error(Code.UNCLOSED_QUOTE, f"Expected a closing {self._text[start]}")
            if not self.bare.match(self._text, self._at):
                return match[1].replace(match[0][0] * 2, match[0][0]), start + 1
            # The quotes are part of the value, as in 'a'+payload.
            self._at = start
        if match := self._take(self.bare):
            return match[0], start
        raise self._error(Code.EXPECTED_VALUE, "Expected a value; one with spaces or '|' needs quotes")

    def _skip(self) -> None:
        self._take(_SPACE)

    def _peek(self, text: str) -> bool:
        return self._text.startswith(text, self._at)

    def _take(self, pattern: re.Pattern[str]) -> re.Match[str] | None:
        match = pattern.match(self._text, self._at)
        if match:
            self._at = match.end()
        return match

    def _taken(self, module: Module, kind: str) -> DslError:
        message = f"Expected a label that is unique in the {kind}, got {module.label!r} again"
        return DslError(Code.DUPLICATE_LABEL, self._text, module.position, message)

    def _error(self, code: Code, message: str) -> DslError:
        return DslError(code, self._text, self._at, message)
