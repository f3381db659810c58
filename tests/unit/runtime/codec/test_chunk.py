"""Chunks: what goes in comes out, and what is no chunk is refused."""

from __future__ import annotations

import math
import pickle
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lengths import examples
from stormtest import tuples_chunk

from storm_on_spark.api.errors import CheckpointError
from storm_on_spark.runtime.codec import chunk
from storm_on_spark.runtime.codec.chunk import Kind
from storm_on_spark.runtime.codec.packing import pack_ids, pack_marks, unpack_ids, unpack_marks
from storm_on_spark.runtime.tracking.ids import EdgeIds, EdgeRange

U64 = st.integers(0, 2**64 - 1)
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.binary() | st.datetimes(),
    lambda inner: st.lists(inner) | st.tuples(inner) | st.dictionaries(st.text(), inner),
    max_leaves=4,
)


ROOTS_1000 = np.repeat(np.arange(100, dtype=np.uint64), 10)


@st.composite
def tables(draw: st.DrawFn) -> list[tuple[Any, ...]]:
    """Tuples of one stream."""
    width, size = draw(st.integers(0, 3)), draw(st.integers(1, 6))
    return [tuple(draw(values) for _ in range(width)) for _ in range(size)]


@st.composite
def ids(draw: st.DrawFn, size: int) -> Any:
    """Ids as they come, ascending or not."""
    most = draw(st.sampled_from([0, 1, 200, 60_000, 2**31, 2**64 - 1]))
    steps = draw(st.lists(st.integers(0, most), min_size=size, max_size=size))
    return np.cumsum(np.array(steps, np.uint64), dtype=np.uint64) + np.uint64(draw(st.integers(0, 2**62)))


def anchors_for(draw: Any, size: int) -> tuple[Any, Any]:
    kind = draw(st.sampled_from(["none", "plain", "ragged"]))
    if kind == "none":
        return None, None
    edges = np.array(draw(st.lists(U64, min_size=size, max_size=size)), np.uint64)
    if kind == "plain":
        return draw(ids(size)), edges
    root = U64 | st.lists(U64, min_size=2, max_size=3).map(tuple)
    return draw(st.lists(root, min_size=size, max_size=size)), edges


class Word(str):
    """A text that is more than a text."""


def same(one: Any, other: Any) -> bool:
    """Equality under which nan equals nan."""
    return pickle.dumps(one) == pickle.dumps(other) or one == other or repr(one) == repr(other)


def read(body: bytes) -> tuple[chunk.Header, list[Any], Any, Any]:
    header = chunk.read_header(body)
    lineage, payload, _ = chunk.read_lineage(header, memoryview(body))
    found: Any = chunk.read_batch(payload) if header.kind == Kind.ARROW else list(chunk.read_rows(header, payload))
    if lineage is None:
        return header, found, None, None
    roots = lineage.roots.tolist() if isinstance(lineage.roots, np.ndarray) else lineage.roots
    return header, found, roots, lineage.edges.tolist()


heads = st.fixed_dictionaries(
    {
        "target": st.integers(-3, 2**31 - 1),
        "source": st.integers(-1, 2**31 - 1),
        "sequence": st.integers(0, 2**62),
        "stream": st.integers(0, 2**32 - 1),
        "flags": st.sampled_from([0, chunk.CARRIED]),
    }
)


@settings(max_examples=examples(200))
@given(tables(), heads, st.data())
def test_tuples_round_trip(rows: list[tuple[Any, ...]], head: dict[str, int], data: st.DataObject) -> None:
    roots, edges = anchors_for(data.draw, len(rows))
    (known, body), _ = chunk.encode_tuples(rows, roots, edges, **head)
    header, found, got_roots, got_edges = read(body)
    assert known == header, "the header that goes along is that of the bytes"
    assert (header.kind, header.size) == (Kind.TUPLES, len(rows))
    assert {name: getattr(header, name) for name in head if name != "flags"} == {
        name: value for name, value in head.items() if name != "flags"
    }
    assert header.flags & chunk.CARRIED == head["flags"]
    assert same(found, rows)
    assert all(isinstance(row, tuple) for row in found)
    assert got_roots == (roots.tolist() if isinstance(roots, np.ndarray) else roots)
    assert got_edges == (None if edges is None else edges.tolist())


@pytest.mark.parametrize(
    "texts",
    [
        ["a", "", "b"],
        [""],
        ["", ""],
        ["a\0b", "c"],
        ["\0"],
        ["\ud800", "é", "日本"],
        ["a", None],
        ["a", b"a"],
        [Word("a")],
    ],
)
def test_columns_of_texts_round_trip(texts: list[Any]) -> None:
    body = tuples_chunk([(text, 1) for text in texts], None, None, target=1, source=2, sequence=3, stream=4)
    _, found, _, _ = read(body)
    assert found == [(text, 1) for text in texts]
    assert [type(row[0]) for row in found] == [type(text) for text in texts]


def test_edges_that_were_drawn_together_travel_as_their_start() -> None:
    edges = EdgeIds("topology", 1, 7).take(1000)
    body = tuples_chunk([("a",)] * 1000, ROOTS_1000, edges, target=1, source=2, sequence=3, stream=4)
    _, _, roots, found = read(body)
    assert (roots, found) == (ROOTS_1000.tolist(), edges.ids().tolist())
    assert len(body) < 3200, "two bytes a text and its separator, one a root"


@given(st.integers(0, 40).flatmap(ids))
def test_ids_round_trip(values: Any) -> None:
    packed = pack_ids(values)
    found, rest = unpack_ids(memoryview(packed + b"rest"), len(values))
    assert (found.tolist(), bytes(rest)) == (values.tolist(), b"rest")
    for length in range(len(packed)):
        with pytest.raises(CheckpointError, match="cut short"):
            unpack_ids(memoryview(packed)[:length], len(values))


@given(st.lists(st.integers(0, 255)) | st.integers(0, 9).map(lambda n: [3] * n))
def test_marks_round_trip(values: list[int]) -> None:
    packed = pack_marks(np.array(values, np.uint8))
    found, rest = unpack_marks(memoryview(packed + b"rest"), len(values))
    assert (found.tolist(), bytes(rest)) == (values, b"rest")
    for length in range(len(packed)):
        with pytest.raises(CheckpointError, match="cut short"):
            unpack_marks(memoryview(packed)[:length], len(values))


def test_packed_arrays_of_an_unknown_kind_are_refused() -> None:
    with pytest.raises(CheckpointError, match="ids in a chunk are 3 bytes wide; allowed are 0, 1, 2, 4, 8"):
        unpack_ids(memoryview(b"\x03" + bytes(20)), 2)
    with pytest.raises(CheckpointError, match="marks in a chunk are of kind 9; allowed are 0 and 1"):
        unpack_marks(memoryview(b"\x09" + bytes(20)), 2)


columns = [
    pa.array([1, None, 3]),
    pa.array(["a", "ü", None]),
    pa.array(["a", "b", "a"]).dictionary_encode(),
    pa.array([[1], None, []]),
    pa.array([{"a": 1}, None, {"a": 2}]),
    pa.array([1.5, math.nan, None]),
    pa.array([None, None, None]),
]


@pytest.mark.parametrize("column", columns, ids=lambda c: str(c.type))
@given(heads, st.data())
@settings(max_examples=examples(20))
def test_batches_round_trip(column: pa.Array, head: dict[str, int], data: st.DataObject) -> None:
    batch = pa.record_batch([column, pa.array([1, 2, 3])], ["x", "y"]).slice(data.draw(st.integers(0, 2)))
    roots, edges = anchors_for(data.draw, batch.num_rows)
    header, found, got_roots, got_edges = read(chunk.encode_arrow(batch, roots, edges, **head)[0][1])
    assert (header.kind, header.size) == (Kind.ARROW, batch.num_rows)
    assert found.schema == batch.schema
    assert same(found.to_pylist(), batch.to_pylist())
    assert got_roots == (roots.tolist() if isinstance(roots, np.ndarray) else roots)
    assert got_edges == (None if edges is None else edges.tolist())


@given(st.lists(st.tuples(U64, U64, st.integers(0, 255))), st.integers(0, 2**62))
def test_acks_and_outcomes_round_trip(entries: list[tuple[int, int, int]], clock: int) -> None:
    roots = np.array([e[0] for e in entries], np.uint64)
    xors = np.array([e[1] for e in entries], np.uint64)
    marks = np.array([e[2] for e in entries], np.uint8)
    body = chunk.encode_acks(roots, xors, marks, target=7, source=3, clock=clock, receipts=clock)
    header = chunk.read_header(body)
    assert (header.kind, header.target, header.source, header.sequence) == (Kind.ACKS, 7, 3, clock)
    *columns, receipts = chunk.read_acks(header, body)
    assert [part.tolist() for part in columns] == [p.tolist() for p in (roots, xors, marks)]
    assert receipts == clock
    assert len(body) <= chunk.HEADER_BYTES + 17 * len(entries) + 18
    body = chunk.encode_outcome(roots, marks, source=3)
    header = chunk.read_header(body)
    assert (header.kind, header.source) == (Kind.OUTCOME, 3)
    assert [part.tolist() for part in chunk.read_outcome(header, body)] == [roots.tolist(), marks.tolist()]


def test_news_of_many_roots_that_nothing_is_left_of_take_few_bytes() -> None:
    roots, none = np.arange(7, 10_007, dtype=np.uint64), np.zeros(10_000, np.uint64)
    body = chunk.encode_acks(roots, none, np.ones(10_000, np.uint8), **END, receipts=5)
    found_roots, xors, marks, receipts = chunk.read_acks(chunk.read_header(body), body)
    assert (found_roots.tolist(), xors.tolist(), set(marks.tolist()), receipts) == (
        roots.tolist(),
        none.tolist(),
        {1},
        5,
    )
    assert len(body) < 100


@given(st.lists(st.binary(max_size=20), min_size=1, max_size=50), st.sampled_from([None, 7]))
def test_rows_of_a_native_spout_round_trip(values: list[bytes], target: int | None) -> None:
    rows = pa.RecordBatch.from_pydict({"offset": list(range(len(values))), "value": values})
    roots = np.arange(len(values), dtype=np.uint64)
    body = chunk.encode_native_rows(roots, rows, target=target)
    found, payload = chunk.read_native_roots(chunk.read_header(body), body)
    assert found.tolist() == roots.tolist()
    assert chunk.read_batch(payload).equals(rows)


def test_rows_that_ackers_get_take_less_than_what_they_hold() -> None:
    rows = pa.RecordBatch.from_pydict({"topic": ["sentences"] * 1000, "offset": list(range(1000))})
    body = chunk.encode_native_rows(np.arange(1000, dtype=np.uint64), rows, target=7)
    assert len(body) < rows.nbytes / 2


def test_a_receipt_follows_from_all_that_says_whose_tuples_they_are() -> None:
    def receipt(roots: Any = ROOTS, edges: Any = ROOTS, values: str = "ab", flags: int = 0, **head: int) -> int:
        body = tuples_chunk([(v,) for v in values], roots, edges, **{**HEAD, **head}, flags=flags)
        assert chunk.receipt(chunk.read_header(body), body) == chunk.receipt(chunk.read_header(body), bytes(body))
        return chunk.receipt(chunk.read_header(body), body)

    others = [{}, {"roots": ROOTS + 1}, {"roots": [1, (2, 3)]}, {"edges": ROOTS[::-1]}, {"edges": EdgeRange(7, 2)}]
    others += [{name: 9} for name in HEAD]
    found = [receipt(**other) for other in others]
    assert len(set(found)) == len(others)
    assert 0 not in found
    assert receipt(values="cd") == receipt(), "what is in the tuples does not matter: another attempt may differ there"
    assert receipt(flags=chunk.REPORTED) == 0
    assert receipt(roots=None, edges=None) == 0


def test_clocks_and_reports_round_trip() -> None:
    header = chunk.read_header(chunk.encode_clock(123_456, True, target=4))
    assert (header.kind, header.target, header.sequence, header.size) == (Kind.CLOCK, 4, 123_456, 1)
    assert chunk.read_header(chunk.encode_clock(1, False, target=4)).size == 0
    body = chunk.encode_report([("a", 1), {"b": 2}], source=2)
    assert chunk.read_header(body).kind == Kind.REPORT
    assert chunk.read_report(body) == [("a", 1), {"b": 2}]


def test_a_flag_can_be_cleared() -> None:
    roots = np.array([1], np.uint64)
    body = tuples_chunk([("a",)], roots, roots, target=1, source=2, sequence=3, stream=4, flags=chunk.CARRIED)
    plain = chunk.without_flag(body, chunk.CARRIED)
    assert plain == tuples_chunk([("a",)], roots, roots, target=1, source=2, sequence=3, stream=4)


def test_an_unknown_version_is_refused_with_a_sentence() -> None:
    body = chunk.encode_clock(1, True, target=1)
    with pytest.raises(CheckpointError, match="a chunk has format version 9; this release reads 8"):
        chunk.read_header(b"\x09" + body[1:])


def decode(body: bytes) -> Any:
    header = chunk.read_header(body)
    if header.kind == Kind.ACKS:
        return chunk.read_acks(header, body)
    if header.kind == Kind.OUTCOME:
        return chunk.read_outcome(header, body)
    return read(body)


END = {"target": 7, "source": 3}
ROOTS, MARKS = np.array([1, 2], np.uint64), np.array([0, 1], np.uint8)
HEAD = {"target": 1, "source": 2, "sequence": 3, "stream": 4}
WHOLE = [
    chunk.encode_acks(ROOTS, ROOTS, MARKS, target=1, source=1),
    chunk.encode_acks(ROOTS, ROOTS * 0, MARKS, target=1, source=1),
    chunk.encode_outcome(ROOTS, MARKS, source=1),
    tuples_chunk([("a", 1), ("b", 2)], ROOTS, ROOTS, **HEAD),
    tuples_chunk([("a", 1), ("b", 2)], [1, (2, 3)], ROOTS, **HEAD),
    tuples_chunk([("a", 1), ("b", 2)], ROOTS, EdgeRange(7, 2), **HEAD),
    tuples_chunk([("a", 1), ("b", 2)], None, None, **HEAD),
    chunk.encode_arrow(pa.record_batch([[1, 2]], ["x"]), ROOTS, ROOTS, **HEAD)[0][1],
]


REFUSED = (CheckpointError, pickle.UnpicklingError, EOFError, ValueError, OSError, StopIteration, pa.ArrowException)


@pytest.mark.parametrize("body", WHOLE, ids=range(len(WHOLE)))
def test_a_chunk_cut_short_anywhere_is_never_read_as_a_whole_one(body: bytes) -> None:
    whole = decode(body)
    for length in range(len(body)):
        if length < chunk.HEADER_BYTES:
            with pytest.raises(CheckpointError, match=f"a chunk of {length} bytes is shorter than its header"):
                decode(body[:length])
            continue
        try:
            found = decode(body[:length])
        except (
            CheckpointError,
            pickle.UnpicklingError,
            EOFError,
            ValueError,
            pa.ArrowException,
            OSError,
            StopIteration,
        ):
            continue
        # Arrow does not miss the end-of-stream mark.
        assert str(found) == str(whole)
        assert chunk.read_header(body).kind == Kind.ARROW
