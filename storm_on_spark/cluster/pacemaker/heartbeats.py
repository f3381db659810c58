"""The heartbeats of one server: paths to bytes, in memory. Pure: time is passed in, nothing is written anywhere."""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Iterator
from typing import Final

import msgspec

from storm_on_spark.cluster.errors import LimitError, RecordError
from storm_on_spark.cluster.pacemaker.messages import Pulse

MOST_PATH: Final = 1024
"""Bytes of a path, in UTF-8."""
_PATH: Final = re.compile(r"(?:/(?!\.\.?(?:/|\Z))[^/\x00-\x1f\x7f]+)+")
_ENTRY_BYTES: Final = 500
"""What an entry takes beside its path and value, about: keys without values are not free."""

_DEPTH: Final = 3
"""Parts of a heartbeat's path: `/workerbeats/<topology>/<driver>`."""


class Quota(msgspec.Struct, frozen=True):
    """How much may be kept."""

    keys: int = 100_000
    """Paths of one client, at most."""
    client_bytes: int = 512 << 20
    """Bytes of one client, at most: paths, values and the overhead of entries."""
    all_bytes: int = 2 << 30
    """Bytes of all clients, at most."""

    def of_a_topology(self) -> Quota:
        """Returns how much a topology may keep: it has one driver, and what a Nimbus reads of it is one message."""
        return Quota(min(self.keys, 1000), min(self.client_bytes, 8 << 20), self.all_bytes)


class _Entry(msgspec.Struct):
    value: bytes | None
    owner: str
    size: int
    at: float


class _Used(msgspec.Struct):
    keys: int = 0
    size: int = 0


class Heartbeats:
    """A map of paths like ZooKeeper's to values, with an index of what is below each path.

    A path is in the map by `put`, with a value, or by `create`, without one. It goes by `delete`, or when nobody has
    put it again for `expiry` seconds.

    Args:
        quota: how much is kept.
        expiry: in seconds.

    Example:
        >>> beats = Heartbeats()
        >>> beats.put("/workerbeats/t-1/a-6700", b"42", owner="t-1", now=0.0)
        >>> beats.get("/workerbeats/t-1/a-6700"), beats.children("/workerbeats"), beats.exists("/workerbeats/t")
        (b'42', ['t-1'], False)
        >>> beats.expire(now=601.0), beats.children("/workerbeats")
        (1, [])
    """

    def __init__(self, quota: Quota = Quota(), expiry: float = 600.0) -> None:  # noqa: B008
        self._quota = quota
        self._of_a_topology = quota.of_a_topology()
        self.expiry = expiry
        """Seconds until a path is removed that is not written again; it may be changed at any time."""
        #: In order of `at`: the path that was put longest ago is first.
        self._entries: OrderedDict[str, _Entry] = OrderedDict()
        #: The names right below a path, for every path that has any, as the keys of a dict: in order, without values.
        self._below: dict[str, dict[str, None]] = {}
        self._used: dict[str, _Used] = {}
        self._size = 0

    def __len__(self) -> int:
        return len(self._entries)

    @property
    def size(self) -> int:
        """Approximate bytes that all entries take."""
        return self._size

    def owners(self) -> dict[str, tuple[int, int]]:
        """Returns keys and bytes of each client that has any."""
        return {owner: (used.keys, used.size) for owner, used in self._used.items()}

    def put(self, path: str, value: bytes, owner: str, now: float, *, topology: bool = False) -> None:
        """Keeps a value, instead of what was at its path.

        Args:
            path: checked by `checked_path`.
            value: any bytes.
            owner: the client that it counts for from now on.
            now: seconds that never go back.
            topology: whether the client is a single topology.

        Raises:
            LimitError: the client, or all together, would keep too much. Nothing has changed then.
        """
        self._set(path, value, owner, now, topology)

    def create(self, path: str, owner: str, now: float, *, topology: bool = False) -> None:
        """Keeps a path without a value; one that is there already stays as it is.

        Raises:
            LimitError: as for `put`.
        """
        if path not in self._entries:
            self._set(path, None, owner, now, topology)

    def get(self, path: str) -> bytes | None:
        """Returns the value at a path; None if it has none."""
        entry = self._entries.get(path)
        return None if entry is None else entry.value

    def exists(self, path: str) -> bool:
        """Tells whether a path was put or created, or something below it."""
        return path in self._entries or path in self._below

    def children(self, path: str) -> list[str]:
        """Returns the names right below a path."""
        return list(self._below.get(path, ()))

    def pulses(self, path: str) -> Iterator[Pulse]:
        """Yields what has a value at a path and below it."""
        for each in self._at_or_below(path):
            entry = self._entries.get(each)
            if entry is not None and entry.value is not None:
                yield Pulse(each, entry.value)

    def delete(self, path: str) -> int:
        """Removes one path; what is below it stays.

        Returns:
            How many there were: none, or one.
        """
        entry = self._entries.pop(path, None)
        if entry is None:
            return 0
        self._count(entry.owner, -1, -entry.size)
        self._prune(path)
        return 1

    def delete_all(self, path: str) -> int:
        """Removes a path and all below it.

        Returns:
            How many there were.
        """
        return sum(self.delete(each) for each in list(self._at_or_below(path)))

    def expire(self, now: float, most: int = 10_000) -> int:
        """Removes paths that were not put for too long.

        Args:
            now: seconds that never go back.
            most: paths to remove at once; the others are for the next call.

        Returns:
            How many there were.
        """
        removed = 0
        while self._entries and removed < most:
            path, entry = next(iter(self._entries.items()))
            if now - entry.at < self.expiry:
                break
            removed += self.delete(path)
        return removed

    def _set(self, path: str, value: bytes | None, owner: str, now: float, topology: bool) -> None:
        quota = self._of_a_topology if topology else self._quota
        before = self._entries.get(path)
        # A path deeper than Storm's may have parts that no other has: each of them is a path with an index, too.
        parts = max(1, path.count("/") - _DEPTH + 1)
        size = parts * (_ENTRY_BYTES + len(path)) + (0 if value is None else len(value))
        if before is not None and before.owner == owner:
            self._check(quota, owner, 0, size - before.size, size - before.size)
            self._count(owner, 0, size - before.size)
            before.value, before.size, before.at = value, size, now
        else:
            self._check(quota, owner, 1, size, size - (0 if before is None else before.size))
            if before is not None:
                self._count(before.owner, -1, -before.size)
            self._count(owner, 1, size)
            self._entries[path] = _Entry(value, owner, size, now)
            if before is None:
                self._index(path)
        self._entries.move_to_end(path)

    def _check(self, quota: Quota, owner: str, keys: int, size: int, in_all: int) -> None:
        used = self._used.get(owner, _NOTHING)
        if used.keys + keys > quota.keys:
            raise LimitError(f"a client keeps at most {quota.keys:,} paths")
        # A smaller value than before is always taken.
        if size > 0 and used.size + size > quota.client_bytes:
            raise LimitError(f"a client keeps at most {quota.client_bytes:,} bytes")
        if in_all > 0 and self._size + in_all > quota.all_bytes:
            raise LimitError(f"all clients together keep at most {quota.all_bytes:,} bytes")

    def _count(self, owner: str, keys: int, size: int) -> None:
        used = self._used.setdefault(owner, _Used())
        used.keys += keys
        used.size += size
        self._size += size
        if not used.keys:
            del self._used[owner]

    def _index(self, path: str) -> None:
        while path:
            parent, _, name = path.rpartition("/")
            names = self._below.setdefault(parent, {})
            if name in names:
                return
            names[name] = None
            path = parent

    def _prune(self, path: str) -> None:
        while path and path not in self._entries and path not in self._below:
            parent, _, name = path.rpartition("/")
            names = self._below[parent]
            del names[name]
            if not names:
                del self._below[parent]
            path = parent

    def _at_or_below(self, path: str) -> Iterator[str]:
        waiting = [path]
        while waiting:
            each = waiting.pop()
            yield each
            waiting.extend(f"{each}/{name}" for name in self._below.get(each, ()))


_NOTHING: Final = _Used()


def checked_path(path: object, *, root: bool = False) -> str:
    """Returns a path as the map has it: `/a/b`, and an empty string for the root.

    Args:
        path: of a request; a slash at its end is left out.
        root: whether `/`, or nothing, is a path too.

    Raises:
        RecordError: it is not a path.
    """
    if not isinstance(path, str):
        raise RecordError(f"the path of a heartbeat must be a string, not {type(path).__name__}")
    if len(path) > MOST_PATH or len(path.encode()) > MOST_PATH:
        raise RecordError(f"a path has at most {MOST_PATH:,} bytes")
    short = path[:-1] if path.endswith("/") else path
    if (short == "" and root) or _PATH.fullmatch(short):
        return short
    raise RecordError(f"{path!r:.100} is not a heartbeat's path: start it with a slash, without empty parts, . or ..")
