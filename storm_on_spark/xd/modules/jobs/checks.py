"""Checks of options of steps."""

from __future__ import annotations

import re
from typing import Final

_LONGEST: Final = 4_096
_MASTER: Final = re.compile(r"local(\[[0-9*,]+\])?|local-cluster\[[0-9,]+\]|(spark|k8s|yarn)(://[A-Za-z0-9_.,:/-]+)?")


def a_path(text: str) -> None:
    """Checks the path of a file.

    Raises:
        ValueError: it is empty, too long, or has characters that paths can't have.
    """
    if not text or "\0" in text or len(text) > _LONGEST:
        raise ValueError(f"Expected a path of up to {_LONGEST} characters, got {text!r:.100}")


def a_python_file(text: str) -> None:
    """Checks the path of a Python file.

    Raises:
        ValueError: it is not one.
    """
    a_path(text)
    if not text.endswith(".py") or "://" in text:
        raise ValueError(f"Expected the path of a Python file, got {text!r:.100}")


def a_master(text: str) -> None:
    """Checks a master of Spark; empty stands for that of Spark's configuration.

    Raises:
        ValueError: it is not a master.
    """
    if text and not _MASTER.fullmatch(text):
        raise ValueError(f"Expected a master such as local[*] or spark://host:7077, got {text!r:.100}")


def a_word(text: str) -> None:
    """Checks the name of a function or a class.

    Raises:
        ValueError: it is not one.
    """
    if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]{0,99}", text):
        raise ValueError(f"Expected a name of letters, digits and '_', got {text!r:.100}")
