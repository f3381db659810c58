"""Script: a processor made of a Python file."""

from __future__ import annotations

import hashlib
import importlib.abc
import importlib.util
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any, Final

from storm_on_spark.api.collector import BasicOutputCollector
from storm_on_spark.api.component import BaseBasicBolt
from storm_on_spark.api.context import TopologyContext
from storm_on_spark.api.streams.declarer import OutputFieldsDeclarer
from storm_on_spark.api.streams.fields import Fields
from storm_on_spark.api.tuple import Tuple
from storm_on_spark.xd.modules.declaration import ModuleDeclaration, Option, OptionError
from storm_on_spark.xd.modules.messages import FIELDS

MAXIMUM_BYTES: Final = 1_000_000
"""Of a script."""
_FUNCTION: Final = "process"
_VALUES: Final = (str, int, float, bool, list, dict)


class Script(BaseBasicBolt):
    """Replaces each payload by what `process(payload, headers)` of a script returns; None drops the message.

    The script is read once, when the stream is made, and goes along with it. What it keeps in its own variables is not
    saved.

    Args:
        location: the file.
        sha256: what its SHA-256 must be; empty for any.

    Raises:
        OptionError: it can't be read, is no Python, or has another checksum or no such function.
    """

    stateless = True

    def __init__(self, location: str, sha256: str) -> None:
        self.location = location
        source = _read(location)
        self.sha256 = hashlib.sha256(source).hexdigest()
        if sha256 and sha256 != self.sha256:
            message = f"Expected {location} to have the SHA-256 {sha256}, got {self.sha256}"
            raise OptionError(message, option="sha256")
        self.source = source
        _check(source, location)

    def prepare(self, conf: Mapping[str, Any], context: TopologyContext) -> None:
        """Executes the script."""
        name = f"script_{self.sha256[:16]}"
        loader = _Loader(self.source, self.location)
        spec = importlib.util.spec_from_loader(name, loader)
        assert spec is not None
        module = importlib.util.module_from_spec(spec)
        loader.exec_module(module)
        self._process: Callable[[Any, Any], Any] = getattr(module, _FUNCTION)

    def execute(self, tup: Tuple, collector: BasicOutputCollector) -> None:
        """Calls the function.

        Raises:
            TypeError: it returned something that is no payload.
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


class _Loader(importlib.abc.InspectLoader):
    """Loads a module from bytes that were read already."""

    def __init__(self, source: bytes, location: str) -> None:
        self._source = source
        self._location = location

    def get_source(self, fullname: str) -> str:
        """Returns the text."""
        return importlib.util.decode_source(self._source)

    def get_code(self, fullname: str) -> CodeType:
        """Returns the code; its traces name the file."""
        return self.source_to_code(self._source, self._location)

    def create_module(self, spec: Any) -> ModuleType | None:
        """Leaves it to Python."""
        return None


def _read(location: str) -> bytes:
    try:
        with Path(location).open("rb") as file:
            source = file.read(MAXIMUM_BYTES + 1)
    except OSError as error:
        raise OptionError(f"{location} can't be read: {error.strerror}", option="location") from error
    if len(source) > MAXIMUM_BYTES:
        raise OptionError(f"{location}: expected at most {MAXIMUM_BYTES} bytes, got more", option="location")
    return source


def _check(source: bytes, location: str) -> None:
    """Compiles a script, without executing it.

    Raises:
        OptionError: it is no Python, or has no function `process`.
    """
    try:
        code = _Loader(source, location).get_code("script")
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        line = f", line {error.lineno}" if isinstance(error, SyntaxError) and error.lineno else ""
        what = error.msg if isinstance(error, SyntaxError) else error
        raise OptionError(f"{location}{line}: expected Python: {what}", option="location") from error
    if _FUNCTION not in code.co_names:
        raise OptionError(f"{location}: expected a function {_FUNCTION}(payload, headers)", option="location")


def _a_script(text: str) -> None:
    if not text.endswith(".py") or "\0" in text or "://" in text:
        raise ValueError(f"Expected the path of a Python file, got {text!r:.100}")


def _a_checksum(text: str) -> None:
    if text and not re.fullmatch(r"[0-9a-f]{64}", text):
        raise ValueError(f"Expected a SHA-256 in 64 hexadecimal digits, got {text!r:.100}")


PROCESSOR: Final = ModuleDeclaration(
    "processor",
    "script",
    "Replaces the payload by what process(payload, headers) of a Python file returns; None drops the message.",
    Script,
    (
        Option("location", "text", None, "The file; it is read once and goes along with the stream.", check=_a_script),
        Option("sha256", "text", "", "What its SHA-256 must be; empty for any.", check=_a_checksum),
    ),
)
