"""Values of counters: a folder for each counter, with a file for each writer, `<kind>/<name>/<writer>.json`.

A file is written as a whole, so a reader finds the old value or the new one. A reader gets the sum over all writers:
streams and instances of a sink that name the same counter add up.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import uuid
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal, get_args

from storm_on_spark.api.errors import StormError

Kind = Literal["counter", "field-value-counter", "aggregate-counter"]
"""The names of the sinks."""

_VERSION: Final = 2
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,199}")
_WRITER = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,199}")
_MOST_BYTES: Final = 100_000_000


class CounterError(StormError, LookupError):
    """A counter that does not exist, or a file that is not a counter's."""


@dataclass(frozen=True)
class Counter:
    """The last written values of a counter, or one writer's share of them.

    `values` is {"value": n} of a counter; field value -> count; or, of an aggregate counter, `minute`, `hour`, `day`,
    `month` and `year` -> start -> count.
    """

    kind: Kind
    name: str
    values: dict[str, Any]


def checked_name(name: str) -> str:
    """Returns the name of a counter.

    Raises:
        ValueError: it is not a valid name.
    """
    if not _NAME.fullmatch(name):
        raise ValueError(f"Expected up to 200 letters, digits, '_', '-' and '.', got {name!r:.250}")
    return name


def writer_name(*parts: object) -> str:
    """Returns the name of a writer, which identifies its file after a restart.

    >>> writer_name("ticktock", "counter", 1)
    'ticktock.counter.1'
    """
    name = ".".join(map(str, parts))
    if _WRITER.fullmatch(name):
        return name
    return hashlib.sha256(name.encode()).hexdigest()


def write_counter(folder: str | os.PathLike[str], counter: Counter, writer: str) -> None:
    """Writes the counts of one writer; its folder is created if it is missing.

    Args:
        folder: of all counters.
        counter: the writer's share.
        writer: of `writer_name`.

    Raises:
        OSError: it can't be written.
    """
    path = _path(folder, counter.kind, counter.name) / f"{writer}.json"
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    half = path.with_name(f".{uuid.uuid4().hex}.tmp")
    document = {"version": _VERSION, "kind": counter.kind, "name": counter.name, "values": counter.values}
    try:
        half.write_text(json.dumps(document, ensure_ascii=False), encoding="utf-8")
        half.replace(path)
    except OSError:
        half.unlink(missing_ok=True)
        raise


def read_counter(folder: str | os.PathLike[str], kind: Kind, name: str) -> Counter:
    """Returns a counter: the sum of what its writers have counted.

    Raises:
        CounterError: there is none, or one of its files is something else.
        ValueError: it can't be a counter's name.
    """
    place = _path(folder, kind, checked_name(name))
    shares = [share for path in _files(place) if (share := _share(path, kind)) is not None]
    if not shares:
        known = ", ".join(list_counters(folder, kind)[:20]) or "none"
        raise CounterError(f"there is no {kind} {name!r} in {folder}; there are: {known}")
    if kind == "aggregate-counter":
        parts = sorted({part for share in shares for part in share})
        return Counter(
            kind, name, {part: _sum((share.get(part, {}) for share in shares), part, place) for part in parts}
        )
    return Counter(kind, name, _sum(shares, kind, place))


def _share(path: Path, kind: Kind) -> dict[str, Any] | None:
    """Returns the counts of one writer; None if the file was removed meanwhile."""
    try:
        with path.open("rb") as file:
            content = file.read(_MOST_BYTES)
        document = json.loads(content)
    except FileNotFoundError:
        return None
    except (OSError, ValueError, RecursionError) as error:
        raise CounterError(f"{path} can't be read: {error}") from error
    if not isinstance(document, dict) or document.get("version") != _VERSION or document.get("kind") != kind:
        raise CounterError(f"{path}: expected a file of version {_VERSION} of the kind {kind}")
    values = document.get("values")
    if not isinstance(values, dict):
        raise CounterError(f"{path}: expected the values of a counter of the kind {kind}")
    return values


def _sum(shares: Iterable[Any], what: str, place: Path) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for share in shares:
        if not isinstance(share, dict) or not all(isinstance(value, int | float) for value in share.values()):
            raise CounterError(f"{place} is not a counter: a file of it has no numbers of {what}")
        for key, value in share.items():
            found[key] = found.get(key, 0) + value
    # An order that does not depend on the writers; times sort chronologically.
    return dict(sorted(found.items()))


def list_counters(folder: str | os.PathLike[str], kind: Kind) -> list[str]:
    """Returns the sorted names of the counters of a kind."""
    places = (Path(folder) / kind).glob("*")
    return sorted(path.name for path in places if _NAME.fullmatch(path.name) and next(_files(path), None) is not None)


def delete_counter(folder: str | os.PathLike[str], kind: Kind, name: str) -> None:
    """Removes a counter. A stream that still runs writes it again, with its counts.

    Raises:
        CounterError: there is none.
        ValueError: it can't be a counter's name.
    """
    place = _path(folder, kind, checked_name(name))
    files = list(_files(place))
    for path in files:
        path.unlink(missing_ok=True)
    if not files:
        raise CounterError(f"there is no {kind} {name!r} in {folder}")
    # A writer may have created a file again.
    with contextlib.suppress(OSError):
        place.rmdir()


def _files(place: Path) -> Iterator[Path]:
    return (path for path in sorted(place.glob("*.json")) if not path.name.startswith("."))


def _path(folder: str | os.PathLike[str], kind: Kind, name: str) -> Path:
    assert kind in get_args(Kind)
    return Path(folder) / kind / name
