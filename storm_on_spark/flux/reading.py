"""The text of a Flux file, with `${...}` replaced and positions preserved."""

from __future__ import annotations

import bisect
import functools
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from storm_on_spark.flux.errors import FluxError, Place, Source

PLACEHOLDER = re.compile(r"\$\{([^{}\r\n]+)\}")
_ELEMENT = re.compile(r"(.+)\[(\d{1,6})\]")
BREAK = re.compile("(\r\n|[\r\n\x85\u2028\u2029])")
"""The characters that end a line in YAML."""
_ENVIRONMENT = "ENV-"
_MAX_CHARS = 4 << 20
_LEAST_SECRET = 4
"""Shorter values of the environment are not treated as secrets: they would match parts of other words."""


@dataclass(frozen=True)
class Substitution:
    """The values that `${...}` stands for.

    Args:
        properties: those of `--filter`: `${name}`, and `${name[0]}` of a list.
        environment: those of `--env-filter`: `${ENV-NAME}`; `None` without it.

    Example:
        >>> from storm_on_spark.flux.errors import Place, Source
        >>> place = Place(Source("a.yaml"), 0, 0)
        >>> values = Substitution({"n": "3", "hosts": '["a", "b"]'}, {"HOME": "/root"})
        >>> [values.value(name, place) for name in ("n", "hosts[1]", "ENV-HOME", "m")]
        ['3', 'b', '/root', None]
    """

    properties: Mapping[str, str] = field(default_factory=dict, repr=False)
    environment: Mapping[str, str] | None = field(default=None, repr=False)
    _used: dict[str, str] = field(default_factory=dict, init=False, repr=False, compare=False)
    """Variable -> value, for the variables that a file has used; errors must not show them."""

    @classmethod
    def of(cls, properties: Mapping[str, str], *, environment: bool) -> Substitution:
        """Returns a copy with this process's environment, or without one."""
        return cls(properties, dict(os.environ) if environment else None)

    def value(self, name: str, place: Place) -> str | None:
        """Returns the value of a placeholder, `None` if there is none.

        Raises:
            FluxError: it has a line break, or the list has no such element.
        """
        if self.environment is not None and name.startswith(_ENVIRONMENT):
            found = self.environment.get(name.removeprefix(_ENVIRONMENT))
            if found:
                self._used[name] = found
        elif name in self.properties:
            found = self.properties[name]
        elif (element := _ELEMENT.fullmatch(name)) and element[1] in self.properties:
            found = _element(self.properties[element[1]], int(element[2]), element[1], place)
        else:
            return None
        if found is not None and BREAK.search(found):
            raise FluxError(f"the value of ${{{name}}} has a line break: it can't stand in a line of YAML", place)
        return found

    def masked(self, message: str) -> str:
        """Returns a message with placeholders instead of values of the environment, which may be secrets.

        >>> values = Substitution({}, {"TOKEN": "s3cret"})
        >>> _ = values.value("ENV-TOKEN", Place(Source("a.yaml"), 0, 0))
        >>> values.masked("parallelism must be an int of at least 1, not 's3cret'")
        "parallelism must be an int of at least 1, not '${ENV-TOKEN}'"
        """
        for name, value in self._used.items():
            if len(value) >= _LEAST_SECRET:
                message = message.replace(value, f"${{{name}}}")
        return message

    def missing(self, name: str) -> str:
        """Returns a sentence that says why a placeholder has no value."""
        if name.startswith(_ENVIRONMENT):
            if self.environment is None:
                return f"${{{name}}} stands for a variable of the environment: --env-filter puts its value in"
            return f"${{{name}}}: there is no variable {name.removeprefix(_ENVIRONMENT)} in the environment"
        if not self.properties:
            return f"${{{name}}} stands for a property: --filter FILE says which file has it"
        return f"${{{name}}}: the file of properties has no {name}"


@dataclass(frozen=True)
class Text:
    """The text after substitution, and where each of its characters was in the file."""

    source: Source
    text: str
    _moved: Mapping[int, tuple[tuple[int, int, int], ...]]
    """Line -> for each inserted value: first column and end column in `text`, and the column in the file."""

    def place(self, line: int, column: int) -> Place:
        """Returns the place in the file of a position in `text`."""
        moved = self._moved.get(line, ())
        index = bisect.bisect_right(moved, column, key=lambda found: found[0]) - 1
        if index < 0:
            return Place(self.source, line, column)
        _, end, original = moved[index]
        if column < end:
            return Place(self.source, line, original)
        length = _length_at(self.source.lines[line], original)
        return Place(self.source, line, original + length + column - end)


def substituted(content: str, name: str, values: Substitution) -> Text:
    """Returns a file's text with placeholders replaced; those without a value stay.

    As in Flux this precedes YAML: a value may be a number, or a whole list.

    Raises:
        FluxError: a value can't be inserted, or the text becomes too large.

    Example:
        >>> found = substituted('a: ${n} # ${m}', "a.yaml", Substitution({"n": "12345678"}))
        >>> found.text, found.place(0, 12).column
        ('a: 12345678 # ${m}', 8)
    """
    parts = BREAK.split(content)
    lines, breaks = parts[::2], [*parts[1::2], ""]
    source = Source(name, tuple(lines))
    moved: dict[int, tuple[tuple[int, int, int], ...]] = {}
    size = 0
    for number, line in enumerate(lines):
        pieces: list[str] = []
        marks: list[tuple[int, int, int]] = []
        width = end = 0
        for match in PLACEHOLDER.finditer(line):
            value = values.value(match[1].strip(), Place(source, number, match.start()))
            if value is None:
                continue
            pieces += (line[end : match.start()], value)
            start = width + match.start() - end
            width = start + len(value)
            marks.append((start, width, match.start()))
            end = match.end()
        if marks:
            lines[number] = "".join((*pieces, line[end:]))
            moved[number] = tuple(marks)
        size += len(lines[number])
        if size > _MAX_CHARS:
            raise FluxError(
                f"with its placeholders replaced it has more than {_MAX_CHARS:,} characters", Place(source, number, 0)
            )
    return Text(source, "".join(map("".join, zip(lines, breaks, strict=True))), moved)


def _length_at(line: str, column: int) -> int:
    match = PLACEHOLDER.match(line, column)
    return 0 if match is None else len(match[0])


def _element(text: str, index: int, name: str, place: Place) -> str:
    elements = _elements(text)
    if index >= len(elements):
        raise FluxError(f"${{{name}[{index}]}}: {name} has {len(elements)} elements", place)
    return elements[index]


@functools.lru_cache(maxsize=16)
def _elements(text: str) -> tuple[str, ...]:
    """Returns the elements of a list. Cached, since a file may name each element of a long one."""
    stripped = text.strip()
    inner = stripped[1:-1].strip() if stripped[:1] == "[" and stripped[-1:] == "]" else ""
    return tuple(part.strip().strip("\"'") for part in inner.split(",")) if inner else ()
