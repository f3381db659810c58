"""Who reads the rows of native spouts: Spark, or in real time the spout's own task.

A change of reader is made between two runs of the query, at a position that Spark has planned:

- From Spark to the task: it reads from where the last planned micro-batch ends. That is noted before the task opens.
  Spark's source stays in the query, and gives no more than what was planned before.
- From the task to Spark: when the task is open, it says how far it has read. What it has read is in the spout log, with
  that position. The position is noted, then written into Spark's offset log in place of the end of the last
  micro-batch. Then it is noted that Spark reads.

Each step can be done again, and the next start does so before anything else. So a crash at any moment leaves each row
to one reader.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from dataclasses import asdict, replace
from typing import Any

from storm_on_spark.api.errors import CheckpointError
from storm_on_spark.api.reading import Reader, ReadsItself
from storm_on_spark.api.text.wording import other_format
from storm_on_spark.plan.model import PlacedPlan
from storm_on_spark.runtime.storage import Storage
from storm_on_spark.runtime.storage.durable import sync_file_system
from storm_on_spark.spark.checkpoint.directory import last_batch

log = logging.getLogger(__name__)

VERSION = 1
_NOTES = "storm/readers.json"
_ENTRY_VERSION = "v1"
_BEFORE_SOURCES = 2
"""Lines of an entry in Spark's offset log before those of the sources: the version, and what is said of the batch."""


class Readers:
    """The readers of a topology's native spouts, in its checkpoint.

    Args:
        root: all of the checkpoint.
        plan: of the topology, with its components.

    Raises:
        CheckpointError: the notes can't be read, or a spout can't read what it has read before.
    """

    def __init__(self, root: Storage, plan: PlacedPlan) -> None:
        self._root = root
        self._spouts: dict[str, ReadsItself] = {}
        #: The number of each spout's source among those of the query; ours is the first.
        self._places: dict[str, int] = {}
        for place, name in enumerate(plan.native_spouts, 1):
            spout = plan.topology[name].component
            if isinstance(spout, ReadsItself):
                self._spouts[name], self._places[name] = spout, place
        self._tasks = {name: plan.components[name].tasks[0] for name in self._spouts}
        self._notes = self._read()
        if strange := sorted(name for name, note in self._notes.items() if note.by_task and name not in self._spouts):
            raise CheckpointError(
                f'spout "{strange[0]}" has read its rows itself in real time, which its new class can\'t continue; '
                "undo the change, or --reset-checkpoint to start afresh"
            )
        self.now: dict[str, Reader] = {}
        """By spout, who reads in this run; set by `begin`."""

    def begin(self, *, by_task: bool) -> Mapping[str, Reader]:
        """Returns who reads in this run, and notes it where tasks begin to read.

        Args:
            by_task: whether the tasks are to read.

        Raises:
            CheckpointError: the checkpoint can't be read or written.
        """
        for name in self._spouts:
            was = self._notes.get(name, Reader())
            if was.moving_to is not None:
                # It was interrupted, and nothing has run since.
                self._move(name, was.moving_to)
                was = self._notes[name] = replace(was, moving_to=None)
                self._write()
            if by_task and not was.by_task:
                self._force()  # should the machine fail, Spark's offset log must not end before this position
                start = self._in_entry(name, self._last[0])
                planned = self._has_planned_rows(name)
                self._notes[name] = Reader(was.change + 1, by_task=True, start=start, planned=planned)
                self._write()
            stays = was.by_task and not by_task and self._has_planned_rows(name)
            if stays:
                log.warning(
                    'spout "%s" reads its rows itself until the next start: a micro-batch that Spark planned with rows '
                    "of it is executed again first",
                    name,
                )
            self.now[name] = replace(self._notes.get(name, was), by_task=by_task or stays)
        return self.now

    def settle(self, reached: Mapping[int, tuple[int, str | None] | None]) -> None:
        """Lets Spark continue where tasks that no longer read have stopped. No query may run.

        Args:
            reached: by task, what `ReadsItself.reached` returned.

        Raises:
            CheckpointError: the checkpoint can't be read or written.
        """
        for name, now in self.now.items():
            note = self._notes.get(name)
            if note is None or now.by_task or not note.by_task:
                continue
            change, position = reached[self._tasks[name]] or (0, None)
            if change < note.change:
                position = note.start  # it has read nothing since
            if position is not None:
                self._force()  # nor the spout log
                self._notes[name] = replace(note, moving_to=position)
                self._write()
                self._move(name, position)
            self._notes[name] = Reader(note.change + 1)
            self._write()

    # --- Spark's part of the checkpoint ---------------------------------------------------------------

    def _entry(self, batch: int) -> list[str]:
        name = f"offsets/{batch}"
        try:
            lines = self._root.read(name).decode().split("\n")
            if lines[0] != _ENTRY_VERSION:
                raise ValueError(f"its version is {lines[0]:.20}, and not {_ENTRY_VERSION}")
            if len(lines) < _BEFORE_SOURCES + 1 + max(self._places.values()):
                raise ValueError("sources are missing")
            for spout, place in self._places.items():
                self._check(spout, lines[_BEFORE_SOURCES + place], none="-")
        except (OSError, ValueError) as error:
            raise CheckpointError(f"Spark's offset log {self._root.url}/{name} can't be read: {error}") from error
        return lines

    def _check(self, name: str, position: str | None, none: str | None = None) -> None:
        """Raises a ValueError for what is neither a position of the spout's source, nor what stands for none."""
        if position != none:
            self._spouts[name].moved(None, str(position))

    def _in_entry(self, name: str, batch: int) -> str | None:
        """Returns where a micro-batch ends for a spout; None if Spark's source has no position yet."""
        if batch >= 0:
            line = self._entry(batch)[_BEFORE_SOURCES + self._places[name]]
            if line != "-":
                return line
        return self._begun(name)

    def _begun(self, name: str) -> str | None:
        file = self._begin_file(name)
        try:
            position = self._spouts[name].position_in(self._root.read(file))
            self._check(name, position)
        except FileNotFoundError:
            return None
        except (OSError, ValueError) as error:
            raise CheckpointError(f"{self._root.url}/{file}, of Spark's source, can't be read: {error}") from error
        return position

    def _begin_file(self, name: str) -> str:
        return f"sources/{self._places[name]}/0"

    @property
    def _last(self) -> tuple[int, bool]:
        """The last micro-batch that Spark has planned, -1 for none, and whether it is committed."""
        planned, committed = last_batch(self._root, "offsets"), last_batch(self._root, "commits")
        last = -1 if planned is None else planned
        return last, last == (-1 if committed is None else committed)

    def _has_planned_rows(self, name: str) -> bool:
        """Whether a micro-batch runs again that Spark has planned with rows of its own source."""
        last, committed = self._last
        if committed:
            return False
        begin, end = self._in_entry(name, last - 1), self._in_entry(name, last)
        return end is not None and (begin is None or json.loads(begin) != json.loads(end))

    def _move(self, name: str, to: str) -> None:
        last, committed = self._last
        spout, line = self._spouts[name], _BEFORE_SOURCES + self._places[name]
        if last < 1:
            # There is no micro-batch before the next one, or before the one that runs again.
            self._replace(self._begin_file(name), spout.begun_at(spout.moved(self._begun(name), to)))
        for batch in range(max(0, last if committed else last - 1), last + 1):
            lines = self._entry(batch)
            lines[line] = spout.moved(None if lines[line] == "-" else lines[line], to)
            self._replace(f"offsets/{batch}", "\n".join(lines).encode())

    def _force(self) -> None:
        """Forces to the disk what others have written without."""
        if (folder := self._root.local_path()) is None:
            return  # a store keeps what was written
        try:
            sync_file_system(folder)
        except OSError as error:
            raise CheckpointError(f"{self._root.url} can't be written: {error}") from error

    def _replace(self, name: str, data: bytes) -> None:
        folder, _, file = name.rpartition("/")
        try:
            if (local := self._root.local_path()) is not None:
                # Hadoop's file system compares a file with the sum beside it, if there is one.
                (local / folder / f".{file}.crc").unlink(missing_ok=True)
            self._root.put(name, data)
        except OSError as error:
            raise CheckpointError(f"{self._root.url}/{name} can't be written: {error}") from error

    # --- notes ---------------------------------------------------------------

    def _read(self) -> dict[str, Reader]:
        try:
            data = json.loads(self._root.read(_NOTES))
            if data["version"] != VERSION:
                raise CheckpointError(other_format(f"{self._root.url}/{_NOTES}", data["version"], VERSION))
            return {name: self._noted(name, **note) for name, note in data["spouts"].items()}
        except FileNotFoundError:
            return {}  # Spark has read all there is
        except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise CheckpointError(f"{self._root.url}/{_NOTES} can't be read: {error}") from error

    def _noted(self, name: str, **note: Any) -> Reader:
        reader = Reader(**note)
        for said, kind in ((reader.change, int), (reader.by_task, bool), (reader.planned, bool)):
            if type(said) is not kind:
                raise ValueError(f"{said!r:.100} is no {kind.__name__}")
        for position in (reader.start, reader.moving_to):
            if name in self._spouts:
                self._check(name, position)
        return reader

    def _write(self) -> None:
        data = {"version": VERSION, "spouts": {name: asdict(note) for name, note in self._notes.items()}}
        try:
            self._root.put(_NOTES, json.dumps(data, indent=1, sort_keys=True).encode())
        except OSError as error:
            raise CheckpointError(f"{self._root.url}/{_NOTES} can't be written: {error}") from error
