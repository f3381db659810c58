"""A Nimbus, a supervisor or a Pacemaker in a process of its own, which can be killed, stopped and resumed."""

from __future__ import annotations

import contextlib
import os
import queue
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from storm_on_spark.cluster.service import Closing
from storm_on_spark.testing.simulated.daemon import ARMED

START_SECS: Final = 60.0
END_SECS: Final = 15.0
DAEMON: Final = "storm_on_spark.testing.simulated.daemon"


class DaemonProcess(Closing):
    """A daemon in a process of its own. A `with` statement ends it.

    Args:
        command: kind, configuration file and what else `simulated.daemon` is given.
        folder: for its log.
        environment: of its process; that of this process for None.
        module: what is run in place of `simulated.daemon`; it takes the same command.

    Example:
        >>> nimbus = DaemonProcess(["nimbus", "nimbus.json"], Path("/tmp/nimbus"))       # doctest: +SKIP
        >>> nimbus.name                                                                  # doctest: +SKIP
        '127.0.0.1:41231'
    """

    def __init__(
        self,
        command: Sequence[str],
        folder: Path,
        environment: Mapping[str, str] | None = None,
        module: str = DAEMON,
    ) -> None:
        self.folder = folder
        self.log = folder / "log"
        self.stopped = False
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", module, *command],
                env=dict(os.environ if environment is None else environment),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=log,
                start_new_session=True,
            )
        self.pid = self._process.pid
        self._lines: queue.SimpleQueue[str] = queue.SimpleQueue()
        self._name = ""
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self._process.stdout is not None
        with self._process.stdout as stdout:
            self._lines.put(stdout.readline().decode().strip())

    @property
    def name(self) -> str:
        """A Nimbus' or Pacemaker's address, a supervisor's id; waits until it is up.

        Raises:
            TimeoutError: it did not start within 60 s.
        """
        if not self._name:
            with contextlib.suppress(queue.Empty):
                self._name = self._lines.get(timeout=START_SECS)
            if not self._name:
                raise TimeoutError(f"{self.log} has why it did not start")
        return self._name

    @property
    def answers(self) -> bool:
        """Whether it is up, and neither dead nor stopped."""
        return bool(self._name) and not self.stopped and self._process.poll() is None

    @property
    def exit_code(self) -> int | None:
        """How it ended; None while it runs."""
        return self._process.poll()

    @property
    def said(self) -> str:
        """Its log."""
        return self.log.read_text("utf-8", "replace")

    def kill(self) -> float:
        """Kills it by SIGKILL; returns when, in seconds since the epoch."""
        self.stopped = True
        at = time.time()
        self._process.kill()
        self._process.wait()
        return at

    def pause(self) -> None:
        """Stops it by SIGSTOP."""
        self.stopped = True
        self._process.send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        """Has it go on."""
        self._process.send_signal(signal.SIGCONT)
        self.stopped = False

    def arm(self, step: str, fault: str) -> None:
        """Has a Nimbus kill or stop itself when a submission has come to a step, once."""
        (self.folder / ARMED).write_text(f"{step} {fault}", "utf-8")

    def end(self, number: int = signal.SIGTERM) -> None:
        """Asks it to end."""
        self.stopped = True
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGCONT)
            self._process.send_signal(number)

    def wait(self) -> int:
        """Waits until it has ended, for 60 s at most; returns its exit code, minus the signal that killed it."""
        return self._process.wait(START_SECS)

    def close(self) -> None:
        """Ends it, and waits for that."""
        self.end()
        self.join()

    def join(self) -> bool:
        """Waits for the end; returns whether it came by itself."""
        try:
            self._process.wait(END_SECS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
            return False
        finally:
            self._reader.join()
        return True
