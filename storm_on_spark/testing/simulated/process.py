"""A Nimbus, a supervisor or a Pacemaker in a separate process, which can be killed, stopped and resumed."""

from __future__ import annotations

import signal
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from storm_on_spark.runtime.processes.closing import Closing
from storm_on_spark.runtime.processes.kept_program import KeptProcess
from storm_on_spark.testing.simulated.daemon import ARMED

START_SECS: Final = 60.0
END_SECS: Final = 15.0
DAEMON: Final = "storm_on_spark.testing.simulated.daemon"


class DaemonProcess(Closing):
    """A daemon in a separate process. A `with` statement ends it.

    Args:
        command: kind, configuration file and the other arguments of `simulated.daemon`.
        folder: for its log.
        environment: of its process; None for that of this process.
        module: to run instead of `simulated.daemon`, with the same command.

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
        self._answers = folder / "answers"
        program = [sys.executable, "-m", module, *command]
        self._process = KeptProcess(folder.name, program, Path.cwd(), self.log, environment, self._answers)
        self.pid = self._process.leader
        self._read = 0

    def line(self) -> str:
        """Returns the next line of its standard output.

        Raises:
            TimeoutError: it has ended before, or 60 s have passed.
        """
        read = self._read
        self._process.serves(lambda: len(self._lines()) > read, START_SECS)
        lines = self._lines()
        if len(lines) <= read:
            raise TimeoutError(f"{self.log} has why it did not start")
        self._read += 1
        return lines[read]

    def _lines(self) -> list[str]:
        return self._answers.read_text("utf-8").split("\n")[:-1]

    @property
    def name(self) -> str:
        """A Nimbus' or Pacemaker's address, a supervisor's id; waits until it is up.

        Raises:
            TimeoutError: it did not start within 60 s.
        """
        return self._lines()[0] if self._read else self.line()

    @property
    def answers(self) -> bool:
        """Whether it is up, and neither dead nor stopped."""
        return self._read > 0 and not self.stopped and self._process.pid is not None

    @property
    def exit_code(self) -> int | None:
        """Its exit code; None while it runs."""
        return self._process.exit_code

    @property
    def said(self) -> str:
        """Its log."""
        return self.log.read_text("utf-8", "replace")

    def kill(self) -> float:
        """Kills it by SIGKILL; returns when, in seconds since the epoch."""
        self.stopped = True
        at = time.time()
        self._process.send(signal.SIGKILL)
        self._process.wait(END_SECS)
        return at

    def pause(self) -> None:
        """Stops it by SIGSTOP."""
        self.stopped = True
        self._process.send(signal.SIGSTOP)

    def resume(self) -> None:
        """Resumes it."""
        self._process.send(signal.SIGCONT)
        self.stopped = False

    def arm(self, step: str, fault: str) -> None:
        """Makes a Nimbus kill or stop itself once, when a submission has reached a step."""
        (self.folder / ARMED).write_text(f"{step} {fault}", "utf-8")

    def end(self, number: int = signal.SIGTERM) -> None:
        """Asks it to end."""
        self.stopped = True
        self._process.send(signal.SIGCONT)
        self._process.send(number)

    def wait(self) -> int | None:
        """Waits until it has ended, for 60 s at most; returns its exit code, minus the signal that killed it."""
        self._process.wait(START_SECS)
        return self.exit_code

    def close(self) -> None:
        """Ends it, and waits for that."""
        self.end()
        self.join()

    def join(self, timeout: float = END_SECS) -> bool:
        """Waits for its end; returns whether it ended by itself within this many seconds."""
        if self._process.wait(timeout):
            return True
        self._process.send(signal.SIGKILL)
        self._process.wait(timeout)
        return False
