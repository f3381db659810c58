"""What a leader does when a user pushes credentials to a running topology."""

from __future__ import annotations

from collections.abc import Mapping

from storm_on_spark.api.errors import NotAliveError
from storm_on_spark.cluster.credentials import sealed
from storm_on_spark.cluster.paths import CREDENTIALS, STORMS
from storm_on_spark.cluster.records import ChangeRecord, StormBase
from storm_on_spark.cluster.state import Change, Check, ClusterState, Create, Fence, Put


def store_credentials(
    state: ClusterState, fence: Fence, topology_id: str, credentials: Mapping[str, str], told: ChangeRecord
) -> None:
    """Writes the credentials of a topology, in place of those that it had.

    Args:
        state: ZooKeeper, with the keyring.
        fence: the leadership.
        topology_id: which topology.
        credentials: of `checked_credentials`.
        told: who asked for it.

    Raises:
        NotAliveError: there is no such topology.
        SetupError: the cluster has no secret, or the library for it is missing.
        ConflictError: somebody else wrote them, or ended the topology, at the same moment.
    """
    if state.get(StormBase, STORMS, topology_id) is None:
        raise NotAliveError(f"there is no topology with the id {topology_id[:220]!r}")
    place = (CREDENTIALS, topology_id)
    record = sealed(credentials, topology_id, state.session.paths.of(*place), state.session.keyring)
    found = state.stat(*place)
    write: Change = Create(place, record) if found is None else Put(place, record, found.version)
    state.commit_recorded(told, fence, Check((STORMS, topology_id)), write)
