"""Folders that sinks write to."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any, Final

from storm_on_spark.api.errors import ConfigError

_SCHEME: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:/")


def checked_folder(folder: str | os.PathLike[str]) -> str:
    """Returns a folder as an absolute path.

    Raises:
        ConfigError: it is not a path.
    """
    text: Any = os.fspath(folder)
    if not isinstance(text, str) or not text or "\0" in text or _SCHEME.match(text):
        raise ConfigError(
            f"a folder is a path on this machine or a shared one, not a URL (given {text!r:.200})", key="folder"
        )
    # Workers have another working directory than the program that makes the bolt.
    return str(Path(text).absolute())
