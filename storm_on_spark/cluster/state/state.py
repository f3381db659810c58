"""What a Nimbus's tree in ZooKeeper holds beyond single records: owners, heartbeats, checkpoints and errors."""

from __future__ import annotations

import contextlib
import hashlib
from typing import Final
from urllib.parse import quote, unquote

from kazoo.exceptions import NodeExistsError, NoNodeError

from storm_on_spark.cluster.errors import (
    ClusterError,
    ConflictError,
    OwnershipLostError,
    RecordError,
    UnavailableError,
)
from storm_on_spark.cluster.paths import ASSIGNMENTS, CHANGES, CHECKPOINTS, ERRORS, OWNERS, WORKERBEATS
from storm_on_spark.cluster.records import ChangeRecord, CheckpointInfo, ErrorRecord, Ownership, WorkerBeat
from storm_on_spark.cluster.zookeeper.changes import Change, Check, Create, Fence, Put
from storm_on_spark.cluster.zookeeper.tree import Tree
from storm_on_spark.runtime.reports.groups import key_of

ERRORS_KEPT: Final = 20
"""Different ones of each component; older ones go."""
CHANGES_KEPT: Final = 300
"""Of all topologies; older ones go."""
_SEQUENCE_DIGITS: Final = 10
"""At the end of a name that ZooKeeper has numbered."""


class ClusterState(Tree):
    """The tree of a cluster of Nimbuses; see `Tree` for the rest."""

    def take_ownership(self, ownership: Ownership, assignment_version: int) -> None:
        """Makes the driver in `ownership` the only one of its topology, if its assignment is still the same.

        It may be asked for again by the same session, after an `UnavailableError` say.

        Raises:
            OwnershipLostError: the assignment has changed, or another driver owns the topology.
        """
        topology_id = ownership.topology_id
        path = self._path(OWNERS, topology_id)
        failed = self.change(
            Check((ASSIGNMENTS, topology_id), assignment_version), Create(path, ownership, ephemeral=True)
        )
        if failed is None:
            return
        index, error = failed
        who = f"driver {ownership.pid} on {ownership.host}:{ownership.port}"
        if index == 0:
            raise OwnershipLostError(f"{who}: {topology_id} isn't assigned to it any more ({type(error).__name__})")
        if not isinstance(error, NodeExistsError):
            raise ClusterError(f"{who}: can't own {topology_id}: {error!r}")
        try:
            found, stat = self._read(lambda: self._client.get_async(path))
        except NoNodeError:
            raise UnavailableError(f"{who}: {topology_id} has just lost its owner; try again") from None
        if stat.ephemeralOwner == self.session.session_id and found == self._bytes(ownership, path):
            return
        try:
            owner = self.session.keyring.decode(Ownership, found, path)
        except RecordError as error:
            raise UnavailableError(f"{who}: {topology_id} already has an owner: {error}; try again") from error
        raise OwnershipLostError(f"{who}: driver {owner.pid} on {owner.host}:{owner.port} owns {topology_id}", owner)

    def put_beat(self, beat: WorkerBeat) -> None:
        """Writes a driver's heartbeat."""
        self.put(beat, WORKERBEATS, beat.topology_id)

    def put_checkpoint(self, info: CheckpointInfo, assignment_version: int) -> bool:
        """Writes which state a topology has, if the writer's assignment is as it was and the topology has an owner.

        Returns:
            Whether that is what stands there now; not if it is to start from scratch in a later launch.

        Raises:
            OwnershipLostError: it is for another driver to say.
            UnavailableError: no driver owns the topology at the moment, or others write; try again.
        """
        topology_id = info.topology_id
        folder = (CHECKPOINTS, topology_id)
        try:
            there = self.get(CheckpointInfo, *folder)
        except RecordError:
            return False
        if there is not None and (there[0] == info or there[0].from_scratch > info.launch):
            return there[0] == info
        failed = self.change(
            Check((ASSIGNMENTS, topology_id), assignment_version),
            Check((OWNERS, topology_id)),
            Create(folder, info) if there is None else Put(folder, info, there[1]),
        )
        if failed is None:
            return True
        if failed[0] == 0:
            raise OwnershipLostError(f"this driver no longer owns the state of {topology_id}")
        raise UnavailableError(f"{self._path(*folder)} can't be written now: {type(failed[1]).__name__}")

    def add_error(self, topology_id: str, error: ErrorRecord) -> None:
        """Adds an error to those of its component: to the equal ones if there are any, also of earlier drivers.

        The last few different ones are kept. Only the topology's driver and supervisor write them: if both add an equal
        error at once, one may not be counted.
        """
        folder = (ERRORS, topology_id, quote(error.component, safe=""))
        path = self._path(*folder)
        key = key_of(error.component, error.task, error.message, error.trace)
        prefix = f"e-{hashlib.sha256(repr(key).encode()).hexdigest()[:16]}-"
        names = sorted(self.children(*folder), key=lambda name: name[-_SEQUENCE_DIGITS:])
        same = next((name for name in names if name.startswith(prefix)), None)
        with contextlib.suppress(RecordError):  # it is damaged, and replaced
            known = None if same is None else self.get(ErrorRecord, *folder, same)
            error = error if known is None else error.after(known[0])
        if same is not None:
            # Or it is gone with its topology, which is being removed.
            self.put(error, *folder, same)
            return
        data = self._bytes(error, path)
        self._write(lambda: self._client.ensure_path_async(path))
        self._write(lambda: self._client.create_async(f"{path}/{prefix}", data, acl=self.session.acl, sequence=True))
        for name in names[: max(0, len(names) + 1 - ERRORS_KEPT)]:
            self.delete(*folder, name)

    def add_change(self, change: ChangeRecord) -> None:
        """Records a change of a topology; the last few hundred changes of all topologies are kept."""
        self.add(change, self._path(CHANGES), _change_name)
        self._forget_old_changes()

    def commit_recorded(self, record: ChangeRecord, fence: Fence, *changes: Change) -> tuple[int, ...]:
        """Makes changes and records who asked for them, all or none: see `commit` and `add_change`.

        A leader that dies leaves neither a change that isn't recorded nor a record of what didn't happen.
        """
        while True:
            place = (CHANGES, _change_name(self.made_in(self._path(CHANGES))[0]))
            try:
                versions = self.commit(fence, *changes, Create(place, record))
            except ConflictError:
                if self.stat(*place) is None:
                    raise
                continue  # another change was recorded at the same moment
            with contextlib.suppress(ClusterError):  # the next change forgets them
                self._forget_old_changes()
            return versions[:-1]

    def _forget_old_changes(self) -> None:
        for name in sorted(self.children(CHANGES))[:-CHANGES_KEPT]:
            self.delete(CHANGES, name)

    def changes(self) -> list[ChangeRecord]:
        """Returns the last changes, newest first."""
        found = self.read_all(ChangeRecord, CHANGES)
        return [found[name] for name in sorted(found, reverse=True)]

    def errors(self, topology_id: str) -> dict[str, list[ErrorRecord]]:
        """Returns the last errors of each component, in the order of their last time; damaged ones are left out."""
        found: dict[str, list[ErrorRecord]] = {}
        for component in self.children(ERRORS, topology_id):
            records = self.read_all(ErrorRecord, ERRORS, topology_id, component)
            order = sorted(records, key=lambda name: (records[name].time, name[-_SEQUENCE_DIGITS:]))
            found[unquote(component)] = [records[name] for name in order]
        return found


def _change_name(number: int) -> str:
    return f"c-{number:010}"
