"""A driver's processes: started in their own session, found again, stopped, killed."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from storm_on_spark.cluster.driver.files import ProcessFile, RunFolder
from storm_on_spark.cluster.errors import ClusterError, RecordError
from storm_on_spark.cluster.supervisor.slots import ProcessState
from storm_on_spark.runtime.processes.diagnostics.prints import TIMED
from storm_on_spark.runtime.processes.lock_file import locked
from storm_on_spark.runtime.processes.sessions import kill_session, session_members, started_at, this_kernel

DRIVER = "storm_on_spark.cluster.driver"
"""The module that is run."""
_FIND_SECS = 10.0
"""How long a driver may take from its start to its first file."""
_POLL_SECS = 0.05


class DriverProcess:
    """A driver and all that it started.

    Args:
        pid: its process id, and that of its session.
        started: when it was started, as `started_at` says.
        child: the same as a child of this process; None if an earlier supervisor started it.
        gone: whether nothing is left of it already.
    """

    def __init__(
        self, pid: int, started: str, child: subprocess.Popen[bytes] | None = None, *, gone: bool = False
    ) -> None:
        self.pid = pid
        self.started = started
        self._child = child
        #: Once all of it has ended, the system may give its number to another process.
        self._gone = gone

    def state(self) -> ProcessState:
        """Returns whether it runs, and if not, whether something of it is left."""
        if self._gone:
            return "gone"
        # `poll` also reaps the child.
        alive = self._child.poll() is None if self._child is not None else started_at(self.pid) == self.started
        if alive:
            return "alive"
        if session_members(self.pid, self.started):
            return "orphans"
        self._gone = True
        return "gone"

    def terminate(self) -> None:
        """Asks the driver to end."""
        if self.state() == "alive":
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGTERM)

    def kill(self) -> None:
        """Kills the driver and all that it started."""
        if not self._gone:
            kill_session(self.pid, self.started)
            if self._child is not None:
                self._child.poll()


def launch(
    folder: RunFolder, output: Path, environment: Mapping[str, str] | None = None, module: str = DRIVER
) -> DriverProcess:
    """Starts a driver in its own session; it continues when this process ends.

    Args:
        folder: with the driver's `DriverSpec`.
        output: file that what it prints is appended to.
        environment: variables to set.
        module: what runs as the driver.

    Raises:
        ClusterError: a driver holds the folder's lock.
        OSError: it can't be started.
    """
    # The driver must find this very package, also where it was not installed.
    package = str(Path(__file__).parents[3])
    path = os.pathsep.join([package, *filter(None, [os.environ.get("PYTHONPATH")])])
    output.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    log = os.open(output, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        with _locked(folder) as lock:
            if lock is None:
                raise ClusterError(f"a driver runs in {folder.path} already")
            # The driver inherits the lock: it holds it from its start on, also if this process is killed then.
            child = subprocess.Popen(
                [sys.executable, "-m", module, str(folder.path), str(lock)],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                pass_fds=[lock],
                cwd=folder.path,
                env={**os.environ, "PYTHONPATH": path, TIMED: "1", **(environment or {})},
                start_new_session=True,
            )
    finally:
        os.close(log)
    return DriverProcess(child.pid, started_at(child.pid) or "", child)


def find(folder: RunFolder, sleep: Callable[[float], None] = time.sleep) -> tuple[DriverProcess, ProcessFile] | None:
    """Returns the driver that an earlier supervisor started in a folder, or its remains; None without either.

    Args:
        folder: where to look.
        sleep: waits for seconds.

    Raises:
        ClusterError: an unknown process holds the folder's lock.
    """
    for _ in range(int(_FIND_SECS / _POLL_SECS)):
        with _locked(folder) as lock:
            held = lock is None
        try:
            file = folder.process()
        except RecordError:
            file = None
        if file is not None and file.kernel == this_kernel():
            process = DriverProcess(file.pid, file.started)
            if process.state() == "alive" or not held:
                return None if process.state() == "gone" else (process, file)
        elif not held:
            return None
        # The lock is held by one that was just started.
        sleep(_POLL_SECS)
    raise ClusterError(f"an unknown process holds the lock {folder.lock}; find it and end it")


def is_free(folder: RunFolder) -> bool:
    """Returns whether no driver runs in a folder."""
    try:
        with _locked(folder) as lock:
            return lock is not None
    except OSError:
        return False


@contextlib.contextmanager
def _locked(folder: RunFolder) -> Iterator[int | None]:
    """Holds the folder's lock; None if another process has it."""
    try:
        descriptor = locked(folder.lock)
    except BlockingIOError:
        yield None
        return
    try:
        yield descriptor
    finally:
        os.close(descriptor)
