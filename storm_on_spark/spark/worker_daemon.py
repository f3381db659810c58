"""Spark's daemon for Python workers. What user code prints is marked and labelled, and garbage is left longer.

The JVM merges all that its workers print into its own standard error. A mark at the start of each line lets
`storm_on_spark.spark.session.logs.OutputPump` show a bolt's `print` on the terminal and nothing else.

After each task Spark's daemon lets Python look through all objects for garbage. That takes 30 ms with the modules that
a worker has imported, the next task waits for it, and a micro-batch has a task for each stage and partition: it was
half of a small one's processor time. Here all objects are looked through now and then.

Chosen by `spark.python.daemon.module`. Workers are forks of the daemon, so nothing that starts threads
may be imported here: not pyarrow, not pandas.
"""

from __future__ import annotations

import gc
import socket
import sys
import time

from storm_on_spark.runtime.processes.diagnostics import breakpoints, log_levels
from storm_on_spark.runtime.processes.diagnostics.prints import marked_output


class Garbage:
    """Decides what the collection of garbage that Spark's daemon does after a task looks through.

    Args:
        every: seconds between two collections that look through all objects.
        growth: one is also due when the number of memory blocks has grown by this factor since the last one.
    """

    def __init__(self, every: float = 30.0, growth: float = 1.5) -> None:
        self._every = every
        self._growth = growth
        self._due_at = 0.0
        self._most = 0
        self._whole = False

    def after_task(self) -> None:
        """Hides from the collection that follows what is not to be looked through."""
        now = time.monotonic()
        if self._whole:
            # The one before this task looked through everything.
            self._most = int(self._growth * sys.getallocatedblocks())
        self._whole = now >= self._due_at or sys.getallocatedblocks() > self._most
        if self._whole:
            self._due_at = now + self._every
            gc.unfreeze()
        else:
            gc.collect(1)  # what the task itself has left behind, as far as it is young
            gc.freeze()


def main() -> None:
    """Runs Spark's daemon; within its workers, what happens during a task is marked.

    What Spark's own code prints outside of it, such as the traceback of a worker whose task was cancelled, is
    noise and stays unmarked.
    """
    from pyspark import daemon

    work = daemon.worker
    garbage = Garbage()

    def worker(sock: socket.socket, authenticated: bool) -> int:
        log_levels.look()
        with marked_output():
            code = work(sock, authenticated)
        garbage.after_task()
        return code

    breakpoints.pass_over()
    daemon.worker = worker
    daemon.manager()


if __name__ == "__main__":
    main()
