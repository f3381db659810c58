"""Whether a process is stopped: then it doesn't answer, but is not stuck."""

from __future__ import annotations

from pathlib import Path


def is_stopped(pid: int) -> bool:
    """Returns whether a process was stopped, by a signal or a debugger; False if that can't be known."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text("utf-8", "replace")
    except OSError:
        return False
    return stat.rpartition(")")[2].split()[0] in {"T", "t"}
