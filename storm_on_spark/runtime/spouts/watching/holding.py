"""Detects native code that holds the interpreter of a spout host, so that no Python thread can run.

The host regularly writes the time to a file that it shares with its parent process, which checks the
file. When the host hasn't run for `topology.task.stall.secs`, it is ended by SIGABRT: `faulthandler` then writes the
stacks of all threads to the file without needing the interpreter. It also does so when native code crashes.
"""

from __future__ import annotations

import contextlib
import faulthandler
import itertools
import os
import re
import signal
import subprocess
import sysconfig
import tempfile
import threading
from collections.abc import Sequence
from typing import Final, NamedTuple

from storm_on_spark.runtime.processes.diagnostics.busy import SIZE, BusyPage, breathed_at
from storm_on_spark.runtime.processes.is_stopped import is_stopped

_LOOK_SECS: Final = 1.0
_FEWEST_LOOKS: Final = 3
"""On a busy machine a host may not run for a second."""
_DUMP_SECS: Final = 5.0
"""How long a host may take to write its stacks."""
_MOST_BYTES: Final = 1 << 18
_LIMIT: Final = re.compile(r"^limit (\d+)$", re.MULTILINE)
_EXECUTOR: Final = re.compile(r"^executor ([0-9a-f]+) (.*)$", re.MULTILINE)
_THREAD: Final = re.compile(r"^(Current thread|Thread) 0x0*([0-9a-f]+)")
_FRAME: Final = re.compile(r'^  (File "(.*)", line \d+ in .*)$', re.MULTILINE)
_CRASH: Final = "Fatal Python error"
_OUR_OWN: Final = "/storm_on_spark/runtime/"
"""Part of the paths of code that waits for the interpreter, and never holds it for long."""
_STANDARD: Final = sysconfig.get_path("stdlib") + os.sep
_INSTALLED: Final = f"{os.sep}site-packages{os.sep}"


class HostBreath:
    """The host's side of the file.

    Args:
        descriptor: of the file; it stays open.
    """

    def __init__(self, descriptor: int) -> None:
        os.set_inheritable(descriptor, False)
        self._file = descriptor
        self._page = BusyPage(descriptor)
        os.lseek(descriptor, SIZE, os.SEEK_SET)
        faulthandler.enable(descriptor)

    def note_executor(self, component: str, tasks: Sequence[int]) -> None:
        """Registers this thread as an executor of a spout."""
        words = f'component "{component}" (task{"s" * (len(tasks) > 1)} {", ".join(map(str, tasks))})'
        self._write(f"executor {threading.get_ident():x} {words}\n")

    def begin(self, stall_secs: int) -> None:
        """Starts the checks of the host.

        Args:
            stall_secs: seconds that the interpreter may be held.
        """
        self._write(f"limit {stall_secs}\n")
        self._page.breathe()

    def _write(self, text: str) -> None:
        with contextlib.suppress(OSError):  # the disk is full: the host is not looked at, or not named
            os.write(self._file, text.encode("utf-8", "replace"))


class HostWatch:
    """The parent's side of the file: it checks whether the host is running.

    Args:
        stopped_secs: how long the host may be stopped; None for as long as somebody likes.
    """

    def __init__(self, stopped_secs: float | None = None) -> None:
        self._stopped_secs = stopped_secs
        self._file = tempfile.TemporaryFile()  # noqa: SIM115 # closed by `close`
        self._file.truncate(SIZE)
        self._over = threading.Event()
        self._thread: threading.Thread | None = None
        #: Seconds that the interpreter was held, if that ended the host, or that it was stopped.
        self._told = ""
        self._was_stopped = ""
        #: What the host has written, once the file is closed.
        self._text = ""

    @property
    def descriptor(self) -> int:
        """The file, which the host inherits."""
        return self._file.fileno()

    def start(self, process: subprocess.Popen[bytes]) -> None:
        """Starts checking the host, on a thread that ends with `close`."""
        self._thread = threading.Thread(target=self._look, args=(process.pid,), name="spout-host-watch", daemon=True)
        self._thread.start()

    def how_it_ended(self, code: int) -> str:
        """Describes how the host ended, and the native code's position if that ended it.

        Args:
            code: the exit code of `subprocess`.
        """
        self.close()
        text = self._text
        _, crash, stacks = text.rpartition(_CRASH)
        found = _executors_at(text, stacks) if crash else []
        if self._was_stopped:
            return self._was_stopped
        if self._told:
            return _held(self._told, found)
        return in_words(code) + "".join(f" in {each.name}: {each.frame}" for each in found if each.current)

    def close(self) -> None:
        """Stops checking the host."""
        self._over.set()
        if self._thread is not None:
            self._thread.join()
        if not self._file.closed:
            self._text = self._read()
            self._file.close()

    def _read(self) -> str:
        return os.pread(self._file.fileno(), _MOST_BYTES, SIZE).decode("utf-8", "replace")

    def _look(self, pid: int) -> None:
        seen, looks, stops = 0.0, 0, 0
        while not self._over.wait(_LOOK_SECS):
            at = breathed_at(os.pread(self.descriptor, SIZE, 0))
            # Counts checks, not seconds: this process may have been stopped as well.
            stops = stops + 1 if is_stopped(pid) else 0
            looks = 0 if at != seen or stops else looks + 1
            seen = at
            if self._stopped_secs is not None and stops * _LOOK_SECS >= self._stopped_secs:
                self._was_stopped = f"it was ended, as it had been stopped for {self._stopped_secs:.0f} s"
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
                return
            if looks < _FEWEST_LOOKS or not at:
                continue
            limit = _LIMIT.search(self._read())
            if limit is not None and looks * _LOOK_SECS >= int(limit[1]):
                self._told = f"for {looks * _LOOK_SECS:.0f} s (topology.task.stall.secs = {limit[1]})"
                self._end(pid)
                return

    def _end(self, pid: int) -> None:
        for number in (signal.SIGABRT, signal.SIGKILL):
            with contextlib.suppress(ProcessLookupError):  # it has just ended
                os.kill(pid, number)
            if self._over.wait(_DUMP_SECS):
                return


def in_words(code: int) -> str:
    """Describes an exit code of `subprocess`.

    Example:
        >>> in_words(3), in_words(-9)
        ('exit code 3', 'killed by SIGKILL')
    """
    if code >= 0:
        return f"exit code {code}"
    try:
        return f"killed by {signal.Signals(-code).name}"
    except ValueError:
        return f"killed by signal {-code}"


class _Executor(NamedTuple):
    name: str
    frame: str
    current: bool
    """Whether it crashed."""


def _executors_at(text: str, stacks: str) -> list[_Executor]:
    """Returns executors and the line of code that each is at, without those that wait in this package's code."""
    names, found = dict(_EXECUTOR.findall(text)), []
    for stack in stacks.split("\n\n"):
        thread, frames = _THREAD.search(stack.strip()), _FRAME.findall(stack)
        if thread and thread[2] in names and _is_in_a_spout([path for _, path in frames]):
            found.append(_Executor(names[thread[2]], frames[0][0], thread[1].startswith("Current")))
    return found


def _is_in_a_spout(paths: Sequence[str]) -> bool:
    """Returns whether this package has called code that is neither its own nor Python's.

    Args:
        paths: of the frames of a stack, the innermost first.
    """
    called = itertools.takewhile(lambda path: _OUR_OWN not in path, paths)
    return not all(path.startswith(_STANDARD) and _INSTALLED not in path for path in called)


def _held(how_long: str, found: Sequence[_Executor]) -> str:
    what = f"held the Python interpreter {how_long}"
    if len(found) == 1:
        return f"it was ended: {found[0].name}, or what it calls, {what}: {found[0].frame}"
    places = "; ".join(f"{executor.name}: {executor.frame}" for executor in found)
    return f"it was ended: one of its components, or what it calls, {what}{': ' * bool(found)}{places}"
