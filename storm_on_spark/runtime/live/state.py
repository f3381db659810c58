"""The state of tasks in memory, and what changed in it since the last barrier."""

from __future__ import annotations

from collections.abc import Mapping

from storm_on_spark.runtime.live.messages import Key


class LiveState:
    """The state of all tasks of a partition.

    Args:
        values: what is in the state store.

    Example:
        >>> state = LiveState({(3, "snapshot", 0): b"old"})
        >>> state.of(3).put("snapshot", b"new")
        >>> state.of(3).get("snapshot"), state.take_changes(), state.take_changes()
        (b'new', {(3, 'snapshot', 0): b'new'}, {})
    """

    def __init__(self, values: Mapping[Key, bytes]) -> None:
        self._values = dict(values)
        self._changes: dict[Key, bytes | None] = {}
        self._tasks: dict[int, TaskState] = {}

    def of(self, task: int) -> TaskState:
        """Returns the state of a task, as a stage takes it."""
        found = self._tasks.get(task)
        if found is None:
            found = self._tasks[task] = TaskState(self._values, self._changes, task)
        return found

    def take_changes(self) -> dict[Key, bytes | None]:
        """Returns what was put since this was called last, and None for what was removed."""
        taken = dict(self._changes)
        self._changes.clear()
        return taken


class TaskState:
    """`StateAccess` of one task; see `LiveState`."""

    def __init__(self, values: dict[Key, bytes], changes: dict[Key, bytes | None], task: int) -> None:
        self._values = values
        self._changes = changes
        self._task = task

    def get(self, name: str, index: int = 0) -> bytes | None:
        """Returns a value, or None."""
        return self._values.get((self._task, name, index))

    def put(self, name: str, value: bytes, index: int = 0) -> None:
        """Sets a value."""
        key = self._task, name, index
        self._values[key] = self._changes[key] = value

    def remove(self, name: str, index: int = 0) -> None:
        """Removes a value, if there is one."""
        key = self._task, name, index
        if self._values.pop(key, None) is not None:
            self._changes[key] = None
