"""Logs of removed topologies: their list, and which have been kept long enough."""

from __future__ import annotations

import logging
import shutil
from collections.abc import Collection, Iterable
from pathlib import Path
from stat import S_ISREG
from typing import Final

import msgspec

log = logging.getLogger(__name__)

MOST_LISTED: Final = 200
_LOG: Final = "worker.log"


class KeptLog(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A log on this host."""

    topology_id: str
    port: int
    """The port of the slot."""
    size: int
    modified: float
    """When something was added last; seconds since the epoch."""

    @property
    def file(self) -> str:
        """What `/api/v1/log?file=` takes."""
        return f"{self.topology_id}/{self.port}/{_LOG}"


def logs_in(folder: Path) -> list[KeptLog]:
    """Returns the logs of all topologies, the newest first.

    Args:
        folder: with the logs: `ID/PORT/worker.log`.
    """
    found = []
    for path in folder.glob(f"*-*-*/[0-9]*/{_LOG}"):
        try:
            stat = path.lstat()
        except OSError:
            continue  # it was just removed
        if S_ISREG(stat.st_mode) and path.parent.name.isdecimal():
            found.append(
                KeptLog(
                    topology_id=path.parent.parent.name,
                    port=int(path.parent.name),
                    size=stat.st_size,
                    modified=stat.st_mtime,
                )
            )
    return sorted(found, key=lambda each: (-each.modified, each.topology_id, each.port))


def logs_of(found: Iterable[KeptLog], topology: str) -> list[KeptLog]:
    """Returns the logs of one topology, given its id, or of all that had its name; all for an empty text.

    Example:
        >>> kept = [KeptLog(topology_id=f"words-{n}-170000000{n}", port=1, size=1, modified=0.0) for n in (2, 1)]
        >>> [each.topology_id for each in logs_of(kept, "words")]
        ['words-2-1700000002', 'words-1-1700000001']
        >>> logs_of(kept, "words-1-1700000001") == kept[1:], logs_of(kept, "word")
        (True, [])
    """
    return [each for each in found if topology in ("", each.topology_id, each.topology_id.rsplit("-", 2)[0])][
        :MOST_LISTED
    ]


def expired(found: Iterable[KeptLog], alive: Collection[str], now: float, age: float) -> list[str]:
    """Returns the ids of the topologies whose logs have been kept long enough.

    Args:
        found: all logs.
        alive: ids of the topologies that there are: theirs stay, however old they are.
        now: seconds since the epoch.
        age: for how many seconds logs of the others are kept since their last line.

    Example:
        >>> kept = [KeptLog(topology_id=f"t-{n}-1", port=n, size=1, modified=100.0 * n) for n in (3, 2, 1)]
        >>> kept.append(KeptLog(topology_id="t-1-1", port=7, size=1, modified=390.0))
        >>> expired(kept, {"t-3-1"}, 400.0, 150.0)
        ['t-2-1']
    """
    newest: dict[str, float] = {}
    for each in found:
        newest[each.topology_id] = max(each.modified, newest.get(each.topology_id, each.modified))
    return sorted(name for name, modified in newest.items() if name not in alive and now - modified > age)


def sweep(folder: Path, alive: Collection[str], now: float, age: float) -> None:
    """Removes the logs that `expired` names."""
    for topology_id in expired(logs_in(folder), alive, now, age):
        log.info("removing the logs of %s: the topology no longer exists", topology_id)
        shutil.rmtree(folder / topology_id, ignore_errors=True)
