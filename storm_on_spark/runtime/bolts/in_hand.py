"""What a bolt executes at this moment, as its stack tells: the loops need not note it."""

from __future__ import annotations

from types import CodeType, FrameType
from typing import Any


def in_hand(frame: FrameType | None, loops: frozenset[CodeType]) -> tuple[Any, Any] | None:
    """Returns the `BoltTask`, and the tuple or record batch that it executes; None if no bolt executes in this stack.

    Args:
        frame: the innermost.
        loops: what `BoltTask.loops` returns.
    """
    while frame is not None:
        if frame.f_code in loops:
            names = frame.f_locals
            return names["self"], names.get("tup", names.get("batch"))
        frame = frame.f_back
    return None
