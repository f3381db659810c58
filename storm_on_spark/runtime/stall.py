"""Noticing a bolt that hangs.

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
from collections.abc import Callable
from pathlib import Path
from types import CodeType, FrameType
from typing import NamedTuple, NoReturn

from storm_on_spark.api.tuple import Tuple
from storm_on_spark.runtime.bolt_task import BoltTask

EXIT_CODE = 75
_NOTES = "stalls"
_NOTE_CHARS = 2000


class Stall(NamedTuple):
    """A bolt that hung."""

    component: str
    task: int
    sentence: str


class StallWatch:
    """Decides whether a thread hangs; pure but for the frames that it looks at.

    Args:
        stall_secs: how long one tuple may take.
        now: monotonic seconds.
    """

    def __init__(self, stall_secs: float, now: Callable[[], float] = time.monotonic) -> None:
        self._stall_secs = stall_secs
        self._now = now
        self._loops = BoltTask.loops()
        self._seen: object = None
        self._since = 0.0

    def look(self, frame: FrameType | None) -> Stall | None:
        """Returns what hangs in the stack above `frame`, or None."""
        found = _executing(frame, self._loops)
        if found is None:
            self._seen = None
            return None
        task, item = found
        if item is not self._seen:
            self._seen, self._since = item, self._now()
            return None
        waited = self._now() - self._since
        if waited < self._stall_secs:
            return None
        what = repr(item) if isinstance(item, Tuple) else f"a batch of {getattr(item, 'num_rows', '?')} rows"
        return Stall(
            task.component,
            task.task,
            f'component "{task.component}" (task {task.task}) has been executing one tuple for {waited:.0f} s '
            f"(topology.task.stall.secs = {self._stall_secs:g}): {what:.500}",
        )


def _executing(frame: FrameType | None, loops: frozenset[CodeType]) -> tuple[BoltTask, object] | None:
    """Returns the task and the tuple or batch in hand, if a bolt executes in this stack."""
    while frame is not None:
        if frame.f_code in loops:
            names = frame.f_locals
            return names["self"], names.get("tup", names.get("batch"))
        frame = frame.f_back
    return None


def watch_main_thread(stall_secs: float, folder: Path) -> None:
    """Starts the thread that ends this process when its main thread hangs in a bolt.

    Args:
        stall_secs: how long one tuple may take.
        folder: the topology's own folder in the checkpoint; the note goes there.
    """
    main = threading.main_thread().ident
    assert main is not None
    watch = StallWatch(stall_secs)

    def run() -> None:
        while True:
            time.sleep(stall_secs / 4)
            stall = watch.look(sys._current_frames().get(main))
            if stall is not None:
                _end(folder, stall)

    threading.Thread(target=run, name="stall-watch", daemon=True).start()


def _end(folder: Path, stall: Stall) -> NoReturn:
    sys.stderr.write(f"{stall.sentence}; its worker is ended and the micro-batch tried again\n")
    sys.stderr.flush()
    try:
        notes = folder / _NOTES
        notes.mkdir(exist_ok=True)
        note = stall._replace(sentence=stall.sentence[:_NOTE_CHARS])
        (notes / f"{time.time_ns()}-{os.getpid()}").write_text(json.dumps(note))
    finally:
        os._exit(EXIT_CODE)


def read_notes(folder: Path) -> list[Stall]:
    """Returns what was noted since `clear_notes`, oldest first."""
    notes = folder / _NOTES
    if not notes.is_dir():
        return []
    found = []
    for path in sorted(notes.iterdir()):
        with contextlib.suppress(ValueError, TypeError):  # the worker was killed while it wrote
            found.append(Stall(*json.loads(path.read_text())))
    return found


def clear_notes(folder: Path) -> None:
    """Forgets what was noted: a new start, or the micro-batch has come to its end after all."""
    notes = folder / _NOTES
    if notes.is_dir():
        for path in notes.iterdir():
            path.unlink(missing_ok=True)
