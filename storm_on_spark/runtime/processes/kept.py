"""A server in a process of its own, kept by a thread, so that it ends with this process, however that ends."""

from __future__ import annotations

import signal
import subprocess
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final

from storm_on_spark.runtime.processes.at_once import ends_with_this
from storm_on_spark.runtime.processes.parent import die_with_parent

_POLL_SECS: Final = 0.05
_TERM_SECS: Final = 15.0


class KeptProcess:
    """Starts a command; it leads a session, so Ctrl-C in a terminal does not reach it.

    Args:
        name: of the thread that keeps it.
        command: what to run.
        folder: where it runs.
        out: the file that gets what it prints.
        environment: its variables; None for those of this process.

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
    ) -> None:
        started = threading.Event()
        failure: list[OSError] = []

        def keep() -> None:
            # The kernel ends the process with the thread that started it.
            try:
                with out.open("wb") as output:
                    self._process = subprocess.Popen(
                        die_with_parent(list(command)),
                        cwd=folder,
                        env=environment,
                        stdin=subprocess.DEVNULL,
                        stdout=output,
                        stderr=subprocess.STDOUT,
                        start_new_session=True,
                    )
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
    def pid(self) -> int | None:
        """Its process id; None when it has ended."""
        return self._process.pid if self._process.poll() is None else None

    def serves(self, ready: Callable[[], bool], timeout: float) -> bool:
        """Waits until `ready` holds; returns False if the process ends before, or the time is over."""
        deadline = time.monotonic() + timeout
        while not ready():
            if self.pid is None or time.monotonic() > deadline:
                return False
            time.sleep(_POLL_SECS)
        return True

    def send(self, number: signal.Signals) -> None:
        """Sends a signal; nothing happens when it has ended."""
        self._process.send_signal(number)

    def end(self, number: signal.Signals = signal.SIGKILL) -> None:
        """Sends a signal, and SIGKILL if that does not end it in time; returns when it has ended."""
        self.send(number)
        # A process that SIGSTOP has paused gets other signals only after this one.
        self.send(signal.SIGCONT)
        self._keeper.join(_TERM_SECS)
        if self._keeper.is_alive():
            self._process.kill()
            self._keeper.join()
