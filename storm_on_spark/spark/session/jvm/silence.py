"""The threads of PySpark and Py4J that would print a traceback, which nobody can act on, when the JVM ends."""

from __future__ import annotations

import contextlib
import functools
import logging
import threading
from typing import Any

COMPLAINT = "Exception while sending command."
"""Py4J's message, with a traceback, by the root logger."""


def silence_its_end() -> None:
    """Keeps both from printing a traceback when the JVM ends while they use it; otherwise nothing changes."""
    _silence_accumulators()
    logging.getLogger().addFilter(_is_of_use)


def _silence_accumulators() -> None:
    """PySpark's server, to which the JVM reports what tasks have counted, doesn't expect its connection to end."""
    from pyspark.accumulators import UpdateRequestHandler

    handle = UpdateRequestHandler.handle
    if hasattr(handle, "__wrapped__"):
        return

    @functools.wraps(handle)
    def quiet(self: Any) -> None:
        with contextlib.suppress(EOFError, ConnectionError):
            handle(self)

    UpdateRequestHandler.handle = quiet  # type: ignore[method-assign]


def _is_of_use(record: logging.LogRecord) -> bool:
    """Returns False for what Py4J's own thread says when it can't free an object of a JVM that has ended."""
    from py4j.clientserver import FinalizerWorker

    return record.msg != COMPLAINT or not isinstance(threading.current_thread(), FinalizerWorker)
