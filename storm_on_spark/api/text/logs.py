"""Logs of components: Storm shows them from level INFO in a worker's log, and Python without a handler drops them."""

from __future__ import annotations

import logging
import sys

from storm_on_spark.api.text.printable import printable


class ComponentHandler(logging.Handler):
    """Writes to standard error what no other handler takes, such as pytest's or one that the user has added."""

    def emit(self, record: logging.LogRecord) -> None:
        """Writes a line; the process puts component and task before it."""
        if not self._is_taken(record):
            # Looked up each time: it may have been replaced since.
            sys.stderr.write(f"{printable(self.format(record))}\n")

    def _is_taken(self, record: logging.LogRecord) -> bool:
        logger: logging.Logger | None = logging.getLogger(record.name)
        while logger is not None:
            if any(other is not self and other.level <= record.levelno for other in logger.handlers):
                return True
            logger = logger.parent if logger.propagate else None
        return False


_HANDLER = ComponentHandler()
_HANDLER.setFormatter(logging.Formatter("%(levelname)s %(message)s"))


def component_logger(name: str, level: int = logging.INFO) -> logging.Logger:
    """Returns a logger whose records are seen.

    Args:
        name: of the logger.
        level: the least level that it takes.

    Example:
        >>> component_logger("pystorm.component.count").isEnabledFor(logging.INFO)
        True
    """
    logger = logging.getLogger(name)
    logger.setLevel(level)
    if _HANDLER not in logger.handlers:
        logger.addHandler(_HANDLER)
    return logger
