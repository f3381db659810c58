"""The saved state of a task: an instance in a worker is a cache over it.

State variable `version` says which state the others hold: `snapshot`, and the entries of key-value state. Among the
entries are the deltas to the snapshot, from -1 down.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Protocol

from storm_on_spark.runtime.bolts.bolt_task import Kept
from storm_on_spark.runtime.bolts.worker import CachedTask, Worker
from storm_on_spark.runtime.state import deltas
from storm_on_spark.runtime.state.version import StateVersion, StateVersions

MOST_DELTAS = 32
"""Deltas of a snapshot before it is written whole again. A worker that has nothing yet reads them one by one."""

DeltaOf = Callable[[bytes, bytes], bytes | None]


class StateAccess(Protocol):
    """The state of one task in this batch: values by name, and of `entries` by name and number.

    A bolt has `version`, `snapshot` and `entries`: the journal of key-value state, and, by numbers below zero, deltas
    of the snapshot; and where its key-value state is large, `header`, `directory` and `pages`. An acker has `pending`.
    """

    def get(self, name: str, index: int = 0) -> bytes | None:
        """Returns a value, or None."""

    def put(self, name: str, value: bytes, index: int = 0) -> None:
        """Sets a value."""

    def remove(self, name: str, index: int = 0) -> None:
        """Removes a value, if there is one."""


class SavedTask:
    """The saved state of one task, and its instance in this process.

    Args:
        worker: this process's instances.
        task: the task.
        state: where its state is saved.
    """

    def __init__(self, worker: Worker, task: int, state: StateAccess) -> None:
        self._worker = worker
        self._task = task
        self._state = state

    @cached_property
    def _versions(self) -> StateVersions:
        return StateVersions.load(self._state.get("version"))

    @property
    def kept(self) -> Kept:
        """The key-value state as it is saved."""
        return Kept(self._state, self._versions.newest.entries)

    def taken_out(self) -> CachedTask:
        """Takes the instance out of the cache, with the saved state, or ahead of it if that was not saved yet.

        After an exception the instance would be of no version, and its output half done: it stays out then.
        """
        cached = self._worker.tasks.pop(self._task, None)
        if cached is not None and cached.unsaved:
            return cached
        newest = self._versions.newest
        if cached is not None and self._versions and cached.version == newest.id:
            return cached
        if not self._versions:
            # Nothing of this task has been committed yet.
            return CachedTask(self._worker.prepare(self._task), None)
        if cached is None:
            cached = CachedTask(self._worker.prepare(self._task, self.kept), newest.id)
            cached.bolt.restore(self._read_snapshot(newest))
        elif (held := self._versions.held(cached.version)) is not None:
            snapshot = self._read_snapshot(newest, held, cached.bolt.snapshot)
            entries = held.entries if held.generation == newest.generation else None
            cached.bolt.catch_up(snapshot, self.kept, entries)
        else:
            cached.bolt.roll_back(self._read_snapshot(newest), self.kept)
        cached.version = newest.id
        return cached

    def save(self, cached: CachedTask, delta_of: DeltaOf = deltas.delta_of) -> None:
        """Writes what is new in an instance that has executed.

        Args:
            cached: the instance; its `snapshot` is the new state.
            delta_of: finds the difference between two snapshots.
        """
        bolt, newest = cached.bolt, self._versions.newest
        before, after = bolt.saved, bolt.snapshot
        assert after is not None
        _, generation, entries, *written = newest
        changed = not self._versions or after != before
        if changed:
            written = self._write_snapshot(before if self._versions else None, after, newest, delta_of)
        if bolt.state is not None:
            changes = bolt.state.commit(self._state, entries, lambda: bolt.guarded("snapshot"))
            if changes is not None:
                changed = True
                entries, generation = changes.entries, generation + changes.rewritten
        if changed:
            versions = self._versions.next(generation, entries, *written)
            cached.version = versions.newest.id
            self._state.put("version", versions.dump())
        bolt.saved = after
        cached.unsaved = False

    def save_later(self, batch: int) -> None:
        """Saves the state of an instance that has executed without it.

        Args:
            batch: what a `BaseStatefulBolt` is told as the number of its transaction.

        Raises:
            ComponentError: the state can't be pickled, or the bolt raised.
        """
        cached = self.taken_out()
        bolt = cached.bolt
        if bolt.state is not None:
            bolt.state.attach(self._state)
        bolt.save(batch)
        self.save(cached)
        if bolt.state is not None:
            bolt.state.attach(None)
        self._worker.tasks[self._task] = cached

    def _write_snapshot(self, before: bytes | None, after: bytes, newest: StateVersion, delta_of: DeltaOf) -> list[int]:
        """Writes a snapshot, as a delta if that is much smaller; returns its two numbers for `StateVersion`."""
        if before is not None and newest.deltas < MOST_DELTAS and (delta := delta_of(before, after)) is not None:
            self._state.put("entries", delta, -1 - newest.deltas)
            return [newest.snapshot, newest.deltas + 1]
        self._state.put("snapshot", after)
        for number in range(newest.deltas):
            self._state.remove("entries", -1 - number)
        return [newest.snapshot + 1, 0]

    def _read_snapshot(
        self, newest: StateVersion, held: StateVersion | None = None, known: bytes | None = None
    ) -> bytes:
        """Returns the present snapshot; from a known one only the deltas since are read, if it is not too old."""
        if held is not None and held.snapshot == newest.snapshot:
            snapshot, first = known, held.deltas
        else:
            snapshot, first = self._state.get("snapshot"), 0
        assert snapshot is not None, "a version without a snapshot"
        for number in range(first, newest.deltas):
            delta = self._state.get("entries", -1 - number)
            assert delta is not None, f"delta {number} of {newest.deltas} is missing"
            snapshot = deltas.applied(snapshot, delta)
        return snapshot
