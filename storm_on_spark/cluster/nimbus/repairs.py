"""Nodes of ZooKeeper that nothing uses, and ones that are missing. Pure; `Control` reads and deletes.

A leader cleans up after itself, so there is something to find only after a crash amid a change, a hand that wrote to
ZooKeeper, or a release that left something behind.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal

from storm_on_spark.cluster.paths import (
    ASSIGNMENTS,
    CHECKPOINTS,
    CODE,
    CREDENTIALS,
    DRAINS,
    ERRORS,
    LOGCONFIGS,
    NAMES,
    STORMS,
    SUBMISSIONS,
    SUPERVISORS,
    WORKERBEATS,
)
from storm_on_spark.cluster.state import ClusterSnapshot

OF_TOPOLOGIES: Final = (ASSIGNMENTS, CHECKPOINTS, CREDENTIALS, ERRORS, LOGCONFIGS, WORKERBEATS, CODE)
"""Folders with a node for each topology."""
LISTED: Final = (*OF_TOPOLOGIES, NAMES, DRAINS)
"""Folders whose names `problems` needs."""

Kind = Literal["orphan", "lost name", "lost assignment", "lost drain", "no code", "unreadable"]


@dataclass(frozen=True)
class Problem:
    """Something that should not be as it is."""

    kind: Kind
    folder: str
    """In ZooKeeper, below the root."""
    name: str
    """Of the node."""
    text: str
    repair: str = ""
    """What `repair` does; empty where a person has to decide."""


def problems(
    snapshot: ClusterSnapshot, names: Mapping[str, frozenset[str]], owners_of_names: Mapping[str, str]
) -> tuple[Problem, ...]:
    """Returns what is wrong.

    Args:
        snapshot: of the cluster, fresh.
        names: folder of `LISTED` -> the names of its nodes.
        owners_of_names: name of a topology -> the topology's id, of the claims that could be read.

    Example:
        >>> problems(ClusterSnapshot(), {"errors": frozenset({"words-1-1"})}, {})[0].text
        'there is no topology words-1-1'
    """
    found = [
        Problem("unreadable", *_place(path), reason)
        for path, reason in sorted(snapshot.problems.items())
        if path.count("/") >= 2
    ]
    if snapshot.unread(SUBMISSIONS):
        # Whose the rest is can't be told.
        return tuple(found)
    coming = {submission.topology_id for submission in snapshot.submissions.values()}
    known = {*snapshot.storms, *snapshot.unread(STORMS), *coming}
    for folder in OF_TOPOLOGIES:
        for name in sorted(names.get(folder, frozenset()) - known):
            if name not in snapshot.owners:
                found.append(Problem("orphan", folder, name, f"there is no topology {name}", "delete it"))
    for name in sorted(names.get(NAMES, frozenset())):
        topology_id = owners_of_names.get(name)
        if topology_id is not None and topology_id not in known:
            text = f"the name belongs to {topology_id}, which does not exist"
            found.append(Problem("lost name", NAMES, name, text, "free it"))
    supervisors = {*snapshot.supervisors, *snapshot.unread(SUPERVISORS)}
    for topology_id, assignment in sorted(snapshot.assignments.items()):
        if topology_id in snapshot.storms and assignment.topology_id != topology_id:
            text = f"its assignment is another topology's, {assignment.topology_id}"
            found.append(Problem("lost assignment", ASSIGNMENTS, topology_id, text, "delete it: it is placed again"))
    for name in sorted(names.get(DRAINS, frozenset()) - supervisors):
        # It may only be away, so this is for a person to decide.
        found.append(Problem("lost drain", DRAINS, name, "no such supervisor is up; `drain --undo` ends its drain"))
    for topology_id in sorted(snapshot.storms):
        code = snapshot.code.get(topology_id)
        if code is None and topology_id not in snapshot.unread(CODE):
            text = "there is no record of its code, so it can't start again: kill it, and submit it again"
            found.append(Problem("no code", STORMS, topology_id, text))
        elif code is not None and not code.replicas & {*snapshot.nimbuses}:
            text = "no Nimbus that is up has its code: start one that has, or kill it and submit it again"
            found.append(Problem("no code", STORMS, topology_id, text))
    return tuple(found)


def _place(path: str) -> tuple[str, str]:
    folder, _, name = path.rpartition("/")
    return folder.rpartition("/")[2], name
