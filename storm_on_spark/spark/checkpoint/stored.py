"""A checkpoint in a store: no directory, no lock."""

from __future__ import annotations

import logging
import os
import uuid
from typing import TYPE_CHECKING, TypeAlias

from storm_on_spark.api.errors import CheckpointError
from storm_on_spark.runtime.processes.sessions import started_at, this_kernel
from storm_on_spark.runtime.storage import StoragePlace, within
from storm_on_spark.runtime.storage.claims import OWNERS
from storm_on_spark.spark.checkpoint.directory import Checkpoint, empty_store, is_part
from storm_on_spark.spark.checkpoint.location import Location, location_of, place_of
from storm_on_spark.spark.checkpoint.owner import Fence, Owner, OwnerFence
from storm_on_spark.spark.checkpoint.store_fence import StoreFence

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

log = logging.getLogger(__name__)


class StoredCheckpoint(Checkpoint):
    """An open checkpoint in a store.

    Args:
        location: where it is.
        place: how it is reached.
        fence: its owner, where that was decided before; with None the opener becomes the owner.

    Raises:
        CheckpointError: it can't be used, or another topology runs on it.
    """

    def __init__(self, location: Location, place: StoragePlace, fence: StoreFence | None = None) -> None:
        self._open(location, place)
        self._own = self._claimed() if fence is None else None
        self.fence = fence or self._own

    def _claimed(self) -> StoreFence:
        token, pid = uuid.uuid4().hex, os.getpid()
        # A separate scope: nothing has ordered this start before another.
        owner = Owner(f"start {token[:12]}", 0, token, this_kernel(), pid, started_at(pid) or "")
        try:
            fence = StoreFence(within(self.place.open(), OWNERS), str(self.location), owner)
        except OSError as error:
            raise CheckpointError(f"checkpoint {self.location} can't be reached: {error}") from error
        fence.watch()
        return fence

    def remove_half_written(self) -> None:
        """Removes unfinished objects of killed processes, if the store keeps them."""
        try:
            self.root.remove_half_written()
        except OSError as error:
            log.warning("half-written files stay in checkpoint %s: %s", self.location, error)

    def close(self) -> None:
        """Releases the checkpoint."""
        if self._own is not None:
            self._own.release()


def open_checkpoint(location: Location | None, spark: SparkSession | None, fence: Fence | None) -> Checkpoint:
    """Opens a checkpoint.

    Args:
        location: where it is; a temporary directory for None.
        spark: a session, which knows how a store is reached; not needed for a directory.
        fence: its owner, where that was decided before.

    Raises:
        CheckpointError: it can't be used, or another topology runs on it.
    """
    if location is None or location.path is not None:
        return Checkpoint(None if location is None else location.path)
    return StoredCheckpoint(location, place_of(location, spark), fence if isinstance(fence, StoreFence) else None)


CheckpointFence: TypeAlias = OwnerFence | StoreFence


def is_in_a_store(checkpoint: str | os.PathLike[str]) -> bool:
    """Returns whether a checkpoint is in a store, and not in a directory."""
    return location_of(checkpoint).path is None


def take_over(checkpoint: str | os.PathLike[str], owner: Owner, spark: SparkSession | None) -> CheckpointFence:
    """Makes `owner`, which a leader has assigned, the owner of a checkpoint.

    Args:
        checkpoint: a directory or a store.
        owner: the new owner.
        spark: a session, which knows how a store is reached; not needed for a directory.

    Raises:
        CheckpointError: the checkpoint can't be written, or has a newer owner.
    """
    location = location_of(checkpoint)
    if location.path is not None:
        return OwnerFence(checkpoint, owner)
    claims = within(within(place_of(location, spark).open(), "storm"), OWNERS)
    fence = StoreFence(claims, str(location), owner)
    fence.watch()
    return fence


def reset_stored(checkpoint: str | os.PathLike[str], spark: SparkSession) -> None:
    """Removes a topology's checkpoint from a store, so that it starts afresh. The numbers of its owners continue.

    Raises:
        CheckpointError: it is in use, or the folder is something else.
    """
    location = location_of(checkpoint)
    place = place_of(location, spark)
    try:
        names = [found.name for found in place.open().list_folder(deep=True)]
        strange = [name for name in names if not is_part(name)]
        if strange:
            raise CheckpointError(
                f"--reset-checkpoint leaves {location} as it is: {strange[0]!r} in it is not part of a checkpoint; "
                "name another folder, or remove it with the store's own tool"
            )
        if names and not any(name.startswith("storm/") for name in names):
            raise CheckpointError(
                f"--reset-checkpoint leaves {location} as it is: it has no storm/manifest.json, so it is not a "
                "topology's checkpoint; name another folder, or remove it with the store's own tool"
            )
        if names:
            opened = StoredCheckpoint(location, place)
            try:
                empty_store(opened.root)
            finally:
                opened.close()
    except OSError as error:
        raise CheckpointError(f"checkpoint {location} can't be reset: {error.strerror or error}") from error
