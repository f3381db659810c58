"""Versions of a task's state, by which a cached instance finds out what it lacks.

Spark runs a partition in any Python worker, so an instance in a worker's memory is often a few micro-batches old. A
plain number would not identify a state: a failed attempt and its repetition would give different states the same
number. So each version is named by random bytes, and the record has the last few, newest first. An instance that has
one of them needs only the later entries of key-value state and the later deltas of the snapshot.

A record is its format version, u8, and for each state an id of 8 bytes and four numbers, u32.
"""

from __future__ import annotations

import os
import struct
from typing import NamedTuple

from storm_on_spark.api.errors import CheckpointError
from storm_on_spark.api.text.wording import other_format

_FORMAT = 3
_VERSION = struct.Struct("<8sIIII")
_KEPT = 8


class StateVersion(NamedTuple):
    """A state that was committed, or will be with the current micro-batch.

    Args:
        id: its name, 8 random bytes.
        generation: how often the journal of the key-value state was rewritten.
        entries: how many entries of key-value state there are in this generation.
        snapshot: how often the snapshot has been written whole.
        deltas: how many deltas there are to that.
    """

    id: bytes
    generation: int
    entries: int
    snapshot: int
    deltas: int


class StateVersions(tuple[StateVersion, ...]):
    """The last versions of a state, newest first; none before the first commit.

    Example:
        >>> versions = StateVersions().next(0, 1, 1, 0).next(0, 2, 1, 1)
        >>> StateVersions.load(versions.dump()) == versions, versions.newest.entries, versions.held(versions[1].id)[2]
        (True, 2, 1)
    """

    __slots__ = ()

    @classmethod
    def load(cls, record: bytes | None) -> StateVersions:
        """Returns the versions in a record, or none.

        Raises:
            CheckpointError: it is no such record.
        """
        if record is None:
            return cls()
        if len(record) < 1 + _VERSION.size or len(record) % _VERSION.size != 1:
            raise CheckpointError(
                f"a record of state versions has {len(record)} bytes, not {_VERSION.size} for each and one before"
            )
        if record[0] != _FORMAT:
            raise CheckpointError(other_format("a record of state versions", record[0], _FORMAT))
        return cls(StateVersion._make(each) for each in _VERSION.iter_unpack(record[1:]))

    def dump(self) -> bytes:
        """Returns the record."""
        return bytes((_FORMAT,)) + b"".join(_VERSION.pack(*each) for each in self)

    @property
    def newest(self) -> StateVersion:
        """The present state; an empty one before the first commit."""
        return self[0] if self else StateVersion(b"", 0, 0, 0, 0)

    def held(self, version: bytes | None) -> StateVersion | None:
        """Returns the version that an instance holds, if it is one of these."""
        return next((each for each in self if each.id == version), None)

    def next(self, generation: int, entries: int, snapshot: int, deltas: int) -> StateVersions:
        """Returns the versions with a new one."""
        return StateVersions((StateVersion(os.urandom(8), generation, entries, snapshot, deltas), *self[: _KEPT - 1]))
