"""The memory and processor time of this process and of those that it started, from `/proc`."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

from storm_on_spark.api.info import WorkerInfo
from storm_on_spark.runtime.processes.sessions import descendants

_PAGE = os.sysconf("SC_PAGE_SIZE")
_TICKS = os.sysconf("SC_CLK_TCK")


def usage() -> WorkerInfo | None:
    """Returns memory and processor time of all living processes; None on a system without `/proc`.

    Memory that processes share counts for each of them.

    Example:
        >>> usage().processes >= 1
        True
    """
    count = memory = ticks = 0
    for pid in {os.getpid(), *descendants(os.getpid())}:
        with contextlib.suppress(OSError, ValueError, IndexError):  # it has just ended
            pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
            count, memory, ticks = count + 1, memory + pages * _PAGE, ticks + int(fields[11]) + int(fields[12])
    return WorkerInfo(count, memory, round(ticks / _TICKS, 2)) if count else None
