"""Chunks: what Spark moves between stages instead of tuples.

A chunk is one binary row that holds everything one task sent to one other task in one execution. A row of its own for
each tuple costs about ten times as much. The layout, little endian:

    header   version u8, kind u8, flags u16, target i32, source i32, sequence i64, size u32, stream u32, extra u32
    payload  by kind:
      TUPLES  roots and edges (both only with ANCHORED), then the pickled columns (see `texts`)
              roots are packed ids (see `packing`); with RAGGED `extra` bytes of pickle: per tuple an int or a tuple of
              ints
              edges are size*u64; with DRAWN the u64 that they start from (see `EdgeRange`), with BY_ROOT that from
              which they follow for each root (see `RootEdges`)
      ARROW   roots and edges as above, then an Arrow IPC stream of one record batch, with repeated texts as
              numbers (see `texts`)
      ACKS    roots (packed ids), xors size*u64 or as edges with BY_ROOT, packed marks: one fold of a task's work
              (see `acker`)
      OUTCOME roots (packed ids), codes (packed marks): what became of root tuples (see `acker`)
      CLOCK   nothing; `sequence` is the batch's clock in ms, `size` is 1 when the task's tick is due
      REPORT  pickled records for the sink: metrics and errors

`sequence` orders the chunks of one source, so a receiver that sorts by (source, sequence) sees emit order.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from enum import IntEnum
from itertools import zip_longest
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from storm_on_spark.api.errors import CheckpointError
from storm_on_spark.runtime import pickling
from storm_on_spark.runtime.arrow_texts import number_texts, spell_texts
from storm_on_spark.runtime.ids import EdgeRange, RootEdges, U64Array
from storm_on_spark.runtime.packing import pack_ids, pack_marks, unpack_ids, unpack_marks
from storm_on_spark.runtime.rows import Columns
from storm_on_spark.runtime.texts import (
    TextNumbers,
    pack_column,
    unpack_column,
    unpack_to_arrow,
)

VERSION = 4
_HEADER = struct.Struct("<BBHiiqIII")
HEADER_BYTES = _HEADER.size


class Kind(IntEnum):
    """What a chunk holds."""

    TUPLES = 1
    ARROW = 2
    ACKS = 3
    OUTCOME = 4
    CLOCK = 5
    REPORT = 6


ANCHORED = 1
"""Flag: some tuple has a root, so roots and edges are there."""
RAGGED = 2
"""Flag: some tuple has several roots."""
CARRIED = 4
"""Flag: travels over a back edge; every stage passes it on to the sink, which keeps it for the next micro-batch."""
DRAWN = 8
"""Flag: the edges were drawn together and travel as where they start."""
BY_ROOT = 16
"""Flag: the edges follow from the roots, and travel as where they start."""

_FLAGS_OFFSET = 2
_TARGET_OFFSET = 4
_START = struct.Struct("<Q")


class Header(NamedTuple):
    """The fixed part of a chunk."""

    version: int
    kind: int
    flags: int
    target: int
    source: int
    sequence: int
    size: int
    stream: int
    extra: int


Roots = U64Array | list[Any] | None
"""Per tuple its root: an array (0 = unanchored), a list of ints and tuples of ints, or None for all unanchored."""

Edges = U64Array | EdgeRange | RootEdges
"""Per tuple its edge id."""


def read_header(body: bytes | memoryview) -> Header:
    """Returns the header of a chunk.

    Raises:
        CheckpointError: the bytes are no chunk, or one of an unknown version.
    """
    if len(body) < HEADER_BYTES:
        raise CheckpointError(f"a chunk of {len(body)} bytes is shorter than its header of {HEADER_BYTES} bytes")
    header = Header._make(_HEADER.unpack_from(body))
    if header.version != VERSION:
        raise CheckpointError(f"a chunk has format version {header.version}; this release reads version {VERSION}")
    return header


def encode_tuples(
    values: Sequence[Sequence[Any]],
    roots: Roots,
    edges: Edges | None,
    *,
    target: int,
    source: int,
    sequence: int,
    stream: int,
    flags: int = 0,
    numbers: Sequence[TextNumbers] = (),
) -> bytes:
    """Returns a TUPLES chunk of `values`, all of one stream and so of one length.

    `numbers` has what is kept of the texts of each column, or is empty.
    """
    columns = Columns.of(values).columns
    payload = pickling.dumps([pack_column(*column) for column in zip_longest(columns, numbers[: len(columns)])])
    return _join(Kind.TUPLES, payload, len(values), roots, edges, target, source, sequence, stream, flags)


def encode_arrow(
    batch: pa.RecordBatch,
    roots: Roots,
    edges: Edges | None,
    *,
    target: int,
    source: int,
    sequence: int,
    stream: int,
    flags: int = 0,
) -> bytes:
    """Returns an ARROW chunk of the rows of `batch`."""
    batch, sink = number_texts(batch), pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    payload = sink.getvalue().to_pybytes()
    return _join(Kind.ARROW, payload, batch.num_rows, roots, edges, target, source, sequence, stream, flags)


def _join(
    kind: Kind,
    payload: bytes,
    count: int,
    roots: Roots,
    edges: Edges | None,
    target: int,
    source: int,
    sequence: int,
    stream: int,
    flags: int,
) -> bytes:
    anchors, extra = b"", 0
    if roots is not None and edges is not None:
        flags |= ANCHORED
        if isinstance(roots, list):
            flags |= RAGGED
            anchors = pickling.dumps(roots)
            extra = len(anchors)
        else:
            anchors = pack_ids(roots)
        flag, packed = _packed_edges(edges)
        flags |= flag
        anchors += packed
    header = _HEADER.pack(VERSION, kind, flags, target, source, sequence, count, stream, extra)
    return b"".join((header, anchors, payload))


def _packed_edges(edges: Edges) -> tuple[int, bytes]:
    if isinstance(edges, EdgeRange):
        return DRAWN, _START.pack(edges.start)
    if isinstance(edges, RootEdges):
        return BY_ROOT, _START.pack(edges.start)
    return 0, edges.tobytes()


def _unpack_edges(header: Header, view: memoryview, roots: Roots) -> U64Array:
    if header.flags & DRAWN:
        return EdgeRange(_START.unpack_from(view)[0], header.size).ids()
    if header.flags & BY_ROOT:
        if not isinstance(roots, np.ndarray):
            raise CheckpointError("a chunk has edges that follow from roots, and tuples with several roots")
        return RootEdges(_START.unpack_from(view)[0]).ids(roots)
    edges: U64Array = np.frombuffer(view[: 8 * header.size], dtype=np.uint64)
    return edges


def _edges_size(header: Header) -> int:
    return _START.size if header.flags & (DRAWN | BY_ROOT) else 8 * header.size


class Anchors(NamedTuple):
    """Roots and edges of a chunk's tuples, and where the payload proper starts."""

    roots: Roots
    edges: U64Array | None
    payload: memoryview


def read_anchors(header: Header, body: bytes | memoryview) -> Anchors:
    """Returns roots, edges and payload of a TUPLES or ARROW chunk.

    Raises:
        CheckpointError: the chunk is cut short.
    """
    view = memoryview(body)[HEADER_BYTES:]
    if not header.flags & ANCHORED:
        return Anchors(None, None, view)
    width = _edges_size(header)
    needed = width + (header.extra if header.flags & RAGGED else 0)
    if len(view) < needed:
        raise CheckpointError(f"a chunk of {header.size} anchored tuples has {len(view)} bytes, not {needed} or more")
    roots: Roots
    if header.flags & RAGGED:
        roots = pickling.loads(view[: header.extra])
        view = view[header.extra :]
    else:
        roots, view = unpack_ids(view, header.size)
    if len(view) < width:
        raise CheckpointError(f"a chunk of {header.size} anchored tuples is cut short in its edges")
    return Anchors(roots, _unpack_edges(header, view, roots), view[width:])


def read_rows(header: Header, payload: memoryview) -> Columns:
    """Returns the values of a TUPLES chunk."""
    packed = pickling.loads(payload)
    return Columns([unpack_column(column, header.size) for column in packed], header.size)


def read_rows_as_batch(header: Header, payload: memoryview, names: Iterable[str]) -> pa.RecordBatch:
    """Returns the values of a TUPLES chunk as a record batch.

    Raises:
        pyarrow.ArrowInvalid: the values of a column have no common Arrow type.
    """
    columns = [unpack_to_arrow(column, header.size) for column in pickling.loads(payload)]
    return pa.RecordBatch.from_arrays(columns, names=list(names))


def read_batch(payload: memoryview) -> pa.RecordBatch:
    """Returns the record batch of an ARROW chunk."""
    with pa.ipc.open_stream(pa.py_buffer(payload)) as reader:
        return spell_texts(reader.read_next_batch())


def encode_acks(
    roots: U64Array, xors: U64Array | RootEdges, marks: NDArray[np.uint8], *, target: int, source: int, clock: int = 0
) -> bytes:
    """Returns an ACKS chunk; `clock` is the time in ms at which the roots in it were emitted, if any was."""
    flags, packed = _packed_edges(xors)
    header = _HEADER.pack(VERSION, Kind.ACKS, flags, target, source, clock, len(roots), 0, 0)
    return b"".join((header, pack_ids(roots), packed, pack_marks(marks)))


def read_acks(header: Header, body: bytes | memoryview) -> tuple[U64Array, U64Array, NDArray[np.uint8]]:
    """Returns (roots, xors, marks) of an ACKS chunk."""
    count = header.size
    roots, view = unpack_ids(memoryview(body)[HEADER_BYTES:], count)
    width = _edges_size(header)
    if len(view) < width:
        raise CheckpointError(f"a chunk with {count} roots is cut short: {len(view)} bytes are left for their XORs")
    xors = _unpack_edges(header, view, roots)
    marks, rest = unpack_marks(view[width:], count)
    _check_end(header, rest)
    return roots, xors, marks


def _check_end(header: Header, rest: memoryview) -> None:
    if len(rest):
        raise CheckpointError(f"a chunk with {header.size} roots has {len(rest)} bytes too many")


def encode_outcome(roots: U64Array, codes: NDArray[np.uint8], *, source: int) -> bytes:
    """Returns an OUTCOME chunk of an acker task."""
    header = _HEADER.pack(VERSION, Kind.OUTCOME, 0, -1, source, 0, len(roots), 0, 0)
    return b"".join((header, pack_ids(roots), pack_marks(codes)))


def read_outcome(header: Header, body: bytes | memoryview) -> tuple[U64Array, NDArray[np.uint8]]:
    """Returns (roots, codes) of an OUTCOME chunk."""
    roots, view = unpack_ids(memoryview(body)[HEADER_BYTES:], header.size)
    codes, rest = unpack_marks(view, header.size)
    _check_end(header, rest)
    return roots, codes


def encode_clock(clock: int, tick: bool, *, target: int) -> bytes:
    """Returns a CLOCK chunk: the micro-batch's time in ms, and whether the target's tick is due."""
    return _HEADER.pack(VERSION, Kind.CLOCK, 0, target, -1, clock, int(tick), 0, 0)


def encode_report(records: Sequence[Any], *, source: int) -> bytes:
    """Returns a REPORT chunk for the sink."""
    header = _HEADER.pack(VERSION, Kind.REPORT, 0, -1, source, 0, len(records), 0, 0)
    return header + pickling.dumps(list(records))


def read_report(body: bytes | memoryview) -> list[Any]:
    """Returns the records of a REPORT chunk."""
    records: list[Any] = pickling.loads(memoryview(body)[HEADER_BYTES:])
    return records


def with_target(body: bytes, target: int) -> bytes:
    """Returns the chunk for another task."""
    return body[:_TARGET_OFFSET] + target.to_bytes(4, "little", signed=True) + body[_TARGET_OFFSET + 4 :]


def without_flag(body: bytes, flag: int) -> bytes:
    """Returns the chunk with `flag` cleared."""
    flags = int.from_bytes(body[_FLAGS_OFFSET : _FLAGS_OFFSET + 2], "little") & ~flag
    return body[:_FLAGS_OFFSET] + flags.to_bytes(2, "little") + body[_FLAGS_OFFSET + 2 :]
