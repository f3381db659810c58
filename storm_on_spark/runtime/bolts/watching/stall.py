"""Noticing a bolt that hangs, and how far a slow one has come.

A thread of the Python worker looks now and then at what the main thread executes. If that is the same tuple for
longer than `topology.task.stall.secs`, it writes down which one and kills the worker; Spark then runs the task again,
and after a few such attempts the topology fails, with the note as its reason. Looking from outside costs the hot loops
nothing.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import FrameType
from typing import NamedTuple, NoReturn, TypeVar

from storm_on_spark.api.text.printable import printable
from storm_on_spark.api.tuple import Tuple
from storm_on_spark.runtime.bolts.bolt_task import BoltTask
from storm_on_spark.runtime.bolts.watching.at_work import WorkNotes
from storm_on_spark.runtime.bolts.watching.holding import HolderWatch, clear_held, read_held, take_held
from storm_on_spark.runtime.bolts.watching.in_hand import in_hand
from storm_on_spark.runtime.processes.diagnostics import prints
from storm_on_spark.runtime.processes.run_folder import make_private
from storm_on_spark.runtime.reports.shown_values import input_text
from storm_on_spark.runtime.run.wiring import Wiring
from storm_on_spark.runtime.storage import Folder, as_storage, inside

EXIT_CODE = 75
_LOOK_SECS = 1.0
_NOTES = "stalls"
_NOTE_CHARS = 2000
_NOTE_BYTES = 1 << 16

R = TypeVar("R")


class Stall(NamedTuple):
    """A bolt that hung."""

    component: str
    task: int | None
    sentence: str


class StallWatch:
    """Decides whether a thread hangs; pure except for the frames that it looks at.

    Args:
        stall_secs: how long one tuple may take.
        wiring: of the run that is watched. A worker also executes tasks of other runs, which have their own limits.
        now: monotonic seconds.
    """

    def __init__(self, stall_secs: float, wiring: Wiring, now: Callable[[], float] = time.monotonic) -> None:
        self._stall_secs = stall_secs
        self._wiring = wiring
        self._now = now
        self._loops = BoltTask.loops()
        self._seen: object = None
        self._since = 0.0

    def look(self, frame: FrameType | None) -> Stall | None:
        """Returns what hangs in the stack above `frame`, or None."""
        found = in_hand(frame, self._loops)
        # Between two tuples there is none in hand.
        if found is None or found[1] is None or found[0].wiring is not self._wiring:
            self._seen = None
            return None
        task, item = found
        if item is not self._seen:
            self._seen, self._since = item, self._now()
            return None
        origin = f" from {item.source_component}" if isinstance(item, Tuple) else ""
        waited = self._now() - self._since
        if waited < self._stall_secs:
            return None
        return Stall(
            task.component,
            task.task,
            f'component "{task.component}" (task {task.task}) has been executing one tuple for {waited:.0f} s '
            f"(topology.task.stall.secs = {self._stall_secs:g}): {input_text(item)}{origin}",
        )


class MainThreadWatch:
    """Ends this process when its main thread hangs in a bolt of one run, also where native code holds the interpreter.

    It also notes how far a bolt is that takes long.

    Args:
        stall_secs: how long one tuple may take.
        wiring: that of the run.
        folder: the topology's own folder in the checkpoint; the note goes there.
        local: a folder of this machine for the run. With a checkpoint in a store, which has no files to write stacks
            to, they go there; the next worker of the run on this machine makes a note of them.
    """

    def __init__(self, stall_secs: float, wiring: Wiring, folder: Folder, local: Path) -> None:
        main = threading.main_thread().ident
        assert main is not None
        self._stall_secs, self._main, self._folder = stall_secs, main, folder
        self._watch, self._work = StallWatch(stall_secs, wiring), WorkNotes(wiring, folder)
        self._local = None if isinstance(folder, Path) else local
        stacks = folder if isinstance(folder, Path) else local
        # Another process looks at a live one.
        self._holder = None
        if HolderWatch.counts() or not prints.are_noted():
            with contextlib.suppress(OSError):
                if self._local is not None:
                    make_private(self._local)
                self._holder = HolderWatch(stall_secs, stacks)
        self._over = threading.Event()
        threading.Thread(target=self._run, name="stall-watch", daemon=True).start()

    def enter(self) -> None:
        """Notes that the main thread executes this run next."""
        if self._holder is not None:
            self._holder.enter()

    @contextlib.contextmanager
    def repeats(self, rounds: Sequence[R]) -> Iterator[Iterator[R]]:
        """Notes how many of some rounds have been executed, for as long as the block lasts, in which they are taken."""

        def counted() -> Iterator[R]:
            for number, done in enumerate(rounds):
                self._work.repetition = number, len(rounds)
                yield done

        try:
            yield counted()
        finally:
            self._work.repetition = None

    def close(self) -> None:
        """Ends the watch."""
        self._over.set()
        if self._holder is not None:
            self._holder.close()

    def _run(self) -> None:
        while True:
            if self._local is not None:
                _hand_on_held(self._local, self._folder)
            if self._over.wait(min(self._stall_secs / 4, _LOOK_SECS)):
                return
            frame = sys._current_frames().get(self._main)
            stall = self._watch.look(frame)
            if stall is not None:
                _end(self._folder, stall)
            self._work.look(frame)
            if self._holder is not None:
                self._holder.look()


def _end(folder: Folder, stall: Stall) -> NoReturn:
    sys.stderr.write(printable(f"{stall.sentence}; its worker is ended and the micro-batch tried again\n"))
    sys.stderr.flush()
    try:
        _put_note(folder, stall)
    finally:
        os._exit(EXIT_CODE)


def _put_note(folder: Folder, stall: Stall) -> None:
    note = stall._replace(sentence=stall.sentence[:_NOTE_CHARS])
    as_storage(inside(folder, _NOTES)).put(f"{time.time_ns():020d}-{os.getpid()}", json.dumps(note).encode())


def _hand_on_held(local: Path, folder: Folder) -> None:
    """Makes notes of what workers of this machine wrote when they were ended."""
    for held in take_held(local):
        with contextlib.suppress(OSError):  # the store does not answer: others say so
            _put_note(folder, Stall(*held))


def read_notes(folder: Folder) -> list[Stall]:
    """Returns what was noted since `clear_notes`, oldest first."""
    notes = as_storage(inside(folder, _NOTES))
    found = []
    for note in notes.list_folder():
        with contextlib.suppress(ValueError, TypeError, FileNotFoundError):  # not a note, or cleared since
            found.append(Stall(*json.loads(notes.read(note.name, 0, _NOTE_BYTES))))
    if isinstance(folder, Path):
        found += [Stall(*held) for held in read_held(folder)]
    return found


def clear_notes(folder: Folder, *, at_start: bool = False) -> None:
    """Removes all notes, at a new start or when the micro-batch has completed."""
    notes = as_storage(inside(folder, _NOTES))
    for note in notes.list_folder():
        notes.delete(note.name)
    if isinstance(folder, Path):
        clear_held(folder, all_of_them=at_start)
