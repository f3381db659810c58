"""Standard output for the answer, standard error for all else."""

from __future__ import annotations

import contextlib
import logging
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TextIO

from rich.console import Console

_PLAIN_WIDTH = 120


def console(stream: TextIO) -> Console:
    """Returns a console on `stream`: as wide as the terminal, or wide enough for a table when piped."""
    return Console(file=stream, width=None if stream.isatty() else _PLAIN_WIDTH, highlight=False)


@contextlib.contextmanager
def answer_only(json: bool) -> Iterator[TextIO]:
    """Keeps standard output for the answer, which goes to the stream that this yields.

    What child processes print, spout hosts above all, goes to standard error. So does what user code prints
    in this process when the answer is a JSON document.
    """
    standard = sys.stdout
    if not _is_descriptor_1(standard):  # a test's or a notebook's
        with contextlib.redirect_stdout(sys.stderr if json else standard):
            yield standard
        return
    standard.flush()
    saved = os.dup(1)
    os.dup2(2, 1)
    try:
        with os.fdopen(os.dup(saved), "w", encoding=standard.encoding, errors="replace") as answer:
            sys.stdout = sys.stderr if json else answer
            yield answer
    finally:
        sys.stdout = standard
        os.dup2(saved, 1)
        os.close(saved)


@contextlib.contextmanager
def logs_to(error_console: Console, file: Path | None) -> Iterator[None]:
    """Shows our own warnings as plain lines, and puts those of the libraries into `file`."""
    shown = _ConsoleHandler(error_console)
    ours, root = logging.getLogger("storm_on_spark"), logging.getLogger()
    rest: logging.Handler = (
        logging.NullHandler() if file is None else logging.FileHandler(file, delay=True, encoding="utf-8")
    )
    rest.setLevel(logging.WARNING)
    rest.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s %(message)s"))
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

    def __init__(self, target: Console) -> None:
        super().__init__(logging.WARNING)
        self._console = target

    def emit(self, record: logging.LogRecord) -> None:
        self._console.print(record.getMessage(), markup=False, soft_wrap=True)


def _is_descriptor_1(stream: TextIO) -> bool:
    try:
        return stream.fileno() == 1
    except (OSError, ValueError, AttributeError):
        return False
