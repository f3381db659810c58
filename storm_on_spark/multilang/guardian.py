"""The thread that owns a child process: it reads stderr, reaps the child, and ends it when it is not needed.

It lives in the process that started the child. Other processes see what it finds out in the files of the child's
folder: `stderr` has the last lines, `exit` the exit code. A folder that is gone means that the child must end.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

from storm_on_spark.runtime.processes.sessions import kill_descendants, kill_session, started_at

IDLE_SECS = 3600.0
"""Seconds without a turn after which the child of a bolt ends: its task is executed on another machine by now."""
TAIL_BYTES = 8192

_POLL_SECS = 0.1
_ROUNDS = 100
"""Of killing, for children that start others meanwhile."""
_LINE_CHARS = 2000


class Guardian:
    """Watches one child.

    Args:
        process: the child, with a pipe for its stderr; leads its own session.
        folder: of the child.
        kept: descriptors that stay open as long as the child lives.
        label: precedes each line of stderr, e.g. `[split:4] `.
        idle_secs: see `IDLE_SECS`; None for no limit.
    """

    def __init__(
        self, process: subprocess.Popen[bytes], folder: Path, kept: list[int], label: str, idle_secs: float | None
    ) -> None:
        self._process = process
        self._folder = folder
        self._kept = kept
        self._label = label
        self._idle_secs = idle_secs
        self._tail = b""
        self._line = b""
        self._said = 0
        threading.Thread(target=self._run, name=f"multilang-{process.pid}", daemon=True).start()

    def _run(self) -> None:
        assert self._process.stderr is not None
        error = self._process.stderr.fileno()
        os.set_blocking(error, False)
        reading = True
        try:
            while not self._has_ended():
                if reading:
                    ready, _, _ = select.select([error], [], [], _POLL_SECS)
                    if ready:
                        reading = self._take(error)
                else:
                    time.sleep(_POLL_SECS)
                if self._is_over():
                    break
            # Before the child is reaped its number can't belong to another process.
            end_family(self._process.pid, None)
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self._process.pid, signal.SIGKILL)
            code = self._process.wait()
            while reading and select.select([error], [], [], 0)[0]:
                reading = self._take(error)
            with contextlib.suppress(OSError):  # the folder is gone
                (self._folder / "exit.part").write_text(str(code))
                (self._folder / "exit.part").rename(self._folder / "exit")
        finally:
            self._process.stderr.close()
            for descriptor in self._kept:
                os.close(descriptor)

    def _has_ended(self) -> bool:
        return os.waitid(os.P_PID, self._process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None

    def _is_over(self) -> bool:
        try:
            used = (self._folder / "record").stat().st_mtime
        except FileNotFoundError:
            return True
        return self._idle_secs is not None and time.time() - used > self._idle_secs

    def _take(self, error: int) -> bool:
        """Reads what is in stderr; returns whether there may be more."""
        try:
            data = os.read(error, 1 << 16)
        except BlockingIOError:
            return True
        if not data:
            return False
        self._tail = (self._tail + data)[-TAIL_BYTES:]
        with contextlib.suppress(OSError):
            (self._folder / "stderr").write_bytes(self._tail)
        *lines, self._line = (self._line + data).split(b"\n")
        self._line = self._line[:_LINE_CHARS]
        text = "".join(f"{self._label}{line[:_LINE_CHARS].decode('utf-8', 'replace')}\n" for line in lines)
        with contextlib.suppress(ValueError, OSError):  # stderr is closed
            sys.stderr.write(text)
        return True


def end_family(pid: int, started: str | None) -> None:
    """Kills a child and all that it has started.

    Args:
        pid: of the launcher that leads its session.
        started: when that was started, as `started_at` says it; None if the number can't belong to another process.
    """
    # The launcher comes last: as long as it lives, what has left its session is found among its descendants.
    for _ in range(_ROUNDS):
        if (started is not None and started_at(pid) != started) or not kill_descendants(pid):
            break
    kill_session(pid, started)
