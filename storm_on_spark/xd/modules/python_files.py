"""Python files of users: read with limits, checksummed, and executed as modules that nobody can import."""

from __future__ import annotations

import hashlib
import importlib.abc
import importlib.util
import sys
import threading
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any, Final

MAXIMUM_BYTES: Final = 1_000_000
"""Most bytes of a file."""


_executing: Final = threading.RLock()


class PythonFileError(ValueError):
    """A file that can't be read, is too large, or is not Python."""


def read_python(location: str) -> bytes:
    """Returns a file's bytes.

    Raises:
        PythonFileError: it can't be read, or is too large.
    """
    try:
        with Path(location).open("rb") as file:
            source = file.read(MAXIMUM_BYTES + 1)
    except OSError as error:
        raise PythonFileError(f"{location:.300} can't be read: {error.strerror}") from error
    if len(source) > MAXIMUM_BYTES:
        raise PythonFileError(f"{location}: expected at most {MAXIMUM_BYTES} bytes, got more")
    return source


def checksum(source: bytes) -> str:
    """Returns the SHA-256, in hexadecimal digits."""
    return hashlib.sha256(source).hexdigest()


def compiled(source: bytes, location: str) -> CodeType:
    """Returns the code of a file, without executing it.

    Raises:
        PythonFileError: it is not Python.
    """
    try:
        return _Loader(source, location).get_code("")
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        line = f", line {error.lineno}" if isinstance(error, SyntaxError) and error.lineno else ""
        what = error.msg if isinstance(error, SyntaxError) else error
        raise PythonFileError(f"{location}{line}: expected Python: {what}") from error


def executed(source: bytes, location: str) -> ModuleType:
    """Executes a file; its traces name the location.

    The module is in `sys.modules` only meanwhile. So its classes are pickled by value, and travel with a topology.

    Raises:
        Exception: whatever the file raises.
    """
    name = f"module_{checksum(source)[:16]}"
    loader = _Loader(source, location)
    spec = importlib.util.spec_from_loader(name, loader)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    # Several threads of a container may load modules from the same file.
    with _executing:
        sys.modules[name] = module
        try:
            loader.exec_module(module)
        finally:
            del sys.modules[name]
    return module


class _Loader(importlib.abc.InspectLoader):
    def __init__(self, source: bytes, location: str) -> None:
        self._source = source
        self._location = location

    def get_source(self, fullname: str) -> str:
        """Returns the text."""
        return importlib.util.decode_source(self._source)

    def get_code(self, fullname: str) -> CodeType:
        """Returns the code."""
        return self.source_to_code(self._source, self._location)

    def create_module(self, spec: Any) -> ModuleType | None:
        """Uses Python's default."""
        return None
