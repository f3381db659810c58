"""Ends a command at once, by a signal: it prints a sentence and leaves nothing behind.

Raising an exception at a signal can't do that. It comes between any two steps of any library. Code that ignores
exceptions loses it; elsewhere it skips steps on which other code relies (PySpark then removes the folder that its JVM
is about to write to, and that JVM never ends). So the process does not unwind. It stands still, its children are
killed, its temporary folders are removed, and it ends.

Python calls a handler on the main thread, which may be in a call of the system that a signal does not interrupt (see
`storm_on_spark.runtime.processes.ending.signals`). A separate thread learns of each signal through a pipe and does the
work.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import shutil
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import Final

from storm_on_spark.runtime.processes.ending import signals
from storm_on_spark.runtime.processes.ending.signals import TO_END, handled, handling, put_back
from storm_on_spark.runtime.processes.sessions import kill_descendants, kill_session

_PR_SET_CHILD_SUBREAPER: Final = 36
_KILL_SECS: Final = 5.0
"""How long children may take to end; one may be waiting for a disk."""
_PAUSE_SECS: Final = 0.01
_HEARING_SECS: Final = 0.0005
_NO_SIGNAL: Final = 0
_LONGEST_SECS: Final = 15.0
"""After this time the main thread ends the process itself: the other thread can't run while the interpreter ends."""
_SHOW_CURSOR: Final = "\r\x1b[2K\x1b[?25h"
"""Shows the cursor again, which progress on a terminal has hidden, and erases its line."""

_folders: dict[Path, None] = {}
"""Temporary folders of this process."""
_leaders: dict[int, None] = {}
"""Children that lead their own sessions and end with this process."""
_last_words: list[Callable[[str], object]] = []
_ours = 0
"""The process that this module was installed in. Children that it forks have the same handlers."""
_asked = _heard = 0
"""How often the main thread has asked the other one whether it has read everything, and the answers."""


def end_at_once(number: int, frame: FrameType | None = None) -> None:
    """Handles a signal within `ending_at_once`: the main thread waits while the other thread ends everything."""
    if os.getpid() == _ours:
        time.sleep(_LONGEST_SECS)
    os._exit(128 + number)


def install() -> None:
    """Ends this process at once by a signal, wherever nothing else handles it. For a command's main thread.

    A signal that is ignored because of `nohup` stays ignored.
    """
    _listen()
    for number in handled():
        signal.signal(number, end_at_once)


def uninstall() -> None:
    """Leaves the signals to the system, which ends the process: by now that leaves nothing behind."""
    for folder in folders():
        remove_temporary(folder)
    for number in TO_END:
        if signal.getsignal(number) is end_at_once:
            signal.signal(number, signal.SIG_DFL)


@contextlib.contextmanager
def in_force() -> Iterator[None]:
    """Does the same within the block, in a script. Elsewhere nothing changes: a notebook's kernel survives Ctrl-C."""
    is_script = hasattr(sys.modules["__main__"], "__file__")
    if not is_script or threading.current_thread() is not threading.main_thread():
        yield
        return
    _listen()
    with handling(end_at_once):
        yield


@contextlib.contextmanager
def interrupts_raised() -> Iterator[None]:
    """Within the block Ctrl-C raises KeyboardInterrupt again: for `--watch` and shells, which handle it themselves."""
    if signal.getsignal(signal.SIGINT) is not end_at_once:
        yield
        return
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        put_back({signal.SIGINT: end_at_once})


def end(number: int) -> None:
    """Ends this process with all that belongs to it; its exit code is 128 + the signal's number, as in shells."""
    _say(number)
    be_silent()
    with contextlib.suppress(AttributeError):  # not Linux
        # The children of a killed child become children of this process, and are found.
        ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1)
    deadline = time.monotonic() + _KILL_SECS
    while (_kill_leaders() or kill_descendants(os.getpid(), os.getsid(0))) and time.monotonic() < deadline:
        time.sleep(_PAUSE_SECS)
    remove_all(deadline)
    os._exit(128 + number)


def be_silent() -> None:
    """Discards further output: threads that still run would report that the children have ended."""
    nothing = os.open(os.devnull, os.O_WRONLY)
    for descriptor in (1, 2):
        os.dup2(nothing, descriptor)


def folders() -> tuple[Path, ...]:
    """Returns this process' temporary folders."""
    return tuple(_folders)


def remove_all(deadline: float) -> None:
    """Removes this process' temporary folders; `deadline` is in monotonic seconds."""
    for folder in folders():
        while folder.exists() and time.monotonic() < deadline:
            shutil.rmtree(folder, ignore_errors=True)


@contextlib.contextmanager
def last_words(say: Callable[[str], object]) -> Iterator[None]:
    """If the process ends at once within the block, calls `say` with the sentence that is printed."""
    _last_words.append(say)
    try:
        yield
    finally:
        _last_words.remove(say)


@contextlib.contextmanager
def temporary_folder(prefix: str, parent: Path | None = None) -> Iterator[Path]:
    """Yields a new folder. It is removed at the end of the block, also if the process ends at once.

    Example:
        >>> with temporary_folder("words-") as folder:
        ...     folder.is_dir()
        True
        >>> folder.exists()
        False
    """
    folder = make_temporary(prefix, parent)
    try:
        yield folder
    finally:
        remove_temporary(folder)


def make_temporary(prefix: str, parent: Path | None = None) -> Path:
    """Makes a folder for this user only, which exists until `remove_temporary`."""
    while True:
        folder = Path(parent or tempfile.gettempdir()).absolute() / f"{prefix}{os.urandom(4).hex()}"
        # Noted before it is made, so that there is no moment at which it is unknown.
        _folders[folder] = None
        try:
            folder.mkdir(mode=0o700)
        except OSError as error:
            del _folders[folder]
            if not isinstance(error, FileExistsError):
                raise
        else:
            return folder


def remove_temporary(folder: Path) -> None:
    """Removes a folder from `make_temporary` or `belongs_here`. What can't be removed stays."""
    shutil.rmtree(folder, ignore_errors=True)
    _folders.pop(folder, None)


def belongs_here(folder: Path) -> None:
    """Notes that a folder belongs to this process until `remove_temporary`; it, or a child, may make it later."""
    _folders[folder] = None


@contextlib.contextmanager
def ends_with_this(pid: int) -> Iterator[None]:
    """Within the block, the child `pid`, which leads a session, is killed if this process ends at once."""
    _leaders[pid] = None
    try:
        yield
    finally:
        del _leaders[pid]


def _listen() -> None:
    global _ours
    if os.getpid() == _ours:
        return
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    _ours = os.getpid()
    threading.Thread(target=_hear, args=(reader,), name="end-at-once", daemon=True).start()
    signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    signals.all_heard = lambda: _wait_for_hearing(writer)
    # A child would write into the same pipe.
    os.register_at_fork(after_in_child=_leave_pipe)


def _leave_pipe() -> None:
    with contextlib.suppress(ValueError):  # another thread than the main one has forked
        signal.set_wakeup_fd(-1)


def _wait_for_hearing(writer: int) -> None:
    """Waits until the thread has read all signals that came before.

    On a busy machine the thread may be late by any time. Then it would look up the handler that is installed by now,
    and end the process by a signal that an earlier handler has dealt with.
    """
    global _asked
    if os.getpid() != _ours:
        return
    _asked += 1
    os.write(writer, bytes([_NO_SIGNAL]))
    until = time.monotonic() + _LONGEST_SECS
    while _heard != _asked and time.monotonic() < until:
        time.sleep(_HEARING_SECS)


def _hear(reader: int) -> None:
    global _heard
    while True:
        for number in os.read(reader, 64):
            if number == _NO_SIGNAL:
                _heard += 1
                continue
            # Another handler deals with this signal.
            if os.getpid() == _ours and signal.getsignal(number) is end_at_once:
                end(number)


def _kill_leaders() -> bool:
    killed = [kill_session(pid) for pid in list(_leaders)]
    return any(killed)


def _say(number: int) -> None:
    sentence = f"Stopped by {signal.Signals(number).name}."
    with contextlib.suppress(OSError):  # the terminal is gone
        os.write(2, f"{_SHOW_CURSOR if os.isatty(2) else ''}{sentence}\n".encode())
    for say in reversed(_last_words):
        with contextlib.suppress(Exception):
            say(sentence)
