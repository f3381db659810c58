"""Script: a processor made of a Python file."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, Final

from storm_on_spark.api.component import BaseBasicBolt
from storm_on_spark.api.streams.declarer import OutputFieldsDeclarer
from storm_on_spark.api.streams.fields import Fields
from storm_on_spark.api.task.collector import BasicOutputCollector
from storm_on_spark.api.task.context import TopologyContext
from storm_on_spark.api.tuple import Tuple
from storm_on_spark.xd.modules.declaration import ModuleDeclaration, Option, OptionError
from storm_on_spark.xd.modules.messages.message import FIELDS
from storm_on_spark.xd.modules.python_files import PythonFileError, checksum, compiled, executed, read_python

_FUNCTION: Final = "process"
_VALUES: Final = (str, int, float, bool, list, dict)


class Script(BaseBasicBolt):
    """Replaces each payload by what `process(payload, headers)` of a script returns; None drops the message.

    The script is read once, when the stream is made, and travels with it. Its own variables are not saved.

    Args:
        location: the file.
        sha256: its expected SHA-256; empty for any.

    Raises:
        OptionError: the file can't be read, is not Python, has another checksum, or has no such function.
    """

    stateless = True

    def __init__(self, location: str, sha256: str) -> None:
        self.location = location
        try:
            self.source = read_python(location)
            names = compiled(self.source, location).co_names
        except PythonFileError as error:
            raise OptionError(str(error), option="location") from error
        if _FUNCTION not in names:
            raise OptionError(f"{location}: expected a function {_FUNCTION}(payload, headers)", option="location")
        self.sha256 = checksum(self.source)
        if sha256 and sha256 != self.sha256:
            message = f"Expected {location} to have the SHA-256 {sha256}, got {self.sha256}"
            raise OptionError(message, option="sha256")

    def prepare(self, conf: Mapping[str, Any], context: TopologyContext) -> None:
        """Executes the script."""
        module = executed(self.source, self.location)
        self._process: Callable[[Any, Any], Any] = getattr(module, _FUNCTION)

    def execute(self, tup: Tuple, collector: BasicOutputCollector) -> None:
        """Calls the function.

        Raises:
            TypeError: it returned something that is not a payload.
        """
        found = self._process(tup["payload"], tup["headers"])
        if found is None:
            return
        if not isinstance(found, _VALUES):
            expected = "a text, a number, a bool, a list, a dict or None"
            raise TypeError(f"{self.location}: expected {expected} of {_FUNCTION}(), got {found!r:.100}")
        collector.emit([found, tup["headers"]])

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        """Declares payload and headers."""
        declarer.declare(Fields(*FIELDS))


def _a_script(text: str) -> None:
    if not text.endswith(".py") or "\0" in text or "://" in text:
        raise ValueError(f"Expected the path of a Python file, got {text!r:.100}")


def _a_checksum(text: str) -> None:
    if text and not re.fullmatch(r"[0-9a-f]{64}", text):
        raise ValueError(f"Expected a SHA-256 in 64 hexadecimal digits, got {text!r:.100}")


PROCESSOR: Final = ModuleDeclaration(
    "processor",
    "script",
    "Replaces the payload with what process(payload, headers) of a Python file returns; None drops the message.",
    Script,
    (
        Option(
            "location",
            "text",
            None,
            "The file; it is read once and travels with the stream.",
            check=_a_script,
            also=("script",),
        ),
        Option("sha256", "text", "", "Its expected SHA-256; empty for any.", check=_a_checksum),
    ),
)
