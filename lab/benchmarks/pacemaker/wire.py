"""The protocols of heartbeats as raw bytes: Pacemaker's, and ZooKeeper's.

Both put four bytes of length before every message, so a client that only counts replies needs no more of them.
"""

from __future__ import annotations

import struct
from abc import ABC, abstractmethod

from storm_on_spark.cluster.pacemaker.messages import Message, MessageType, Pulse, frame

FOLDER = "/workerbeats"
SESSION_MILLIS = 300_000
"""Timeout of ZooKeeper's sessions: the first must not expire before the last is created."""


class Protocol(ABC):
    """The protocol of a simulated worker."""

    login = b""
    """Its first message; answered by one message."""

    @abstractmethod
    def beat(self, path: str, size: int) -> tuple[bytes, bytes]:
        """Returns the bytes before and after a value of `size` bytes."""


class PacemakerProtocol(Protocol):
    """`SEND_PULSE`, with the same number each time as only one is under way."""

    def beat(self, path: str, size: int) -> tuple[bytes, bytes]:
        whole = frame(Message(MessageType.SEND_PULSE, Pulse(path, b"\0" * size), 0))
        behind = 10  # the ends of pulse and union, the number and the end of the message
        assert not any(whole[-size - behind : -behind])
        return whole[: -size - behind], whole[-behind:]


class ZooKeeperProtocol(Protocol):
    """`setData` of any version (jute; org.apache.zookeeper.proto)."""

    login = struct.pack(">iiqiqi16s?", 45, 0, 0, SESSION_MILLIS, 0, 16, b"", False)

    def beat(self, path: str, size: int) -> tuple[bytes, bytes]:
        name = path.encode()
        body = struct.pack(">ii", 1, 5) + struct.pack(">i", len(name)) + name + struct.pack(">i", size)
        behind = struct.pack(">i", -1)
        return struct.pack(">i", len(body) + size + len(behind)) + body, behind


PROTOCOLS = {"pacemaker": PacemakerProtocol, "zookeeper": ZooKeeperProtocol}


def path_of(worker: int) -> str:
    """Returns where a worker's heartbeat is: four workers are a topology of one supervisor each, as in Storm."""
    supervisor, slot = divmod(worker, 4)
    return f"{FOLDER}/topology-{supervisor:05d}-1-1700000000/{supervisor:08x}-aaaa-bbbb-cccc-0123456789ab-{6700 + slot}"
