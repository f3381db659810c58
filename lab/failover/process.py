"""Processes of a cluster as the harness sees them, and how it waits for them."""

from __future__ import annotations

import contextlib
import queue
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from lab.failover.daemon import ARMED
from lab.suite import ROOT
from lab.suite.processes import WAIT_SECS
from lab.suite.scenario import ScenarioError

END_SECS: Final = 15.0
NEWER: Final = "newer-nimbus"
"""A Nimbus of a later release."""


def _module(command: Sequence[str]) -> list[str]:
    newer = command[0] == NEWER
    return ["lab.failover.newer", "nimbus", *command[1:]] if newer else ["lab.failover.daemon", *command]


class Daemon:
    """A Nimbus, a supervisor or a Pacemaker.

    Args:
        command: what `failover.daemon` is given.
        folder: for its files.
        environment: of its process.
    """

    def __init__(self, command: Sequence[str], folder: Path, environment: Mapping[str, str]) -> None:
        self.folder = folder
        self.log = folder / "log"
        self.stopped = False
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", *_module(command)],
                cwd=ROOT,
                env=dict(environment),
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
        """A Nimbus' or Pacemaker's address, a supervisor's id; waits until it is up."""
        if not self._name:
            with contextlib.suppress(queue.Empty):
                self._name = self._lines.get(timeout=WAIT_SECS)
            if not self._name:
                raise ScenarioError(f"{self.log} has why it did not start")
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
