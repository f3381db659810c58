"""Chunks, which Spark moves between stages instead of tuples.

A chunk is one binary row that holds everything one task sent to one other task in one execution. A separate row for
each tuple costs about ten times as much. The layout, little endian:

    header   version u8, kind u8, flags u16, target i32, source i32, sequence i64, size u32, stream u32, extra u32
    payload  by kind:
      TUPLES  roots and edges (both only with ANCHORED), then the pickled columns
              roots are `extra` bytes: packed ids (see `packing`), or with RAGGED a pickle: per tuple an int or a tuple
              of ints
              edges are size*u64, or with DRAWN the u64 that they start from (see `EdgeRange`)
      ARROW   roots and edges as above, then an Arrow IPC stream of one record batch, with repeated texts as
              numbers (see `arrow_texts`)
      ACKS    roots (packed ids), receipts u64, xors size*u64 (not with CLEAR), packed marks: one fold of a task's work
              (see `acker`)
      OUTCOME `size` runs of roots with their codes (see `packing`), `sequence` roots in all: what became of root tuples
              (see `acker`)
      CLOCK   nothing; `sequence` is the batch's clock in ms, `size` has what is due: TICK, TURN, TIMER
      ROWS    roots (packed ids), then an Arrow IPC stream of one record batch: rows that Spark read itself, as it read
              them, with the roots of their tuples; for an acker
      LEFT    the same, of rows whose roots were not acked in the micro-batch that read them; for the sink
      READ    a pickled position: what a native spout (`source`) noted of rows that were read; for the sink
      REPORT  pickled records for the sink: metrics and errors
      WRITTEN what a task of a `SinkBolt` hands over to the sink, in its own form; `source` is the task

`sequence` orders the chunks of one source, so a receiver that sorts by (source, sequence) sees emit order.

The sender and the executor of a chunk of anchored tuples both report its receipt to the ackers. A receipt is computed
from header, roots and edges: the ackers see by it whether a chunk was lost or duplicated.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from enum import IntEnum
from typing import Any, NamedTuple
from zlib import crc32

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from storm_on_spark.api.errors import CheckpointError
from storm_on_spark.api.text.wording import other_format
from storm_on_spark.runtime.codec.arrow_texts import number_texts, spell_texts
from storm_on_spark.runtime.codec.packing import (
    STEADY_BYTES,
    equal_marks,
    pack_ids,
    pack_marks,
    pack_range,
    pack_runs,
    pack_steady,
    unpack_ids,
    unpack_marks,
    unpack_runs,
    unpack_steady,
)
from storm_on_spark.runtime.tracking.ids import EdgeRange, U64Array
from storm_on_spark.runtime.tracking.lineage import FEW, PackedLineage, Roots
from storm_on_spark.runtime.tracking.runs import Runs
from storm_on_spark.runtime.values import pickling
from storm_on_spark.runtime.values.frozen import FrozenColumn, FrozenRows, pack_frozen, unpack_frozen
from storm_on_spark.runtime.values.hashing import mix64
from storm_on_spark.runtime.values.rows import Columns

VERSION = 8
_HEADER = struct.Struct("<BBHiiqIII")
HEADER_BYTES = _HEADER.size


class Kind(IntEnum):
    """The kinds of chunks."""

    TUPLES = 1
    ARROW = 2
    ACKS = 3
    OUTCOME = 4
    CLOCK = 5
    REPORT = 6
    ROWS = 7
    LEFT = 8
    WRITTEN = 9
    READ = 10


_FOR_SINK = frozenset({Kind.OUTCOME, Kind.REPORT, Kind.LEFT, Kind.READ, Kind.WRITTEN})

TICK = 1
"""Due in a task: a tick tuple."""
TURN = 2
"""Due in a task: a part in the micro-batch, even without a tuple; see `BaseRichBolt.turn_secs`."""
TIMER = 4
"""Due in a task: the first of its timers; the next bit is the second."""

ANCHORED = 1
"""Flag: some tuple has a root, so the chunk has roots and edges."""
RAGGED = 2
"""Flag: some tuple has several roots."""
CARRIED = 4
"""Flag: travels over a back edge; every stage passes it on to the sink, which keeps it for the next micro-batch."""
DRAWN = 8
"""Flag: the edges are consecutive outputs of the generator; the chunk has only the start."""
CLEAR = 16
"""Flag: all xors are zero and left out."""
REPORTED = 32
"""Flag: the edges have been reported to the ackers (see `InputLineage.report`); without it the ackers get the chunk's
receipt."""

_FLAGS_OFFSET = 2
_TARGET_OFFSET = 4
_U64 = struct.Struct("<Q")


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


Chunk = tuple[Header, bytes]
"""A chunk with its header, which a process reads once."""


def header_of(kind: Kind, target: int, source: int, sequence: int, size: int) -> Header:
    """Returns the header of a chunk of which there are no bytes."""
    return Header(VERSION, kind, 0, target, source, sequence, size, 0, 0)


Edges = U64Array | EdgeRange
"""Per tuple its edge id."""


def with_header(body: bytes) -> Chunk:
    """Returns a chunk with its header."""
    return read_header(body), body


def is_for_sink(header: Header) -> bool:
    """Returns whether a chunk passes through all later operators."""
    return header.kind in _FOR_SINK or bool(header.flags & CARRIED)


def read_header(body: bytes | memoryview) -> Header:
    """Returns the header of a chunk.

    Raises:
        CheckpointError: the bytes are not a chunk, or one of an unknown version.
    """
    if len(body) < HEADER_BYTES:
        raise CheckpointError(f"a chunk of {len(body)} bytes is shorter than its header of {HEADER_BYTES} bytes")
    header = Header._make(_HEADER.unpack_from(body))
    if header.version != VERSION:
        raise CheckpointError(other_format("a chunk", header.version, VERSION))
    return header


def encode_tuples(
    values: Sequence[Sequence[Any]],
    roots: Roots | None,
    edges: Edges | None,
    *,
    target: int,
    source: int,
    sequence: int,
    stream: int,
    flags: int = 0,
) -> tuple[Chunk, int]:
    """Returns a TUPLES chunk of `values`, all of one stream and so of one length, and its receipt."""
    if isinstance(values, FrozenRows):
        columns: list[list[Any] | FrozenColumn] = [pack_frozen(column) for column in Columns.of(values.kept).columns]
    else:
        columns = list(Columns.of(values).columns)
    payload = pickling.dumps(columns)
    return _join(Kind.TUPLES, payload, len(values), roots, edges, target, source, sequence, stream, flags)


def encode_arrow(
    batch: pa.RecordBatch,
    roots: Roots | None,
    edges: Edges | None,
    *,
    target: int,
    source: int,
    sequence: int,
    stream: int,
    flags: int = 0,
) -> tuple[Chunk, int]:
    """Returns an ARROW chunk of the rows of `batch`, and its receipt."""
    payload = _as_stream(number_texts(batch))
    return _join(Kind.ARROW, payload, batch.num_rows, roots, edges, target, source, sequence, stream, flags)


def _as_stream(batch: pa.RecordBatch, compression: str | None = None) -> bytes:
    sink = pa.BufferOutputStream()
    options = pa.ipc.IpcWriteOptions(compression=compression)
    with pa.ipc.new_stream(sink, batch.schema, options=options) as writer:
        writer.write_batch(batch)
    return bytes(sink.getvalue().to_pybytes())


def _join(
    kind: Kind,
    payload: bytes,
    count: int,
    roots: Roots | None,
    edges: Edges | None,
    target: int,
    source: int,
    sequence: int,
    stream: int,
    flags: int,
) -> tuple[Chunk, int]:
    anchors, extra = b"", 0
    if roots is not None and edges is not None:
        flags |= ANCHORED
        if not isinstance(roots, list):
            anchors = pack_ids(roots)
        elif (packed := pack_steady(roots)) is not None:
            anchors = packed
        else:
            flags |= RAGGED
            anchors = pickling.dumps(roots)
        extra = len(anchors)
        if isinstance(edges, EdgeRange):
            flags |= DRAWN
            anchors += _U64.pack(edges.start)
        else:
            anchors += edges.tobytes()
    header = Header(VERSION, int(kind), flags, target, source, sequence, count, stream, extra)
    body = b"".join((_HEADER.pack(*header), anchors, payload))
    return (header, body), receipt(header, body)


def _anchors_end(header: Header) -> int:
    edges = _U64.size if header.flags & DRAWN else 8 * header.size
    return HEADER_BYTES + header.extra + edges


def receipt(header: Header, body: bytes | memoryview) -> int:
    """Returns the receipt of a TUPLES or ARROW chunk, a u64; 0 if it is not reported to the ackers."""
    if not header.flags & ANCHORED or header.flags & REPORTED:
        return 0
    return mix64(header.size << 32 | crc32(memoryview(body)[: _anchors_end(header)]))


def read_lineage(header: Header, body: bytes | memoryview) -> tuple[PackedLineage | None, memoryview, int]:
    """Returns lineage, payload and receipt of a TUPLES or ARROW chunk; no lineage if no tuple is anchored.

    Raises:
        CheckpointError: the chunk is cut short; also when roots or edges are asked for.
    """
    view = memoryview(body)
    if not header.flags & ANCHORED:
        return None, view[HEADER_BYTES:], 0
    end = _anchors_end(header)
    if len(view) < end:
        raise CheckpointError(f"a chunk of {header.size} anchored tuples has {len(view)} bytes, not {end} or more")
    packed, rest = view[HEADER_BYTES : HEADER_BYTES + header.extra], view[HEADER_BYTES + header.extra : end]

    def roots() -> Roots:
        if header.flags & RAGGED:
            listed: list[Any] = pickling.loads(packed)
            return listed
        if header.size <= FEW and (few := unpack_steady(packed, header.size)) is not None:
            return few
        return unpack_ids(packed, header.size)[0]

    def edges() -> U64Array:
        if header.flags & DRAWN:
            return EdgeRange(_U64.unpack(rest)[0], header.size).ids()
        return np.frombuffer(rest, np.uint64)

    lineage = PackedLineage(roots, edges, reported=bool(header.flags & REPORTED))
    return lineage, view[end:], receipt(header, view)


def read_rows(header: Header, payload: memoryview) -> Columns | FrozenRows:
    """Returns the values of a TUPLES chunk."""
    return _rows(header, pickling.loads(payload))


def _rows(header: Header, packed: list[list[Any] | FrozenColumn]) -> Columns | FrozenRows:
    rows = Columns([unpack_frozen(column) for column in packed], header.size)
    return FrozenRows(rows) if any(isinstance(column, tuple) for column in packed) else rows


def read_rows_as_batch(header: Header, payload: memoryview, names: Iterable[str]) -> pa.RecordBatch:
    """Returns the values of a TUPLES chunk as a record batch.

    Raises:
        pyarrow.ArrowInvalid: the values of a column have no common Arrow type.
    """
    columns = Columns.of(read_rows(header, payload)).columns
    return pa.RecordBatch.from_arrays([pa.array(column) for column in columns], names=list(names))


def read_batch(payload: memoryview) -> pa.RecordBatch:
    """Returns the record batch of an ARROW chunk."""
    with pa.ipc.open_stream(pa.py_buffer(payload)) as reader:
        return spell_texts(reader.read_next_batch())


def encode_acks(
    roots: U64Array,
    xors: U64Array,
    marks: NDArray[np.uint8],
    *,
    target: int,
    source: int,
    clock: int = 0,
    receipts: int = 0,
) -> bytes:
    """Returns an ACKS chunk.

    Args:
        roots: what something happened to.
        xors: runs parallel to it, as `marks`.
        marks: of the acker.
        target: the acker's task.
        source: the spout's task, or -1.
        clock: the time in ms at which the roots in it were emitted, if any was.
        receipts: of the chunks that were sent and those that were executed, all XORed.
    """
    clear = not np.count_nonzero(xors)
    header = _HEADER.pack(VERSION, Kind.ACKS, CLEAR if clear else 0, target, source, clock, len(roots), 0, 0)
    return b"".join((header, pack_ids(roots), _U64.pack(receipts), b"" if clear else xors.tobytes(), pack_marks(marks)))


def encode_steady_acks(roots: range, mark: int, *, target: int, source: int, clock: int, receipts: int) -> bytes:
    """Returns an ACKS chunk of roots that all have one mark and no XOR; see `encode_acks`."""
    header = _HEADER.pack(VERSION, Kind.ACKS, CLEAR, target, source, clock, len(roots), 0, 0)
    return b"".join((header, pack_range(roots), _U64.pack(receipts), equal_marks(mark) if roots else b""))


def read_acks(header: Header, body: bytes | memoryview) -> tuple[U64Array, U64Array, NDArray[np.uint8], int]:
    """Returns (roots, xors, marks, receipts) of an ACKS chunk."""
    count = header.size
    roots, view = unpack_ids(memoryview(body)[HEADER_BYTES:], count)
    width = 0 if header.flags & CLEAR else 8 * count
    if len(view) < _U64.size + width:
        raise CheckpointError(f"a chunk with {count} roots is cut short: {len(view)} bytes are left for their XORs")
    (receipts,), view = _U64.unpack_from(view), view[_U64.size :]
    xors = np.frombuffer(view[:width], np.uint64) if width else np.zeros(count, np.uint64)
    marks, rest = unpack_marks(view[width:], count)
    _check_end(header, rest)
    return roots, xors, marks, receipts


def read_few_acks(header: Header, body: bytes | memoryview, mark: int) -> tuple[list[int], int] | None:
    """Returns (roots, receipts) of an ACKS chunk of a few steady roots, all with this mark and no XOR; None of others.

    Raises:
        CheckpointError: the chunk is cut short.
    """
    count, view = header.size, memoryview(body)
    if not count:
        return [], _U64.unpack_from(view, HEADER_BYTES)[0]
    if count > FEW or not header.flags & CLEAR:
        return None
    roots = unpack_steady(view[HEADER_BYTES:], count)
    if roots is None:
        return None
    (receipts,) = _U64.unpack_from(view, HEADER_BYTES + STEADY_BYTES)
    return (roots, receipts) if body[HEADER_BYTES + STEADY_BYTES + _U64.size :] == equal_marks(mark) else None


def _check_end(header: Header, rest: memoryview) -> None:
    if len(rest):
        raise CheckpointError(f"a chunk with {header.size} roots has {len(rest)} extra bytes")


def encode_outcome(roots: U64Array, codes: NDArray[np.uint8], *, source: int) -> bytes:
    """Returns an OUTCOME chunk of an acker task."""
    runs = Runs.of(roots, codes)
    header = _HEADER.pack(VERSION, Kind.OUTCOME, 0, -1, source, len(roots), len(runs.firsts), 0, 0)
    return header + pack_runs(runs)


def read_runs(header: Header, body: bytes | memoryview) -> Runs:
    """Returns the roots of an OUTCOME chunk with their outcomes, as runs."""
    runs, rest = unpack_runs(memoryview(body)[HEADER_BYTES:], header.size, header.sequence)
    _check_end(header, rest)
    return runs


def read_outcome(header: Header, body: bytes | memoryview) -> tuple[U64Array, NDArray[np.uint8]]:
    """Returns (roots, codes) of an OUTCOME chunk."""
    runs = read_runs(header, body)
    return runs.roots(), runs.each_code()


def encode_native_rows(roots: U64Array, batch: pa.RecordBatch, *, target: int | None) -> bytes:
    """Returns a ROWS chunk for an acker's task, or a LEFT chunk for the sink where there is no target.

    Rows are compressed, as they pass each exchange on the way to the ackers, and most are never read.
    """
    kind, task = (Kind.LEFT, -1) if target is None else (Kind.ROWS, target)
    packed = pack_ids(roots)
    header = _HEADER.pack(VERSION, kind, 0, task, -1, 0, len(roots), 0, len(packed))
    return b"".join((header, packed, _as_stream(batch, "lz4")))


def read_native_roots(header: Header, body: bytes | memoryview) -> tuple[U64Array, memoryview]:
    """Returns the roots of a ROWS or LEFT chunk, and its rows as `read_batch` takes them."""
    return unpack_ids(memoryview(body)[HEADER_BYTES:], header.size)


def encode_position(position: Any, *, source: int) -> bytes:
    """Returns a READ chunk for the sink; `source` is the native spout's task."""
    return _HEADER.pack(VERSION, Kind.READ, 0, -1, source, 0, 1, 0, 0) + pickling.dumps(position)


def read_position(body: bytes | memoryview) -> Any:
    """Returns the position of a READ chunk."""
    return pickling.loads(memoryview(body)[HEADER_BYTES:])


def encode_clock(clock: int, due: int, *, target: int) -> bytes:
    """Returns a CLOCK chunk: the micro-batch's time in ms, and what is due in the target: `TICK`, `TURN`, `TIMER`."""
    return _HEADER.pack(VERSION, Kind.CLOCK, 0, target, -1, clock, due, 0, 0)


def encode_report(records: Sequence[Any], *, source: int) -> bytes:
    """Returns a REPORT chunk for the sink."""
    header = _HEADER.pack(VERSION, Kind.REPORT, 0, -1, source, 0, len(records), 0, 0)
    return header + pickling.dumps(list(records))


def read_report(body: bytes | memoryview) -> list[Any]:
    """Returns the records of a REPORT chunk."""
    records: list[Any] = pickling.loads(memoryview(body)[HEADER_BYTES:])
    return records


def encode_written(written: bytes, *, source: int, sequence: int) -> bytes:
    """Returns a WRITTEN chunk of a task."""
    return _HEADER.pack(VERSION, Kind.WRITTEN, 0, -1, source, sequence, 1, 0, 0) + written


def read_written(body: bytes) -> bytes:
    """Returns what a WRITTEN chunk holds."""
    return body[HEADER_BYTES:]


def with_target(body: bytes, target: int) -> Chunk:
    """Returns the chunk for another task, with its header."""
    header = read_header(body)._replace(target=target)
    return header, body[:_TARGET_OFFSET] + target.to_bytes(4, "little", signed=True) + body[_TARGET_OFFSET + 4 :]


def without_flag(body: bytes, flag: int) -> bytes:
    """Returns the chunk with `flag` cleared."""
    flags = int.from_bytes(body[_FLAGS_OFFSET : _FLAGS_OFFSET + 2], "little") & ~flag
    return body[:_FLAGS_OFFSET] + flags.to_bytes(2, "little") + body[_FLAGS_OFFSET + 2 :]
