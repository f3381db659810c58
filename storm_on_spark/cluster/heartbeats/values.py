"""Paths and bytes of heartbeats in Pacemaker."""

from __future__ import annotations

import gzip
import zlib
from typing import Final, Literal

import msgspec

from storm_on_spark.cluster.errors import RecordError
from storm_on_spark.cluster.pacemaker.access import SUPERVISORS_ID
from storm_on_spark.cluster.records import MAX_BYTES, WorkerBeat, decode, encode

WORKERS: Final = "/workerbeats"
"""Storm's."""
SUPERVISORS: Final = f"{WORKERS}/{SUPERVISORS_ID}"
_MOST_PULSE: Final = 1 << 16
_LEVEL: Final = 1
"""Level of gzip: half the time of the default level for a tenth more bytes."""


def worker_name(topology_id: str, supervisor_id: str, port: int) -> str:
    """Returns a driver's name as a writer: its path below `WORKERS`.

    Example:
        >>> worker_name("word-count-1-1700000000", "a", 6700)
        'word-count-1-1700000000/a-6700'
    """
    return f"{topology_id}/{supervisor_id}-{port}"


def worker_path(beat: WorkerBeat) -> str:
    """Returns the path of a driver's heartbeat."""
    return f"{WORKERS}/{worker_name(beat.topology_id, beat.supervisor_id, beat.port)}"


def supervisor_name(supervisor_id: str) -> str:
    """Returns a supervisor's name as a writer: its path below `WORKERS`."""
    return f"{SUPERVISORS_ID}/{supervisor_id}"


def supervisor_path(supervisor_id: str) -> str:
    """Returns the path of a supervisor's heartbeat."""
    return f"{WORKERS}/{supervisor_name(supervisor_id)}"


def pack(beat: WorkerBeat) -> bytes:
    """Returns a driver's heartbeat as bytes: gzip, as in Storm, of the record as JSON.

    Raises:
        RecordError: it is too large.
    """
    return gzip.compress(encode(beat), _LEVEL, mtime=0)


def unpack(data: bytes, path: str) -> WorkerBeat:
    """Returns the heartbeat in `data`.

    Args:
        data: what a Pacemaker keeps.
        path: of the heartbeat; it must match the record's, so that no writer reports for another.

    Raises:
        FormatError: another release wrote it.
        RecordError: it is something else.
    """
    inflate = zlib.decompressobj(wbits=16 + zlib.MAX_WBITS)
    try:
        # A few bytes of gzip may claim to hold more than the limit.
        content = inflate.decompress(data, MAX_BYTES + 1)
    except zlib.error as error:
        raise RecordError(f"{path} holds no valid heartbeat: {error}") from error
    beat = decode(WorkerBeat, content, path)
    if worker_path(beat) != path:
        raise RecordError(f"{path}: this heartbeat says that it is of {worker_path(beat)}")
    return beat


class SupervisorPulse(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The heartbeat of a supervisor at every Pacemaker that it reaches."""

    time: float
    reaches: tuple[str, ...]
    """The Pacemakers that it reached just before, as `host:port`."""
    format: Literal[1] = 1

    def to_bytes(self) -> bytes:
        """Returns it as JSON."""
        return msgspec.json.encode(self)

    @classmethod
    def from_bytes(cls, data: bytes, path: str) -> SupervisorPulse:
        """Returns the pulse in `data`.

        Raises:
            RecordError: it is something else.
        """
        if len(data) > _MOST_PULSE:
            raise RecordError(f"{path}: {len(data):,} bytes; a supervisor's pulse has at most {_MOST_PULSE:,}")
        try:
            return msgspec.json.decode(data, type=cls)
        except (msgspec.MsgspecError, UnicodeDecodeError) as error:
            raise RecordError(f"{path} holds no valid pulse of a supervisor: {error}") from error
