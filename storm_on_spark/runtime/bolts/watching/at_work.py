"""How far a bolt is in the micro-batch that runs: workers write it down while it takes long, and the driver reads it.

Spark learns of a task only when it has ended. So a thread of the worker looks at what the main thread executes, as
`stall.py` does, and writes a file for each task of a bolt. In a store that would be a request every second, so it is
only done where the checkpoint is a folder. A micro-batch that repeats rounds of real time has a note of its own: each
round is short, and there may be many.
"""

from __future__ import annotations

import contextlib
import json
import time
from pathlib import Path
from types import FrameType
from typing import NamedTuple

from storm_on_spark.api.info import ComponentAtWork, RepetitionInfo
from storm_on_spark.runtime.bolts.bolt_task import BoltTask
from storm_on_spark.runtime.bolts.watching.in_hand import loop_above
from storm_on_spark.runtime.run.wiring import Wiring
from storm_on_spark.runtime.storage import Folder, as_storage, inside

_NOTES = "at-work"
_REPETITION = "repetition"
"""The note about rounds that are repeated; the others have numbers as names."""
_NOTE_BYTES = 1 << 12
_FRESH_SECS = 4.0
"""Notes older than this are not of tasks that still run, even on a busy machine."""


class AtWork(NamedTuple):
    """How far a task of a bolt has come in one micro-batch."""

    component: str
    task: int
    batch: int
    executed: int
    tuples: int


class WorkNotes:
    """Writes down what takes longer than from one look to the next.

    Args:
        wiring: that of the run whose bolts are looked at.
        folder: the topology's own folder in the checkpoint.
    """

    def __init__(self, wiring: Wiring, folder: Folder) -> None:
        self._wiring = wiring
        self._folder = folder
        self._notes = as_storage(inside(folder, _NOTES)) if isinstance(folder, Path) else None
        self._loops = BoltTask.loops()
        self._seen: AtWork | None = None
        self._noted: AtWork | None = None
        #: How many rounds have been repeated, and of how many; None while none are. The main thread sets it.
        self.repetition: tuple[int, int] | None = None
        self._repeated = False

    def look(self, frame: FrameType | None) -> None:
        """Notes what executes in the stack above `frame`."""
        before, self._seen = self._seen, self._at_work(frame)
        if self._noted is not None and not _same(self._noted, self._seen):
            # That execution has ended.
            self._note(self._noted._replace(executed=self._noted.tuples))
            self._noted = None
        if self._seen is not None and _same(self._seen, before):
            self._note(self._seen)
            self._noted = self._seen
        if (repetition := self.repetition) is not None:
            self._put(_REPETITION, repetition)
        elif self._repeated and self._notes is not None:
            with contextlib.suppress(OSError):
                self._notes.delete(_REPETITION)
        self._repeated = repetition is not None

    def _at_work(self, frame: FrameType | None) -> AtWork | None:
        loop = loop_above(frame, self._loops)
        if loop is None:
            return None
        names = loop.f_locals
        task: BoltTask = names["self"]
        if task.wiring is not self._wiring:
            return None
        executed = names["delivery"].offset + names.get("position", 0) if "delivery" in names else 0
        return AtWork(task.component, task.task, task.batch, executed, sum(part.size for part in names["inputs"]))

    def _note(self, what: AtWork) -> None:
        self._put(str(what.task), what)

    def _put(self, name: str, what: tuple[object, ...]) -> None:
        # A run that has ended has removed its folder, which must not be created again.
        if self._notes is not None and isinstance(self._folder, Path) and self._folder.is_dir():
            with contextlib.suppress(OSError):  # the disk is full, or the topology is gone: others say so
                self._notes.put(name, json.dumps(what).encode())


def _same(one: AtWork, other: AtWork | None) -> bool:
    """Whether both are of one execution."""
    return other is not None and (one.task, one.batch) == (other.task, other.batch)


def read_work(folder: Folder, batch: int | None) -> tuple[ComponentAtWork, ...]:
    """Returns what was noted, the tasks of a component together.

    Args:
        folder: the topology's own folder in the checkpoint.
        batch: which micro-batch; None for rounds between two, and what is executed there now.
    """
    if not isinstance(folder, Path):
        return ()
    notes, found = as_storage(inside(folder, _NOTES)), dict[str, ComponentAtWork]()
    with contextlib.suppress(OSError):
        for note in notes.list_folder():
            with contextlib.suppress(ValueError, TypeError, FileNotFoundError):  # not a note, or cleared since
                component, _, of_batch, executed, tuples = AtWork(*json.loads(notes.read(note.name, 0, _NOTE_BYTES)))
                fresh = _is_fresh(folder, note.name) and executed < tuples
                if fresh if batch is None else of_batch == batch:
                    known = found.get(component) or ComponentAtWork(component, 0, 0)
                    found[component] = ComponentAtWork(component, known.executed + executed, known.tuples + tuples)
    return tuple(found.values())


def read_repetition(folder: Folder) -> RepetitionInfo | None:
    """Returns how many rounds have been repeated, if some are repeated now; the argument is that of `read_work`."""
    if isinstance(folder, Path):
        with contextlib.suppress(OSError, ValueError, TypeError):  # there is none, or it has been cleared since
            note = as_storage(inside(folder, _NOTES)).read(_REPETITION, 0, _NOTE_BYTES)
            if _is_fresh(folder, _REPETITION):
                return RepetitionInfo(*json.loads(note))
    return None


def _is_fresh(folder: Path, name: str) -> bool:
    return time.time() - (folder / _NOTES / name).stat().st_mtime < _FRESH_SECS


def clear_work(folder: Folder) -> None:
    """Removes all notes, at a new start or when a micro-batch has ended."""
    if isinstance(folder, Path):
        notes = as_storage(inside(folder, _NOTES))
        with contextlib.suppress(OSError):
            for note in notes.list_folder():
                notes.delete(note.name)
