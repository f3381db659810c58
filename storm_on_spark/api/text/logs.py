"""Logs of components: Storm's worker log shows them from level INFO; Python drops them if there is no handler."""

from __future__ import annotations

import logging
import sys

from storm_on_spark.api.text.printable import printable


class ComponentHandler(logging.Handler):
    """Writes records to standard error that no other handler takes, such as pytest's or one that the user has added."""

    def emit(self, record: logging.LogRecord) -> None:
        """Writes a line; the process prefixes it with component and task."""
        if not self._is_taken(record):
            # Looked up each time, because it may have been replaced.
            sys.stderr.write(f"{printable(self.format(record))}\n")

    def _is_taken(self, record: logging.LogRecord) -> bool:
        logger: logging.Logger | None = logging.getLogger(record.name)
        nearest = True
        while logger is not None:
            for other in logger.handlers:
                if other is self:
                    nearest = False
                elif other.level <= record.levelno and (nearest or not isinstance(other, ComponentHandler)):
                    # Of two of this kind, the one that is nearer to the component's logger writes.
                    return True
            logger = logger.parent if logger.propagate else None
        return False


_HANDLER = ComponentHandler()
_HANDLER.setFormatter(logging.Formatter("%(levelname)s %(message)s"))


def component_logger(name: str, level: int = logging.INFO) -> logging.Logger:
    """Returns a logger whose records are shown.

    Args:
        name: the logger's name.
        level: the lowest level that it accepts.

    Example:
        >>> component_logger("pystorm.component.count").isEnabledFor(logging.INFO)
        True
    """
    logger = logging.getLogger(name)
    logger.setLevel(level)
    if _HANDLER not in logger.handlers:
        logger.addHandler(_HANDLER)
    return logger
