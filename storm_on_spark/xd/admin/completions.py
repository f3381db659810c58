"""How the text of a stream or a job can be completed: for TAB in the shell, and for editors."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Final

from storm_on_spark.xd.dsl import ENDS
from storm_on_spark.xd.modules import ModuleType
from storm_on_spark.xd.modules.declaration import Option
from storm_on_spark.xd.modules.local_registry import LocalRegistry, ModuleRegistryError

MOST: Final = 1_000
"""Most proposals in one answer."""

_CHANNELS: Final = ("queue:", "topic:")
_SOURCES: Final = (*_CHANNELS, "tap:stream:", "tap:queue:", "tap:topic:")
_TAP: Final = "tap:stream:"
# Quoted texts, the signs between modules, and any other text up to the next of these.
_PIECE: Final = re.compile(r"'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\"|[|>]|[^|>'\"]+")
_SIGNS: Final = ("|", ">")
_STEP_PIECE: Final = re.compile(r"'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\"|\|\||[|<>&]|[^|<>&'\"]+")
_STEP_SIGNS: Final = ("||", "|", "<", ">", "&")
_STATUSES: Final = ("COMPLETED = ", "FAILED = ", "'*' = ")
_NAMED: Final = re.compile(r"\s*[A-Za-z_][A-Za-z0-9_-]*\s*=\s*")
_BOOLEANS: Final = ("true", "false")


def completions(start: str, registry: LocalRegistry, streams: Iterable[str] = ()) -> tuple[str, ...]:
    """Returns whole texts that begin with `start`; none where only the user knows how to continue.

    Args:
        start: the text so far.
        registry: the modules.
        streams: names of streams that can be tapped.

    Example:
        >>> completions("time --fixedDelay=5 | lo", LocalRegistry())
        ('time --fixedDelay=5 | log',)
        >>> completions("time --max", LocalRegistry())
        ('time --maxMessages=',)
    """
    read = _read(start, _PIECE, _SIGNS)
    if read is None:
        return ()
    before, sign, segment = read
    head = start[: len(start) - len(segment)]
    if sign == "" and (named := _NAMED.match(segment)) and not segment.lstrip().startswith("--"):
        head, segment = start[: named.end()], segment[named.end() :]
    if sign == ">" and not _is_channel(before):
        return _with(head, segment, _CHANNELS)
    types: tuple[ModuleType, ...] = ("processor", "sink") if sign else ("source",)
    word = segment.lstrip()
    if not re.search(r"\s", word):
        return tuple(dict.fromkeys(_modules(head, segment, types, registry, streams)))[:MOST]
    return tuple(_options(head + segment, word, types, registry))[:MOST]


def job_completions(start: str, registry: LocalRegistry) -> tuple[str, ...]:
    """Returns whole texts of jobs that begin with `start`; see `completions`.

    Example:
        >>> job_completions("filejdbc --tableName=a || <time", LocalRegistry())
        ('filejdbc --tableName=a || <timestampfile',)
    """
    read = _read(start, _STEP_PIECE, _STEP_SIGNS)
    if read is None or read[1] == ">":
        # A split must be followed by a sign.
        return ()
    _, sign, segment = read
    head = start[: len(start) - len(segment)]
    if sign == "" and (named := _NAMED.match(segment)):
        head, segment = start[: named.end()], segment[named.end() :]
    if sign == "|":
        status, equals, target = segment.partition("=")
        if not equals:
            return _with(head, segment, _STATUSES)
        head, segment = f"{head}{status}=", target
        if segment.lstrip().startswith("$"):
            return _with(head, segment, ENDS)
    word = segment.lstrip()
    if not re.search(r"\s", word):
        return tuple(_modules(head, segment, ("job",), registry, ()))[:MOST]
    return tuple(_options(head + segment, word, ("job",), registry))[:MOST]


def _read(start: str, piece: re.Pattern[str], signs: tuple[str, ...]) -> tuple[str, str, str] | None:
    """Returns the text before the last sign, that sign, and the text after it; None inside quotes."""
    at, last, begin, before = 0, "", 0, ""
    while at < len(start):
        match = piece.match(start, at)
        if match is None:
            return None
        at = match.end()
        if match[0] in signs:
            before, last, begin = start[begin : match.start()], match[0], at
    return before, last, start[begin:]


def _is_channel(text: str) -> bool:
    named = _NAMED.match(text)
    return text[named.end() if named else 0 :].strip().startswith((*_CHANNELS, "tap:", ":"))


def _with(head: str, segment: str, words: Iterable[str]) -> tuple[str, ...]:
    word = segment.lstrip()
    # Existing text is kept: a space is proposed only if nothing follows the sign.
    space = segment[: len(segment) - len(word)] if segment else " " if head.endswith(("|", ">")) else ""
    return tuple(f"{head}{space}{found}" for found in words if found.startswith(word) and found != word)


def _modules(
    head: str, segment: str, types: tuple[ModuleType, ...], registry: LocalRegistry, streams: Iterable[str]
) -> Iterator[str]:
    word = segment.lstrip()
    names = [name for each in types for name in registry.names(each)]
    if "source" in types:
        names += [*_SOURCES, *(f"{_TAP}{name} >" for name in streams if word.startswith(_TAP))]
        if word.startswith(("tap:", *_CHANNELS)):
            yield from _with(head, segment, names)
            return
    label, colon, name = word.rpartition(":")
    text = f"{head}{segment[: len(segment) - len(word)]}{label}{colon}"
    yield from _with(text if colon else head, name if colon else segment, names)
    if name in names:
        yield from _options(f"{head}{segment} ", f"{name} ", types, registry)


def _options(text: str, word: str, types: tuple[ModuleType, ...], registry: LocalRegistry) -> Iterator[str]:
    module = word.split(maxsplit=1)[0].rpartition(":")[2]
    options = _options_of(module, types, registry)
    given = set(re.findall(r"\s--([A-Za-z_][A-Za-z0-9_.-]*)=", re.sub(r"'[^']*'|\"[^\"]*\"", "''", word)))
    last = "" if text[-1].isspace() else text.split()[-1]
    known, equals, value = last.removeprefix("--").partition("=")
    if equals and last.startswith("--"):
        found = next((option for option in options if option.name == known), None)
        values = () if found is None else found.choices or (_BOOLEANS if found.type == "boolean" else ())
        yield from (f"{text}{each[len(value) :]}" for each in values if each.startswith(value) and each != value)
        return
    if last and not "--".startswith(last) and not last.startswith("--"):
        return
    head = text[: len(text) - len(last)]
    for option in sorted(options, key=lambda each: each.default is not None):
        if option.name not in given and f"--{option.name}=".startswith(last):
            yield f"{head}--{option.name}="


def _options_of(name: str, types: tuple[ModuleType, ...], registry: LocalRegistry) -> list[Option]:
    found: dict[str, Option] = {}
    for each in types:
        try:
            found |= {option.name: option for option in registry.options(registry.find(each, name))}
        except (KeyError, ModuleRegistryError):
            continue
    return list(found.values())
