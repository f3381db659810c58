"""What a bolt executes at this moment, found on its stack: the loops need not note it."""

from __future__ import annotations

from types import CodeType, FrameType
from typing import Any


def in_hand(frame: FrameType | None, loops: frozenset[CodeType]) -> tuple[Any, Any] | None:
    """Returns the `BoltTask`, and the tuple or record batch that it executes; None if no bolt executes in this stack.

    Args:
        frame: the innermost.
        loops: what `BoltTask.loops` returns.
    """
    loop = loop_above(frame, loops)
    if loop is None:
        return None
    names = loop.f_locals
    return names["self"], names.get("tup", names.get("batch"))


def loop_above(frame: FrameType | None, loops: frozenset[CodeType]) -> FrameType | None:
    """Returns the frame of the loop in which a bolt executes, or None; arguments as those of `in_hand`."""
    while frame is not None and frame.f_code not in loops:
        frame = frame.f_back
    return frame
