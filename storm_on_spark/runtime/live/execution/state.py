"""The state of tasks in memory, and its changes since the last barrier."""

from __future__ import annotations

from collections.abc import Container, Mapping

from storm_on_spark.runtime.live.messages import Key


class LiveState:
    """The state of all tasks of a partition.

    Args:
        values: the contents of the state store.

    Example:
        >>> state = LiveState({(3, "snapshot", 0): b"old"})
        >>> state.of(3).put("snapshot", b"new")
        >>> state.of(3).get("snapshot"), state.take_changes(), state.take_changes()
        (b'new', {(3, 'snapshot', 0): b'new'}, {})
        >>> state.of(3).remove("snapshot")
        >>> state.undo_changes()
        >>> state.of(3).get("snapshot")
        b'new'
    """

    def __init__(self, values: Mapping[Key, bytes]) -> None:
        self._values = dict(values)
        self._changes: dict[Key, bytes | None] = {}
        #: Key -> the value before its change.
        self._before: dict[Key, bytes | None] = {}
        self._tasks: dict[int, TaskState] = {}

    def of(self, task: int) -> TaskState:
        """Returns the state of a task, as a stage takes it."""
        found = self._tasks.get(task)
        if found is None:
            found = self._tasks[task] = TaskState(self, task)
        return found

    def get(self, key: Key) -> bytes | None:
        """Returns a value, or None."""
        return self._values.get(key)

    def set(self, key: Key, value: bytes | None) -> None:
        """Sets a value; removes it for None."""
        self._before.setdefault(key, self._values.get(key))
        self._changes[key] = value
        if value is None:
            self._values.pop(key, None)
        else:
            self._values[key] = value

    def values(self) -> dict[Key, bytes]:
        """Returns the state of all tasks."""
        return dict(self._values)

    def take_changes(self) -> dict[Key, bytes | None]:
        """Returns the values set since the last call, with None for removed keys."""
        taken, self._changes, self._before = self._changes, {}, {}
        return taken

    def set_late(self, changes: Mapping[Key, bytes | None]) -> None:
        """Adds late values to the changes that were taken last."""
        for key, value in changes.items():
            if value is None:
                self._values.pop(key, None)
            else:
                self._values[key] = value

    def take_out(self, tasks: Container[int]) -> dict[Key, bytes]:
        """Removes the state of tasks, which has no changes since the last call of `take_changes`, and returns it."""
        taken = {key: value for key, value in self._values.items() if key[0] in tasks}
        for key in taken:
            del self._values[key]
        return taken

    def put_in(self, values: Mapping[Key, bytes]) -> None:
        """Adds the state of tasks, as of the last call of `take_changes`."""
        self._values.update(values)

    def undo_changes(self) -> None:
        """Undoes all changes since the last call of `take_changes`."""
        before, self._before, self._changes = self._before, {}, {}
        for key, value in before.items():
            if value is None:
                self._values.pop(key, None)
            else:
                self._values[key] = value


class TaskState:
    """`StateAccess` of one task; see `LiveState`."""

    def __init__(self, state: LiveState, task: int) -> None:
        self._state = state
        self._task = task

    def get(self, name: str, index: int = 0) -> bytes | None:
        """Returns a value, or None."""
        return self._state.get((self._task, name, index))

    def put(self, name: str, value: bytes, index: int = 0) -> None:
        """Sets a value."""
        self._state.set((self._task, name, index), value)

    def remove(self, name: str, index: int = 0) -> None:
        """Removes a value, if there is one."""
        key = self._task, name, index
        if self._state.get(key) is not None:
            self._state.set(key, None)


class LateChanges:
    """`StateAccess` of one task that collects its writes separately, for `LiveState.set_late`."""

    def __init__(self, state: LiveState, task: int) -> None:
        self._state = state
        self._task = task
        self.changes: dict[Key, bytes | None] = {}

    def get(self, name: str, index: int = 0) -> bytes | None:
        """Returns a value from before these changes, or None."""
        return self._state.get((self._task, name, index))

    def put(self, name: str, value: bytes, index: int = 0) -> None:
        """Sets a value."""
        self.changes[self._task, name, index] = value

    def remove(self, name: str, index: int = 0) -> None:
        """Removes a value."""
        self.changes[self._task, name, index] = None
