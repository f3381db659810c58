"""A running step: its process, its log, and its end."""

from __future__ import annotations

import contextlib
import logging
import os
import signal
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any, Final, NamedTuple

import msgspec

from storm_on_spark.xd.container.jobs.orders import LONGEST_ERROR, StepOrder, StepResult
from storm_on_spark.xd.tree.jobs import ReportNode, Status

logger = logging.getLogger(__name__)

MOST_LOG: Final = 10_000_000
"""Bytes of a step's log; what it prints beyond that is dropped."""
_GRACE_SECS: Final = 5.0
_MOST_RESULT: Final = 65_536
_BEATS: Final = 5
"""Signs of life within a lease."""


class _End(NamedTuple):
    """The end of a step."""

    status: Status
    exit: int | None
    error: str
    exit_status: str = ""


class StepProcess:
    """Runs one step; each end is reported once.

    Args:
        order: the first message to the process.
        log: the file of its output.
        connected: returns whether the container has its session.
        on_report: called on a separate thread when the step has started and when it has ended.
        clock: seconds since 1970.
    """

    def __init__(
        self,
        order: StepOrder,
        log: Path,
        connected: Callable[[], bool],
        on_report: Callable[[ReportNode], None],
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._order = order
        self._log = log
        self._connected = connected
        self._on_report = on_report
        self._clock = clock
        self._woken = threading.Event()
        self._why: tuple[Status, str] | None = None
        self._last: deque[str] = deque(maxlen=1)
        self._thread = threading.Thread(target=self._run, name=f"step-{order.job}-{order.step}", daemon=True)

    def start(self) -> None:
        """Starts it."""
        self._thread.start()

    def end(self, status: Status, error: str) -> None:
        """Requests the end of the process, and sets the report for it."""
        if self._why is None:
            self._why = status, error
        self._woken.set()

    def join(self) -> None:
        """Returns when the process has ended."""
        self._thread.join()

    def _run(self) -> None:
        started = self._clock()
        begun = ReportNode(status="STARTED", started=started, log=str(self._log))
        try:
            end = self._lived(begun)
        except OSError as failed:
            end = _End("FAILED", None, f"the step's process can't be run: {failed}")
        except Exception as failed:
            logger.exception("Step %s of job %s", self._order.step, self._order.job)
            end = _End("FAILED", None, f"{type(failed).__name__}: {failed}")
        self._on_report(
            msgspec.structs.replace(
                begun,
                status=end.status,
                ended=self._clock(),
                exit=end.exit,
                exit_status=end.exit_status,
                error=end.error[:LONGEST_ERROR],
            )
        )

    def _lived(self, begun: ReportNode) -> _End:
        self._log.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        reader, writer = os.pipe()
        with os.fdopen(reader, "rb") as result:
            try:
                process = subprocess.Popen(
                    [sys.executable, "-m", "storm_on_spark.xd.container.jobs.child", str(writer)],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.STDOUT,
                    pass_fds=(writer,),
                    # Its children are ended with it.
                    start_new_session=True,
                )
            finally:
                os.close(writer)
            assert process.stdin is not None
            assert process.stdout is not None
            pump = threading.Thread(target=self._pump, args=(process.stdout,), name="step-log", daemon=True)
            pump.start()
            self._on_report(begun)
            with contextlib.suppress(BrokenPipeError):
                process.stdin.write(msgspec.json.encode(self._order) + b"\n")
                process.stdin.flush()
            self._attend(process)
            # A process that left the group may keep the other end open.
            pump.join(_GRACE_SECS)
            with contextlib.suppress(BrokenPipeError):
                process.stdin.close()
            code = process.wait()
            return self._outcome(code, result)

    def _attend(self, process: subprocess.Popen[bytes]) -> None:
        """Waits for the end of the process and its group. It is not reaped, so its id can't be reused."""
        pause = self._order.lease / _BEATS
        deadline: float | None = None
        while os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None:
            if self._why is not None and deadline is None:
                deadline = time.monotonic() + _GRACE_SECS
                os.killpg(process.pid, signal.SIGTERM)
            if deadline is not None and time.monotonic() > deadline:
                os.killpg(process.pid, signal.SIGKILL)
            if self._connected():
                with contextlib.suppress(BrokenPipeError):
                    assert process.stdin is not None
                    process.stdin.write(b".")
                    process.stdin.flush()
            self._woken.wait(min(pause, 0.1))
            self._woken.clear()
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)

    def _pump(self, output: IO[bytes]) -> None:
        written = 0
        with output, self._log.open("wb") as log:
            for line in iter(lambda: output.readline(65_536), b""):
                if written < MOST_LOG:
                    log.write(line)
                    log.flush()
                    written += len(line)
                if line.strip():
                    self._last.append(line.decode("utf-8", "replace").strip())

    def _outcome(self, code: int, result: Any) -> _End:
        try:
            told = msgspec.json.decode(result.read(_MOST_RESULT), type=StepResult)
        except (msgspec.MsgspecError, RecursionError):
            told = None
        if told is not None and told.exit == code == 0:
            # It completed before the request to end reached it.
            return _End("COMPLETED", 0, "", told.exit_status)
        if self._why is not None:
            return _End(self._why[0], code, self._why[1])
        if told is not None:
            return _End("FAILED", code, told.error or f"exit code {code}")
        how = f"exit code {code}" if code >= 0 else f"ended by signal {-code}"
        error = f"the process of the step has ended: {how}; last it printed: {''.join(self._last)}"
        return _End("FAILED", code, error)
