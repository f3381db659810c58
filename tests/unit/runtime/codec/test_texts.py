"""Columns of texts: joined, or in Arrow as numbers where they repeat."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from storm_on_spark.runtime.codec.arrow_texts import number_texts, spell_texts
from storm_on_spark.runtime.codec.texts import (
    pack_column,
    unpack_column,
    unpack_to_arrow,
)
from storm_on_spark.runtime.values import pickling


class Text(str):
    """Compares as a text, and is another type."""


ANY_TEXT = st.text(st.characters(blacklist_categories=()), max_size=4)
VALUES = st.one_of(ANY_TEXT, ANY_TEXT.map(Text), st.integers(), st.none(), st.booleans(), st.floats(allow_nan=False))


@given(st.lists(st.lists(VALUES, max_size=6), min_size=1, max_size=4), st.sampled_from([1, 60, 400]))
def test_what_is_unpacked_is_what_was_packed_with_its_types(columns: list[list[Any]], times: int) -> None:
    for column in (values * times for values in columns):
        packed = pack_column(column)
        read = unpack_column(packed)
        assert read == column
        assert list(map(type, read)) == list(map(type, column))


@given(
    st.lists(st.lists(st.text(max_size=4), min_size=1, max_size=6), min_size=1, max_size=4), st.sampled_from([1, 400])
)
def test_arrow_gets_the_same_texts(columns: list[list[str]], times: int) -> None:
    for column in (values * times for values in columns):
        array = unpack_to_arrow(pack_column(column))
        assert array.type == pa.string()
        array.validate(full=True)
        assert array.to_pylist() == column


def test_objects_that_repeat_are_sent_once() -> None:
    words = [f"word{number}" for number in range(1000)]
    column = [words[number * number % 31] for number in range(10_000)]
    data = pickling.dumps(pack_column(column))
    assert len(data) < 3 * len(column)
    read = unpack_column(pickling.loads(data))
    assert read == column
    assert len(set(map(id, read))) == len(set(column))


def test_different_texts_are_joined() -> None:
    column = [f"word{number}" for number in range(10_000)]
    packed = pack_column(column)
    assert isinstance(packed, bytes)
    assert unpack_column(packed) == column


COLUMNS = st.one_of(
    st.lists(st.one_of(st.none(), st.text(max_size=3)), min_size=1, max_size=6).map(lambda v: pa.array(v, pa.string())),
    st.lists(st.text(max_size=3), min_size=1, max_size=6).map(lambda v: pa.array(v, pa.large_string())),
    st.lists(st.text(max_size=3), min_size=1, max_size=6).map(lambda v: pa.array(v).dictionary_encode()),
    st.lists(st.integers(0, 9), min_size=1, max_size=6).map(pa.array),
)


@given(st.lists(COLUMNS, min_size=1, max_size=3), st.sampled_from([1, 7, 300]), st.booleans())
def test_a_record_batch_is_the_same_afterwards(columns: list[pa.Array], times: int, noted: bool) -> None:
    rows = min(map(len, columns))
    whole = [pa.concat_arrays([column[:rows]] * times) for column in columns]
    metadata = {b"unit": b"m"} if noted else None
    fields = [pa.field(f"c{index}", column.type, metadata=metadata) for index, column in enumerate(whole)]
    batch = pa.RecordBatch.from_arrays(whole, schema=pa.schema(fields, {b"of": b"rows"} if noted else None))
    read = spell_texts(number_texts(batch))
    assert read.equals(batch, check_metadata=noted)
    read.validate(full=True)


def test_repeated_texts_make_a_record_batch_small() -> None:
    words = pa.array([f"word{number % 1000}" for number in range(10_000)])
    batch = pa.RecordBatch.from_arrays([words], ["word"])
    assert number_texts(batch).nbytes < batch.nbytes / 3
    unique = pa.RecordBatch.from_arrays([pa.array(map(str, range(1000)))], ["word"])
    assert number_texts(unique).equals(unique)
