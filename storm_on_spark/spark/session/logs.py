"""The output of Java and of the Python workers goes into files of bounded size, not to the terminal.

A session writes two files side by side: `NAME.log` is Spark's own log, rolled by log4j; `NAME.out` is what
the JVM and the Python workers print. A line that a bolt prints goes to the terminal as well: workers mark
their lines with `MARK` (see `spark.worker_daemon`), so no guess is needed to tell them from Java's noise.
"""

from __future__ import annotations

import contextlib
import os
import re
import sys
import tempfile
import threading
import time
from collections import deque
from collections.abc import Callable
from datetime import datetime, timezone
from pathlib import Path
from typing import BinaryIO

from storm_on_spark.api.text.printable import printable
from storm_on_spark.runtime.processes.diagnostics.prints import MARK, is_timed, stamp
from storm_on_spark.spark.session.folders.dirs import own_dir, state_dir, writable_dir

LOG4J_CONFIGURATION = Path(__file__).with_name("log4j2.properties")

_SESSION = re.compile(r"\d{8}T\d{6}-\d+")
_KEPT_SESSIONS = 20
_MAX_OUT_BYTES = 10 * 1024 * 1024


def new_log_file(folder: Path | None = None) -> Path:
    """Returns the log file for a new session, and removes those of the oldest sessions."""
    folder = state_dir() / "logs" if folder is None else folder
    if not writable_dir(folder):
        folder = Path(tempfile.gettempdir()) / f"storm-on-spark-logs-{os.getuid()}"
        if not own_dir(folder):
            folder = Path(tempfile.mkdtemp(prefix="storm-on-spark-logs-"))
    sessions = {found[0] for file in folder.iterdir() if (found := _SESSION.match(file.name))}
    for old in sorted(sessions, reverse=True)[_KEPT_SESSIONS - 1 :]:
        for file in folder.glob(f"{old}[.-]*"):
            with contextlib.suppress(OSError):
                file.unlink()
    stamp = datetime.now(timezone.utc).strftime("%Y%m%dT%H%M%S")
    return folder / f"{stamp}-{os.getpid()}.log"


class OutputPump(threading.Thread):
    """Copies what the JVM prints into `file`, and marked lines, which get their time there, to `show` too.

    Ends when the JVM has ended.

    Args:
        source: read end of the JVM's standard output and error.
        file: gets every line. At `max_bytes` a new one is begun, and the old one is kept as `file` + `.1`.
        show: gets each marked line, without the mark; by default they go to standard error.
        max_bytes: size of one part.
    """

    def __init__(
        self,
        source: BinaryIO,
        file: Path,
        show: Callable[[str], None] | None = None,
        max_bytes: int = _MAX_OUT_BYTES,
    ) -> None:
        # A daemon thread: the JVM may run longer than the interpreter, which must not wait for it.
        super().__init__(name="storm-on-spark-jvm-output", daemon=True)
        self._source = source
        self._file = file
        self._show = _to_stderr if show is None else show
        self._max_bytes = max_bytes
        self._tail: deque[str] = deque(maxlen=20)

    @property
    def tail(self) -> list[str]:
        """The last lines that were not marked: why the JVM did not start."""
        return list(self._tail)

    def run(self) -> None:
        """Copies until the end."""
        with self._source:
            try:
                self._copy()
            except (OSError, ValueError):
                # The disk is full or the terminal is gone. Keep reading: a JVM that can't print stops.
                with contextlib.suppress(OSError, ValueError):
                    while self._source.read(1 << 16):
                        pass

    def _copy(self) -> None:
        out, size = self._open(), 0
        try:
            # A limit, since one endless line must not fill the memory.
            while line := self._source.readline(1 << 16):
                marked = line.startswith(MARK)
                text = line.removeprefix(MARK)
                if marked:
                    self._show(text.decode(errors="replace"))
                    text = text if is_timed() else stamp(time.time()).encode() + text
                else:
                    self._tail.append(text.decode(errors="replace").rstrip())
                out.write(text)
                out.flush()
                size += len(text)
                if size > self._max_bytes:
                    out.close()
                    self._file.replace(self._file.with_name(self._file.name + ".1"))
                    out, size = self._open(), 0
        finally:
            with contextlib.suppress(OSError):
                out.close()

    def _open(self) -> BinaryIO:
        return os.fdopen(os.open(self._file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb")


def _to_stderr(line: str) -> None:
    sys.stderr.write(printable(line))
    sys.stderr.flush()
