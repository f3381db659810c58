"""Sinks: bolts that end a stream."""

from __future__ import annotations

import sys
import time
from typing import Final

from storm_on_spark.api.component import BaseBasicBolt
from storm_on_spark.api.task.collector import BasicOutputCollector
from storm_on_spark.api.text.printable import one_line
from storm_on_spark.api.tuple import Tuple
from storm_on_spark.runtime.processes.diagnostics.prints import is_timed, stamp
from storm_on_spark.xd.expressions import Expression
from storm_on_spark.xd.expressions.evaluating import as_text
from storm_on_spark.xd.modules.declaration import STREAM_NAME, ModuleDeclaration, Option

_LEVELS: Final = ("FATAL", "ERROR", "WARN", "INFO", "DEBUG", "TRACE")


class Log(BaseBasicBolt):
    """Writes a line with its time for each message to standard error; breaks and control characters are escaped."""

    stateless = True

    def __init__(self, name: str, expression: Expression, level: str) -> None:
        self.name = name
        self.expression = expression
        self.level = level

    def execute(self, tup: Tuple, collector: BasicOutputCollector) -> None:
        """Writes a message."""
        text = as_text(self.expression.value(tup["payload"], tup["headers"]))
        safe = one_line(text.replace("\\", "\\\\"))
        # The log of a topology adds the time to every line.
        moment = "" if is_timed() else stamp(time.time())
        # Flushed at once: a Python worker may end without a flush.
        sys.stderr.write(f"{moment}{self.level} sink.{one_line(self.name)} - {safe}\n")
        sys.stderr.flush()


class Null(BaseBasicBolt):
    """Drops every message."""

    stateless = True

    def execute(self, tup: Tuple, collector: BasicOutputCollector) -> None:
        """Does nothing."""


SINKS: Final = (
    ModuleDeclaration(
        "sink",
        "log",
        "Writes a line with the time for each message to standard error.",
        Log,
        (
            Option("name", "text", STREAM_NAME, "The name in each line; by default the stream's name."),
            Option("expression", "expression", "payload", "What is written."),
            Option("level", "text", "INFO", "The level in each line.", choices=_LEVELS),
        ),
    ),
    ModuleDeclaration("sink", "null", "Drops every message.", Null),
)
