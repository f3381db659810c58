"""Spark's daemon for Python workers, with one addition: what user code prints is marked.

The JVM merges all that its workers print into its own standard error. A mark at the start of each line lets
`storm_on_spark.spark.logs.OutputPump` show a bolt's `print` on the terminal and nothing else.
Chosen by `spark.python.daemon.module`. Workers are forks of the daemon, so nothing that starts threads
may be imported here: not pyarrow, not pandas. That is why this module is not in `storm_on_spark.spark`.
"""

from __future__ import annotations

import io
import os
import sys

MARK = b"\x1e"
"""First byte of a line that user code printed: ASCII's record separator."""


class MarkedOutput(io.RawIOBase):
    """Puts `MARK` before each line. Whole lines are written at once, since other workers share the pipe."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._partial = b""

    def writable(self) -> bool:
        """Always true."""
        return True

    def fileno(self) -> int:
        """Returns the descriptor below; what is written there directly is not marked."""
        return self._descriptor

    def write(self, data: object) -> int:
        """Writes the lines that are complete by now and returns the number of bytes taken."""
        taken = bytes(data)  # type: ignore[call-overload]
        *lines, self._partial = (self._partial + taken).split(b"\n")
        if lines:
            os.write(self._descriptor, b"".join(MARK + line + b"\n" for line in lines))
        return len(taken)


def mark_output() -> None:
    """Marks what this process prints from now on."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        stream.flush()
        marked = io.TextIOWrapper(
            io.BufferedWriter(MarkedOutput(stream.fileno())),
            encoding="utf-8",
            errors="replace",
            line_buffering=True,
        )
        setattr(sys, name, marked)


if __name__ == "__main__":
    from pyspark.daemon import manager

    os.register_at_fork(after_in_child=mark_output)
    manager()
