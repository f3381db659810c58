"""Whose code a Nimbus must have before it may lead."""

from __future__ import annotations

from dataclasses import dataclass

from storm_on_spark.cluster.paths import CODE, STORMS
from storm_on_spark.cluster.state.snapshot import ClusterSnapshot


@dataclass(frozen=True)
class CodeGate:
    """Ids of topologies, each sorted."""

    wanted: tuple[str, ...]
    """Their code has to be here."""
    foreign: tuple[str, ...]
    """Only another release can read what their code is: this one can't know whether it has it, and must not lead."""
    lost: tuple[str, ...]
    """No release can read what their code is. Waiting for it would keep every Nimbus from leading."""


def code_gate(snapshot: ClusterSnapshot) -> CodeGate:
    """Returns whose code is needed.

    Every topology counts that isn't being killed, and one whose record can't be read may not be.
    """
    active = {topology_id for topology_id, base in snapshot.storms.items() if base.status != "KILLED"}
    active |= snapshot.unread(STORMS).keys()
    foreign = {name for name, problem in snapshot.unread(CODE).items() if problem.foreign} & active
    wanted = active & snapshot.code.keys()
    return CodeGate(*(tuple(sorted(names)) for names in (wanted, foreign, active - wanted - foreign)))
