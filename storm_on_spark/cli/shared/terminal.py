"""Standard output for the answer, standard error for everything else."""

from __future__ import annotations

import contextlib
import logging
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TextIO

from rich.console import Console

from storm_on_spark.api.text.printable import printable
from storm_on_spark.cluster.security.logs import SafeFormatter

_PLAIN_WIDTH = 120


def console(stream: TextIO) -> Console:
    """Returns a console on `stream`: as wide as the terminal, or wide enough for a table when piped."""
    return Console(file=stream, width=None if stream.isatty() else width(stream), highlight=False)


def width(stream: TextIO | None = None) -> int:
    """Returns the number of columns: the variable COLUMNS, or the terminal's width, or enough for a table."""
    given = os.environ.get("COLUMNS", "")
    if given.isdecimal() and int(given) > 0:
        return int(given)
    stream = stream or sys.stdout
    try:
        return os.get_terminal_size(stream.fileno()).columns or _PLAIN_WIDTH
    except (OSError, ValueError, AttributeError):
        return _PLAIN_WIDTH


@contextlib.contextmanager
def logs_to(error_console: Console, file: Path | None, *, debug: bool = False) -> Iterator[None]:
    """Shows this package's warnings as plain lines, and writes those of libraries to `file`, safe for a terminal.

    Args:
        error_console: a console on standard error.
        file: the log file; None to drop them.
        debug: whether to show whole tracebacks.
    """
    shown = _ConsoleHandler(error_console, debug)
    ours, root = logging.getLogger("storm_on_spark"), logging.getLogger()
    rest: logging.Handler = (
        logging.NullHandler() if file is None else logging.FileHandler(file, delay=True, encoding="utf-8")
    )
    rest.setLevel(logging.WARNING)
    rest.setFormatter(SafeFormatter("%(asctime)s %(levelname)s %(name)s %(message)s"))
    ours.addHandler(shown)
    root.addHandler(rest)
    try:
        yield
    finally:
        ours.removeHandler(shown)
        root.removeHandler(rest)
        rest.close()


class _ConsoleHandler(logging.Handler):
    """Prints above a live display, which a plain stream handler would tear."""

    def __init__(self, target: Console, debug: bool) -> None:
        super().__init__(logging.WARNING)
        self._console = target
        self._debug = debug

    def emit(self, record: logging.LogRecord) -> None:
        self._console.print(printable(record.getMessage()), markup=False, soft_wrap=True)
        if self._debug and (trace := getattr(record, "whole_trace", "")):
            self._console.print(printable(trace.rstrip()), markup=False, soft_wrap=True)
