"""Writes of a leader: transactions that succeed only while it leads."""

from __future__ import annotations

from dataclasses import dataclass

from storm_on_spark.cluster.records import Record

Value = Record | bytes
Place = str | tuple[str, ...]
"""Of a node: its path, or the names below the root."""


@dataclass(frozen=True)
class Fence:
    """The check in ZooKeeper that the writer still leads.

    Leadership is a node in the queue for the lock, which goes with its owner's session, and the version of the node
    that says who leads, which every new leader moves on. One transaction checks both and writes, so a leader that was
    paused and woke up can't change anything. (The idea of a fencing token: Kleppmann, "How to do distributed
    locking", 2016.)
    """

    epoch: int
    """Grows with every leadership."""
    lock_path: str
    """The leader's own node in the queue; its version stays 0."""
    info_version: int
    """Version of the node that says who leads, as this leader wrote it."""


@dataclass(frozen=True)
class Create:
    """A node is made; it is a conflict if it is there already."""

    place: Place
    value: Value = b""
    ephemeral: bool = False
    """Whether it goes with the session of the writer."""


@dataclass(frozen=True)
class Put:
    """A node gets a value; it is a conflict if it isn't there, or has another version."""

    place: Place
    value: Value
    version: int = -1
    """-1 is any."""


@dataclass(frozen=True)
class Delete:
    """A node goes; it is a conflict if it isn't there, has another version, or has children."""

    place: Place
    version: int = -1
    """-1 is any."""


@dataclass(frozen=True)
class Check:
    """A node has to be there, in this version."""

    place: Place
    version: int = -1
    """-1 is any."""


Change = Create | Put | Delete | Check
