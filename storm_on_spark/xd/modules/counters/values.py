"""Values of counters, in one file each: written as a whole, so a reader finds the old value or the new one."""

from __future__ import annotations

import json
import os
import re
import uuid
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal, get_args

from storm_on_spark.api.errors import StormError

Kind = Literal["counter", "field-value-counter", "aggregate-counter"]
"""The names of the sinks."""

_VERSION: Final = 1
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,199}")
_MOST_BYTES: Final = 100_000_000


class CounterError(StormError, LookupError):
    """A counter that does not exist, or a file that is none."""


@dataclass(frozen=True)
class Counter:
    """A counter as it was written last.

    `values` is {"value": n} of a counter; field value -> count; or, of an aggregate counter, `minute`, `hour`, `day`,
    `month` and `year` -> start -> count.
    """

    kind: Kind
    name: str
    values: dict[str, Any]


def checked_name(name: str) -> str:
    """Returns the name of a counter.

    Raises:
        ValueError: it can't be one.
    """
    if not _NAME.fullmatch(name):
        raise ValueError(f"Expected up to 200 letters, digits, '_', '-' and '.', got {name!r:.250}")
    return name


def write_counter(folder: str | os.PathLike[str], counter: Counter) -> None:
    """Writes a counter; its folder is made if it is missing.

    Raises:
        OSError: it can't be written.
    """
    path = _path(folder, counter.kind, counter.name)
    path.parent.mkdir(parents=True, exist_ok=True)
    half = path.with_name(f".{counter.name}-{uuid.uuid4().hex}.tmp")
    document = {"version": _VERSION, "kind": counter.kind, "name": counter.name, "values": counter.values}
    try:
        half.write_text(json.dumps(document, ensure_ascii=False), encoding="utf-8")
        half.replace(path)
    except OSError:
        half.unlink(missing_ok=True)
        raise


def read_counter(folder: str | os.PathLike[str], kind: Kind, name: str) -> Counter:
    """Returns a counter.

    Raises:
        CounterError: there is none, or its file is something else.
        ValueError: it can't be a counter's name.
    """
    path = _path(folder, kind, checked_name(name))
    try:
        with path.open("rb") as file:
            content = file.read(_MOST_BYTES)
        document = json.loads(content)
    except FileNotFoundError:
        known = ", ".join(list_counters(folder, kind)[:20]) or "none"
        raise CounterError(f"there is no {kind} {name!r} in {folder}; there are: {known}") from None
    except (OSError, ValueError, RecursionError) as error:
        raise CounterError(f"{path} can't be read: {error}") from error
    if not isinstance(document, dict) or document.get("version") != _VERSION or document.get("kind") != kind:
        raise CounterError(f"{path} is no {kind} of version {_VERSION}")
    values = document.get("values")
    if not isinstance(values, dict):
        raise CounterError(f"{path} is no {kind}: it has no values")
    return Counter(kind, name, values)


def list_counters(folder: str | os.PathLike[str], kind: Kind) -> list[str]:
    """Returns the names of the counters of a kind, in their order."""
    return sorted(
        path.stem for path in (Path(folder) / kind).glob("*.json") if path.is_file() and _NAME.fullmatch(path.stem)
    )


def delete_counter(folder: str | os.PathLike[str], kind: Kind, name: str) -> None:
    """Removes a counter. A stream that still runs writes it again, with what it has counted.

    Raises:
        CounterError: there is none.
        ValueError: it can't be a counter's name.
    """
    try:
        _path(folder, kind, checked_name(name)).unlink()
    except FileNotFoundError:
        raise CounterError(f"there is no {kind} {name!r} in {folder}") from None


def _path(folder: str | os.PathLike[str], kind: Kind, name: str) -> Path:
    assert kind in get_args(Kind)
    return Path(folder) / kind / f"{name}.json"
