"""Dead letters of sinks that write a micro-batch as one unit: refused rows go to files, and the others are written.

```
StormError
└── RefusedRowError     the target refuses a row, and there is not a folder for it
```
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import re
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

from storm_on_spark.api.errors import SetupError, StormError
from storm_on_spark.api.sink import SinkContext
from storm_on_spark.connectors.sinks.dividing import divided
from storm_on_spark.connectors.sinks.folders import checked_folder
from storm_on_spark.runtime.storage.durable import write_file

_VERSION: Final = 1
_MOST_SHOWN: Final = 200
"""Characters of an error, and of a row, in a sentence."""
_UNSAFE: Final = re.compile(r"[^A-Za-z0-9._-]")


class RefusedRowError(StormError, RuntimeError):
    """A table or a topic refuses a row of a micro-batch; the message says which, and what can be done."""


class Refused(NamedTuple):
    """A row that is not written."""

    row: Mapping[str, Any]
    error: str
    number: int = 0
    """The row's number in the micro-batch."""


class DeadLetters:
    """The folder for rows that a sink's target refuses: a file of JSON, one object a line, for each micro-batch.

    A file is on the disk before the other rows are committed. A micro-batch that is executed again replaces its file,
    and no other history of the checkpoint does: the name has the plan's fingerprint.

    Args:
        folder: a local path, or one that all machines share that a driver may run on; None to refuse micro-batches.
        where: what refuses rows, for errors, such as "the table orders".
        option: how the user says the folder, for errors.

    Raises:
        ConfigError: the folder is not a path.
    """

    def __init__(self, folder: str | os.PathLike[str] | None, where: str, option: str = "dead_letters=FOLDER") -> None:
        self._folder = None if folder is None else Path(checked_folder(folder))
        self._where = where
        self._option = option

    def __bool__(self) -> bool:
        """Whether there is a folder."""
        return self._folder is not None

    def open(self) -> None:
        """Makes the folder.

        Raises:
            SetupError: it can't be made.
        """
        if self._folder is not None:
            try:
                self._folder.mkdir(parents=True, exist_ok=True)
            except OSError as error:
                raise SetupError(f"the folder {self._folder} for dead letters can't be made: {error}") from error

    def keep(self, refused: Generator[Refused], context: SinkContext) -> bool:
        """Puts the refused rows of a micro-batch on the disk, before the others are committed.

        Args:
            refused: what is found to be refused; without a folder, only the first is looked for.
            context: which micro-batch.

        Returns:
            Whether there are any.

        Raises:
            RefusedRowError: a row is refused, and there is not a folder.
            Exception: what `context.refused` raises.
            OSError: the disk fails.
        """
        with contextlib.closing(refused):
            if context.refused is not None:
                if numbers := [(number, error) for _, error, number in refused]:
                    context.refused(numbers)
                return False
            if self._folder is None:
                for row, error, _ in refused:
                    raise RefusedRowError(
                        f"{self._where} refuses a row: {error:.{_MOST_SHOWN}} (given {_shown(row)}). The micro-batch "
                        "is not committed. Remove the cause, and start the topology again; or give the bolt "
                        f"{self._option}: then refused rows go to files there, and the others are written"
                    )
                return False
            lines = [
                json.dumps(
                    {"version": _VERSION, "micro_batch": context.micro_batch, "error": error, "row": _plain(row)}
                )
                for row, error, _ in refused
            ]
        if lines:
            place = self._place(context)
            text = "".join(line + "\n" for line in lines)
            write_file(place, text.encode(), sync=True, temporary=f".{place.name}.tmp")
        return bool(lines)

    def finish(self, context: SinkContext, *, kept: bool) -> None:
        """Reports what this attempt at a micro-batch kept, or one before it; called once the other rows are committed.

        Args:
            context: which micro-batch.
            kept: whether rows may have been kept. If not, what an attempt before kept is removed: it was written now.
        """
        if self._folder is None:
            return
        place = self._place(context)
        if not kept:
            place.unlink(missing_ok=True)
            return
        try:
            with place.open(encoding="utf-8") as file:
                first = json.loads(next(file))
                count = 1 + sum(1 for _ in file)
        except FileNotFoundError:
            return
        rows = "1 row" if count == 1 else f"{count:,} rows, the first"
        context.report(
            f"{self._where} refuses {rows}: {first['error']:.{_MOST_SHOWN}} (given {_shown(first['row'])}). See {place}"
        )

    def _place(self, context: SinkContext) -> Path:
        assert self._folder is not None
        number, plan = context.transaction
        return self._folder / f"refused-{_UNSAFE.sub('_', context.writer)}-{number:010}-{plan:016x}.json"


def refused_rows(
    count: int,
    write: Callable[[Sequence[int]], Exception | None],
    last: Callable[[list[int]], list[int]] = list,
) -> Iterator[tuple[int, Exception]]:
    """Writes rows in as few parts as possible, and yields the number of each refused row and why it is refused.

    Where a row replaces those before it with the same key, the last row of each key is written; where it is refused,
    the one before it.

    Args:
        count: how many rows there are.
        write: writes the rows with these numbers; otherwise as for `divided`.
        last: returns, of some numbers of rows, those of the last row of each key; all where there are no keys.
    """
    tried: set[int] = set()
    left = list(range(count))
    while now := [number for number in last(left) if number not in tried]:
        tried.update(now)
        refused = set()
        for part, refusal in divided(now, write):
            if refusal is not None:
                refused.add(part[0])
                yield part[0], refusal
        left = [number for number in left if number not in refused]


def error_line(error: Exception) -> str:
    """Returns an error's class and its first line."""
    lines = [line for line in str(error).splitlines() if line.strip()]
    return f"{type(error).__name__}: {lines[0] if lines else ''}"


def _shown(row: Any) -> str:
    return f"{json.dumps(_plain(row)):.{_MOST_SHOWN}}"


def _plain(value: Any) -> Any:
    """Returns a value as JSON has it; bytes that are not UTF-8 as a map with their digits."""
    if isinstance(value, Mapping):
        return {str(name): _plain(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    if isinstance(value, bytes):
        try:
            return value.decode()
        except UnicodeDecodeError:
            return {"hex": value.hex()}
    if value is None or isinstance(value, str | int) or (isinstance(value, float) and math.isfinite(value)):
        return value
    return str(value)
