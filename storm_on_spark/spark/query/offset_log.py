"""Fingerprints of the micro-batches that a checkpoint has planned, from Spark's offset log."""

from __future__ import annotations

import hashlib

from storm_on_spark.api.errors import CheckpointError
from storm_on_spark.runtime.storage import Storage
from storm_on_spark.spark.checkpoint.directory import last_batch


class OffsetLog:
    """Spark's offset log; the `Plans` of a `SinkContext`.

    Spark writes an entry once, before it executes the micro-batch, so a micro-batch that runs again after a crash has
    the same entry. It holds the offsets of all sources and the time of planning in milliseconds. A micro-batch that is
    planned again from an older checkpoint therefore has a different fingerprint.

    Args:
        root: the checkpoint.
    """

    def __init__(self, root: Storage) -> None:
        self._root = root

    @property
    def last(self) -> int:
        """The last micro-batch that was planned; -1 if there is none."""
        found = last_batch(self._root, "offsets")
        return -1 if found is None else found

    def of(self, micro_batch: int) -> int | None:
        """Returns the fingerprint of a plan; None if the log does not have it, or no longer has it.

        Raises:
            CheckpointError: the log can't be read.
        """
        try:
            entry = self._root.read(f"offsets/{micro_batch}")
        except FileNotFoundError:
            return None
        except OSError as error:
            raise CheckpointError(
                f"Spark's offset log {self._root.url}/offsets/{micro_batch} can't be read: {error}"
            ) from error
        # 63 bits: Delta and databases have signed integers of 64.
        return int.from_bytes(hashlib.sha256(entry).digest()[:8], "big") >> 1
