"""Standard output for the answer alone, also under `spark-submit`."""

from __future__ import annotations

import contextlib
import os
import sys
import threading
from collections.abc import Iterator
from typing import TextIO

_GATEWAY = "PYSPARK_GATEWAY_PORT"
"""In the environment of a program that `spark-submit` started."""
_END_SECS = 10.0


@contextlib.contextmanager
def answer_only(json: bool) -> Iterator[TextIO]:
    """Keeps standard output for the answer: the answer is written to the stream that this yields.

    What child processes print, such as spout hosts, goes to standard error. If the answer is a JSON document, what user
    code prints in this process goes there too.

    `spark-submit` sends the standard error of its program to its own standard output. Under it a JSON document is still
    alone on standard output: everything else goes to the standard error of Spark's JVM.
    """
    standard = sys.stdout
    if not _is_descriptor_1(standard):  # a test's or a notebook's
        with contextlib.redirect_stdout(sys.stderr if json else standard):
            yield standard
        return
    standard.flush()
    saved = os.dup(1)
    try:
        with _standard_error_elsewhere(json and _GATEWAY in os.environ):
            os.dup2(2, 1)
            with os.fdopen(os.dup(saved), "w", encoding=standard.encoding, errors="replace") as answer:
                sys.stdout = sys.stderr if json else answer
                try:
                    yield answer
                finally:
                    sys.stdout = standard
                    # Not the pipe, which is to end here.
                    os.dup2(saved, 1)
    finally:
        os.close(saved)


@contextlib.contextmanager
def _standard_error_elsewhere(wanted: bool) -> Iterator[None]:
    """Sends what this process and its children print to standard error through the JVM."""
    if not wanted:
        yield
        return
    # Before a second thread starts: if two threads import PySpark at once, one finds it half imported and fails.
    import pyspark.sql  # noqa: F401

    reader, writer = os.pipe()
    sys.stderr.flush()
    saved = os.dup(2)
    os.dup2(writer, 2)
    os.close(writer)
    pump = threading.Thread(target=_pump, args=(reader,), name="stderr-to-jvm", daemon=True)
    pump.start()
    try:
        yield
    finally:
        sys.stderr.flush()
        os.dup2(saved, 2)
        os.close(saved)
        # A child that outlives this process may hold the other end.
        pump.join(_END_SECS)


def _pump(reader: int) -> None:
    with os.fdopen(reader, encoding="utf-8", errors="replace") as lines:
        for line in lines:
            with contextlib.suppress(Exception):  # the JVM is gone: there is nobody to tell
                _print_in_jvm(line.rstrip("\n"))


def _print_in_jvm(line: str) -> None:
    from pyspark import SparkContext

    SparkContext._ensure_initialized()  # noqa: SLF001 # connects to the JVM that started this process
    jvm = SparkContext._jvm  # noqa: SLF001
    if jvm is not None:
        jvm.java.lang.System.err.println(line)


def _is_descriptor_1(stream: TextIO) -> bool:
    try:
        return stream.fileno() == 1
    except (OSError, ValueError, AttributeError):
        return False
