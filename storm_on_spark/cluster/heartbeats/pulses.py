"""Reads and deletes heartbeats at one Pacemaker."""

from __future__ import annotations

from collections.abc import Iterable

from storm_on_spark.cluster.heartbeats.connection import Connection, Request
from storm_on_spark.cluster.pacemaker.messages import Message, MessageType, Nodes, Pulse, Records
from storm_on_spark.runtime.processes.closing import Closing


class PulseReader(Closing):
    """The heartbeats in one Pacemaker. One thread uses it.

    Our server answers `GET_ALL_PULSE_FOR_PATH` with the heartbeats below a path, as the name says. Storm's own answers
    it without data: there each heartbeat takes its own request, as from Storm's Nimbus.

    Args:
        connection: to the server.
    """

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def close(self) -> None:
        """Hangs up."""
        self._connection.close()

    def read_tree(self, folder: str) -> dict[str, bytes]:
        """Returns path -> value of every heartbeat in the folders of a folder: all drivers' of all topologies.

        Folder by folder, since a reply is bounded as every message is.

        Raises:
            PacemakerError: the server can't be reached, hasn't answered in time, or refuses.
        """
        return self._read([f"{folder}/{name}" for name in self._names([folder])[0]])

    def read(self, folder: str) -> dict[str, bytes]:
        """Returns path -> value of every heartbeat in a folder.

        Raises:
            PacemakerError: the server can't be reached, hasn't answered in time, or refuses.
        """
        return self._read([folder])

    def _read(self, folders: list[str]) -> dict[str, bytes]:
        found: dict[str, bytes] = {}
        stubs: list[str] = []
        for folder, reply in zip(folders, self._ask(MessageType.GET_ALL_PULSE_FOR_PATH, folders), strict=True):
            if isinstance(reply.data, Records):
                found.update(_values(reply.data.pulses))
            else:
                stubs.append(folder)
        if stubs:
            names = self._names(stubs)
            paths = [f"{folder}/{name}" for folder, below in zip(stubs, names, strict=True) for name in below]
            replies = self._ask(MessageType.GET_PULSE, paths)
            found.update(_values(reply.data for reply in replies if isinstance(reply.data, Pulse)))
        return found

    def names(self, folder: str) -> tuple[str, ...]:
        """Returns the names of what is right below a folder.

        Raises:
            PacemakerError: the server can't be reached, hasn't answered in time, or refuses.
        """
        return self._names([folder])[0]

    def get(self, path: str) -> bytes | None:
        """Returns a heartbeat; None if there is none.

        Raises:
            PacemakerError: the server can't be reached, hasn't answered in time, or refuses.
        """
        (reply,) = self._ask(MessageType.GET_PULSE, [path])
        return reply.data.details if isinstance(reply.data, Pulse) else None

    def delete(self, path: str) -> None:
        """Deletes a heartbeat and all below it, if there are any.

        Raises:
            PacemakerError: the server can't be reached, hasn't answered in time, or refuses.
        """
        self._ask(MessageType.DELETE_PATH, [path])

    def _names(self, folders: list[str]) -> list[tuple[str, ...]]:
        replies = self._ask(MessageType.GET_ALL_NODES_FOR_PATH, folders)
        # Storm's server compares texts, not parts of paths: with /a/b it also finds what is below /a/bc.
        return [
            tuple(name for name in reply.data.ids if name) if isinstance(reply.data, Nodes) else () for reply in replies
        ]

    def _ask(self, type_: MessageType, paths: Iterable[str]) -> list[Message]:
        requests: list[Request] = [(type_, path) for path in paths]
        return self._connection.ask(requests)


def _values(pulses: Iterable[Pulse]) -> dict[str, bytes]:
    return {pulse.id: pulse.details for pulse in pulses if pulse.details is not None}
