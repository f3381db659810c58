"""Whether a process is stopped: what doesn't answer then is not stuck."""

from __future__ import annotations

from pathlib import Path


def is_stopped(pid: int) -> bool:
    """Returns whether a process was stopped, by a signal or a debugger; False where nobody can know."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text("utf-8", "replace")
    except OSError:
        return False
    return stat.rpartition(")")[2].split()[0] in {"T", "t"}
