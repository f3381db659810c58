"""What happened in ZooKeeper, read from the servers' own transaction logs.

A server writes every transaction to its log before it takes effect: successful ones in their order, and refused ones
with the reason. The logs say completely who wrote what under which fence, and none of the tested code had a part in
writing them.

The format is that of `org.apache.zookeeper.server.persistence.FileTxnLog`: a header, then for each transaction a
checksum, a length, a `TxnHeader`, a record by its type, and the byte `B`. Records are written by jute: numbers big
endian, strings and buffers after their length.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

_MAGIC: Final = b"ZKLG"
_CREATES: Final = (1, 15, 19, 21)
_DELETES: Final = (2, 20)
_SET, _CHECK, _MULTI, _ERROR, _OPEN_SESSION, _CLOSE_SESSION = 5, 13, 14, -1, -10, -11

Kind = Literal["create", "delete", "set", "check", "error", "session", "close", "other"]


@dataclass(frozen=True)
class Operation:
    """One operation of a transaction."""

    kind: Kind
    path: str = ""
    data: bytes = b""
    ephemeral: bool = False
    version: int = -1
    """Of a check: the version that the node had. Of a set: the version that it has now."""
    error: int = 0
    """Of an error: ZooKeeper's code; 0 and -2 stand for operations that failed because of another one there."""


@dataclass(frozen=True)
class Transaction:
    """One transaction, in the order of `zxid`."""

    zxid: int
    session: int
    time: float
    """Seconds since the epoch, by the clock of the server that led."""
    operations: tuple[Operation, ...]

    @property
    def refused(self) -> int:
        """ZooKeeper's code of the error; 0 if the transaction succeeded."""
        codes = [operation.error for operation in self.operations if operation.kind == "error"]
        return next((code for code in codes if code not in (0, -2)), codes[0] if codes else 0)


def read(data_dirs: Iterable[Path]) -> list[Transaction]:
    """Returns the transactions in the logs of an ensemble's servers, in order.

    A server that was away may lack some. One that led alone for a moment may have some that never took effect; it
    removes these when it rejoins the others. So all servers of the ensemble must be running.

    Args:
        data_dirs: one for each server.
    """
    found: dict[int, Transaction] = {}
    for folder in data_dirs:
        for log in sorted((folder / "version-2").glob("log.*")):
            for transaction in _read_log(log.read_bytes()):
                found[transaction.zxid] = transaction
    return [found[zxid] for zxid in sorted(found)]


def _read_log(content: bytes) -> Iterator[Transaction]:
    if content[:4] != _MAGIC:
        return
    position = 16
    while position + 12 <= len(content):
        (length,) = struct.unpack_from(">i", content, position + 8)
        end = position + 12 + length
        # The file is padded with zeros; a transaction being written has no end yet.
        if length <= 0 or content[end : end + 1] != b"B":
            return
        yield _transaction(_Reader(content[position + 12 : end]))
        position = end + 1


def _transaction(reader: _Reader) -> Transaction:
    session, _, zxid, millis, type_ = reader.take(">qiqqi")
    return Transaction(zxid, session, millis / 1000, tuple(_operations(type_, reader)))


def _operations(type_: int, reader: _Reader) -> Iterator[Operation]:
    if type_ != _MULTI:
        yield _operation(type_, reader)
        return
    (count,) = reader.take(">i")
    for _ in range(count):
        (part,) = reader.take(">i")
        yield _operation(part, _Reader(reader.buffer()))


def _operation(type_: int, reader: _Reader) -> Operation:
    if type_ in _CREATES:
        path, data = reader.text(), reader.buffer()
        (count,) = reader.take(">i")
        for _ in range(max(0, count)):
            reader.take(">i")
            reader.text(), reader.text()
        # Containers have only these fields.
        return Operation("create", path, data, type_ in (1, 15) and bool(reader.take(">?")[0]))
    if type_ in _DELETES:
        return Operation("delete", reader.text())
    if type_ == _SET:
        return Operation("set", reader.text(), reader.buffer(), version=reader.take(">i")[0])
    if type_ == _CHECK:
        # A server records the version after a change.
        return Operation("check", reader.text(), version=reader.take(">i")[0] - 1)
    if type_ == _ERROR:
        return Operation("error", error=reader.take(">i")[0])
    kinds: dict[int, Kind] = {_OPEN_SESSION: "session", _CLOSE_SESSION: "close"}
    return Operation(kinds.get(type_, "other"))


class _Reader:
    """Reads a jute record."""

    def __init__(self, content: bytes) -> None:
        self._content = content
        self._position = 0

    def take(self, layout: str) -> tuple[int, ...]:
        found = struct.unpack_from(layout, self._content, self._position)
        self._position += struct.calcsize(layout)
        return found

    def buffer(self) -> bytes:
        (length,) = self.take(">i")
        start = self._position
        self._position += max(0, length)
        return self._content[start : self._position]

    def text(self) -> str:
        return self.buffer().decode()
