"""Where everything is in ZooKeeper.

Below `storm.zookeeper.root` (`/storm`); `*` marks ephemeral nodes. Values are the records of `records`.

    leader-lock/n-<sequence>*         address         the queue for leadership; the lowest number has the lock
    leader-info                       LeaderInfo      who leads; its version fences every write of a leader
    nimbuses/<host:port>*             NimbusSummary
    supervisors/<supervisor id>*      SupervisorInfo
    counter                           digits          how many topologies were ever submitted
    submissions/<key>                 Submission      submissions under way
    names/<topology name>             NameClaim       whose name it is, from submission to removal
    storms/<topology id>              StormBase
    assignments/<topology id>         Assignment
    code/<topology id>                CodeManifest
    code/<topology id>/<host:port>*   empty           this Nimbus has the code
    owners/<topology id>*             Ownership       held by the driver; its creation is fenced by the assignment
    workerbeats/<topology id>         WorkerBeat
    checkpoints/<topology id>         CheckpointInfo  which state the topology has; fenced as its driver, or leader, is
    errors/<topology id>/<component>/e-<key>-<sequence>   ErrorRecord, the last few
    changes/c-<number>                ChangeRecord    who changed which topology, the last few hundred
    logconfigs/<topology id>          LogConfig       levels of its loggers that were changed
    drains/<supervisor id>            Drain           a supervisor that gets no drivers
    unhealthy/<supervisor id>*        Unhealthy       a supervisor on a machine that is not fit
    credentials/<topology id>         StoredCredentials   encrypted with the cluster's secret
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

LEADER_LOCK = "leader-lock"
LEADER_INFO = "leader-info"
NIMBUSES = "nimbuses"
SUPERVISORS = "supervisors"
COUNTER = "counter"
SUBMISSIONS = "submissions"
NAMES = "names"
STORMS = "storms"
ASSIGNMENTS = "assignments"
CODE = "code"
OWNERS = "owners"
WORKERBEATS = "workerbeats"
CHECKPOINTS = "checkpoints"
ERRORS = "errors"
CREDENTIALS = "credentials"
CHANGES = "changes"
LOGCONFIGS = "logconfigs"
DRAINS = "drains"
UNHEALTHY = "unhealthy"


@dataclass(frozen=True)
class Layout:
    """The nodes of a tree that always exist, and those by which its leader is elected."""

    nodes: Mapping[str, bytes]
    """Path below the root -> first value, parents first; the first daemon makes them."""
    lock: str
    """The folder of the queue for leadership."""
    info: str
    """The node that says who leads; its version fences every write of a leader."""


_FOLDERS = (
    LEADER_LOCK,
    NIMBUSES,
    SUPERVISORS,
    SUBMISSIONS,
    NAMES,
    STORMS,
    ASSIGNMENTS,
    CODE,
    OWNERS,
    WORKERBEATS,
    CHECKPOINTS,
    ERRORS,
    CREDENTIALS,
    CHANGES,
    LOGCONFIGS,
    DRAINS,
    UNHEALTHY,
)

STORM = Layout({**dict.fromkeys(_FOLDERS, b""), LEADER_INFO: b"", COUNTER: b"0"}, LEADER_LOCK, LEADER_INFO)


@dataclass(frozen=True)
class Paths:
    """Absolute paths below a root.

    Example:
        >>> Paths("/storm").of(STORMS, "word-count-1-1700000000"), Paths("/storm").of("/storm")
        ('/storm/storms/word-count-1-1700000000', '/storm')
    """

    root: str
    layout: Layout = STORM

    def of(self, *parts: str) -> str:
        """Returns the path of a node; every part is one name. The root, or a path below it, stays as it is.

        Raises:
            ValueError: a part is not the name of a znode.
        """
        if len(parts) == 1 and (parts[0] == self.root or parts[0].startswith(f"{self.root}/")):
            return parts[0]
        for part in parts:
            if not part or "/" in part or part in (".", "..") or "\0" in part:
                raise ValueError(f"{part!r} can't be the name of a znode")
        return "/".join([self.root.rstrip("/"), *parts])
