"""Drained supervisors: which they are, and what would move."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import urlsplit

import msgspec

from storm_on_spark.api.errors import NotAliveError
from storm_on_spark.cluster.nimbus.scheduling.scheduler import Unknown, finished, schedule
from storm_on_spark.cluster.paths import DRAINS
from storm_on_spark.cluster.state import ClusterSnapshot
from storm_on_spark.launch.settings import CheckpointSettings


@dataclass(frozen=True)
class Move:
    """A topology that leaves a supervisor."""

    topology_id: str
    name: str
    to_supervisor: str = ""
    """Empty where no other slot is free: it stays until one is."""
    to_host: str = ""
    to_port: int = 0
    warning: str = ""
    """What keeps it from starting there."""


class DrainPage(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """What a drain comes to."""

    supervisor_id: str
    host: str
    drained: bool
    moves: tuple[Move, ...]


def drained_of(snapshot: ClusterSnapshot) -> frozenset[str]:
    """Returns the ids of supervisors that get no topologies: drained ones, and those on machines that are not fit.

    One whose record can't be read counts as one.
    """
    return frozenset({*snapshot.drains, *snapshot.unread(DRAINS), *snapshot.unhealthy})


def supervisor_named(snapshot: ClusterSnapshot, name: str) -> str:
    """Returns the id of a supervisor; one that is away is known while it is drained.

    Args:
        snapshot: of the cluster.
        name: its id, or its host where there is but one supervisor.

    Raises:
        NotAliveError: there is none, or there are several.
    """
    if name in snapshot.supervisors or name in snapshot.drains:
        return name
    found = [each.supervisor_id for each in snapshot.supervisors.values() if each.host == name]
    if len(found) == 1:
        return found[0]
    known = ", ".join(f"{each.supervisor_id} on {each.host}" for each in snapshot.supervisors.values()) or "none"
    which = f"{len(found)} supervisors are on host" if found else "there is no supervisor with the id or host"
    raise NotAliveError(f"{which} {name[:200]!r}; there are: {known}")


def drain_page(snapshot: ClusterSnapshot, supervisor_id: str, now: float) -> DrainPage:
    """Returns what a drain of a supervisor would move, or is moving, as things are now.

    Args:
        snapshot: of the cluster.
        supervisor_id: which.
        now: seconds since the epoch.
    """
    drained = {*drained_of(snapshot), supervisor_id}
    assigned = {
        topology_id: assignment
        for topology_id, assignment in snapshot.assignments.items()
        if assignment.supervisor_id == supervisor_id and topology_id in snapshot.storms
    }
    over = finished(snapshot.storms, snapshot.workerbeats)
    decision = schedule(
        snapshot.storms,
        snapshot.assignments,
        snapshot.supervisors,
        snapshot.owners,
        over,
        0,
        now,
        unknown=Unknown.of(snapshot),
        drained=drained,
    )
    new = {assignment.topology_id: assignment for assignment in decision.assign}
    moves = []
    for topology_id, old in sorted(assigned.items()):
        base, to = snapshot.storms[topology_id], new.get(topology_id)
        if to is None:
            moves.append(Move(topology_id, base.name))
            continue
        warning = ""
        if to.host != old.host and not _is_shared(CheckpointSettings.of(base.conf).folder or ""):
            warning = "its state is in a folder: it starts there only if that host has the same folder"
        moves.append(Move(topology_id, base.name, to.supervisor_id, to.host, to.port, warning))
    known = snapshot.supervisors.get(supervisor_id)
    host = "" if known is None else known.host
    return DrainPage(
        supervisor_id=supervisor_id, host=host, drained=supervisor_id in drained_of(snapshot), moves=tuple(moves)
    )


def _is_shared(checkpoint: str) -> bool:
    return urlsplit(checkpoint).scheme not in ("", "file")
