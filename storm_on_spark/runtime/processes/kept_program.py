"""A program in its own process. A thread keeps it, so that it ends with this process, however this one ends."""

from __future__ import annotations

import contextlib
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final

from storm_on_spark.runtime.processes.ending.at_once import ends_with_this
from storm_on_spark.runtime.processes.parent import die_with_parent
from storm_on_spark.runtime.processes.sessions import kill_session, started_at

_POLL_SECS: Final = 0.05
_TERM_SECS: Final = 15.0


class KeptProcess:
    """Starts a command; it leads a session, so Ctrl-C in a terminal does not reach it.

    Args:
        name: of the thread that keeps it.
        command: what to run.
        folder: where it runs.
        out: the file to which its output is appended.
        environment: its variables; None for those of this process.
        answers: the file that gets its standard output; None for `out`.

    Raises:
        OSError: it can't be started.
    """

    def __init__(
        self,
        name: str,
        command: Sequence[str],
        folder: Path,
        out: Path,
        environment: Mapping[str, str] | None = None,
        answers: Path | None = None,
    ) -> None:
        self.out = out
        started = threading.Event()
        failure: list[OSError] = []

        def keep() -> None:
            # The kernel ends the process with the thread that started it.
            try:
                with contextlib.ExitStack() as stack:
                    output = stack.enter_context(out.open("ab"))
                    self._process = subprocess.Popen(
                        die_with_parent(list(command)),
                        cwd=folder,
                        env=environment,
                        stdin=subprocess.DEVNULL,
                        stdout=output if answers is None else stack.enter_context(answers.open("wb")),
                        stderr=output,
                        start_new_session=True,
                    )
                self._started_at = started_at(self._process.pid) or "it has ended"
            except OSError as error:
                failure.append(error)
                return
            finally:
                started.set()
            with ends_with_this(self._process.pid):
                self._process.wait()

        self._keeper = threading.Thread(target=keep, name=name, daemon=True)
        self._keeper.start()
        started.wait()
        if failure:
            raise failure[0]

    @property
    def leader(self) -> int:
        """The id that it has, or had, and that of its session."""
        return self._process.pid

    @property
    def pid(self) -> int | None:
        """Its process id; None when it has ended."""
        return self._process.pid if self.exit_code is None else None

    @property
    def exit_code(self) -> int | None:
        """How it ended, minus the signal that killed it; None while it runs."""
        return self._process.poll()

    def serves(self, ready: Callable[[], bool], timeout: float) -> bool:
        """Waits until `ready` holds; returns False if the process ends or the time is over before that."""
        deadline = time.monotonic() + timeout
        while not ready():
            if self.pid is None or time.monotonic() > deadline:
                return False
            time.sleep(_POLL_SECS)
        return True

    def send(self, number: int) -> None:
        """Sends a signal; does nothing if the process has ended."""
        self._process.send_signal(number)

    def wait(self, timeout: float) -> bool:
        """Waits for its end; returns whether it ended in time."""
        self._keeper.join(timeout)
        return not self._keeper.is_alive()

    def end(self, number: int = signal.SIGKILL, patience: float = _TERM_SECS) -> bool:
        """Ends it with all that is left of its session; returns when nothing is.

        Args:
            number: the signal that it gets; SIGKILL follows if that does not end it in time.
            patience: that time, in seconds.

        Returns:
            Whether the signal was enough.
        """
        self.send(number)
        # A process that SIGSTOP has paused gets other signals only after this one.
        self.send(signal.SIGCONT)
        in_time = self.wait(patience)
        if not in_time:
            self._process.kill()
            self._keeper.join()
        # Repeated: a process that is being started while the others are killed is found in the next round.
        while kill_session(self.leader, self._started_at):
            time.sleep(_POLL_SECS)
        return in_time
