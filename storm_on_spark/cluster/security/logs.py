"""Logs of daemons and drivers: what looks like a secret is not in them, and no control character."""

from __future__ import annotations

import logging
import sys

from storm_on_spark.api.config.secrets import scrubbed
from storm_on_spark.api.text.printable import printable


class SafeFormatter(logging.Formatter):
    """A formatter that makes secrets unreadable and escapes control characters, in tracebacks too."""

    def format(self, record: logging.LogRecord) -> str:
        """Returns the line, or lines, for a record."""
        return printable(scrubbed(super().format(record)))


def log_safely(layout: str, level: int = logging.INFO) -> None:
    """Logs everything to standard error, without secrets.

    Args:
        layout: of a line, as for `logging.Formatter`.
        level: least level of the root logger.
    """
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(SafeFormatter(layout))
    logging.basicConfig(level=level, handlers=[handler])
