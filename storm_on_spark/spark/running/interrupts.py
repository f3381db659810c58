"""Ctrl-C, and the interrupt of a notebook's cell, while code waits for a topology."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Iterator

from storm_on_spark.runtime.processes.ending.signals import put_back
from storm_on_spark.spark.session.interrupts import is_pysparks


@contextlib.contextmanager
def interruptible() -> Iterator[None]:
    """Lets an interrupt end the waiting within, and nothing else.

    PySpark cancels all jobs of the session at an interrupt, which would end the topology as failed, in the middle of a
    micro-batch. A handler that other code installed stays.
    """
    before = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or not is_pysparks(before):
        yield
        return
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        put_back({signal.SIGINT: before})
