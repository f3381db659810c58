"""PySpark's server of accumulators in the driver's process, to which the JVM reports what tasks have counted."""

from __future__ import annotations

import contextlib
import functools
from typing import Any


def silence_its_end() -> None:
    """Keeps PySpark from printing a traceback when the JVM ends while it is connected; otherwise nothing changes."""
    from pyspark.accumulators import UpdateRequestHandler

    handle = UpdateRequestHandler.handle
    if hasattr(handle, "__wrapped__"):
        return

    @functools.wraps(handle)
    def quiet(self: Any) -> None:
        with contextlib.suppress(EOFError, ConnectionError):
            handle(self)

    UpdateRequestHandler.handle = quiet  # type: ignore[method-assign]
