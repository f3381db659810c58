"""Columns of texts: joined, or as numbers where they repeat."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from storm_on_spark.api.errors import CheckpointError
from storm_on_spark.runtime.codec.arrow_texts import number_texts, spell_texts
from storm_on_spark.runtime.codec.texts import (
    TextNumbers,
    pack_column,
    unpack_column,
    unpack_to_arrow,
)


class Text(str):
    """Compares as a text, and is another type."""


ANY_TEXT = st.text(st.characters(blacklist_categories=()), max_size=4)
VALUES = st.one_of(ANY_TEXT, ANY_TEXT.map(Text), st.integers(), st.none(), st.booleans(), st.floats(allow_nan=False))


@given(st.lists(st.lists(VALUES, max_size=6), min_size=1, max_size=4), st.sampled_from([1, 60, 400]))
def test_what_is_unpacked_is_what_was_packed_with_its_types(columns: list[list[Any]], times: int) -> None:
    numbers = TextNumbers()
    for column in (values * times for values in columns):
        packed = pack_column(column, numbers)
        read = unpack_column(packed, len(column))
        assert read == column
        assert list(map(type, read)) == list(map(type, column))


@given(
    st.lists(st.lists(st.text(max_size=4), min_size=1, max_size=6), min_size=1, max_size=4), st.sampled_from([1, 400])
)
def test_arrow_gets_the_same_texts(columns: list[list[str]], times: int) -> None:
    numbers = TextNumbers()
    for column in (values * times for values in columns):
        array = unpack_to_arrow(pack_column(column, numbers), len(column))
        assert array.type == pa.string()
        array.validate(full=True)
        assert array.to_pylist() == column


def test_repeated_texts_take_a_byte_or_two_each() -> None:
    few, many = ["storm", "spark"] * 5000, [f"word{number % 1000}" for number in range(10_000)]
    for column, width in ((few, 1), (many, 2)):
        packed = pack_column(column, TextNumbers())
        assert isinstance(packed, tuple)
        assert (packed[1], len(packed[2])) == (width, width * len(column))


def test_equal_texts_are_one_object_for_the_reader() -> None:
    column = [f"word{number % 3}" for number in range(1000)]
    assert len(set(map(id, unpack_column(pack_column(column, TextNumbers()), 1000)))) == 3


def test_a_column_that_does_not_repeat_is_given_up_for_longer_and_longer() -> None:
    numbers, looked = TextNumbers(), []
    for batch in range(100):
        before = len(numbers)
        assert isinstance(pack_column([f"{batch}-{number}" for number in range(300)], numbers), bytes)
        if len(numbers) > before:
            looked.append(batch)
    assert looked == [0, 2, 5, 10, 19, 36, 69]


def test_so_many_different_texts_are_kept_and_no_more() -> None:
    numbers = TextNumbers()
    for batch in range(2000):
        pack_column([f"{batch}-{number % 200}" for number in range(1000)], numbers)
        assert len(numbers) <= 1 << 16
    assert isinstance(pack_column(["a", "b"] * 1000, TextNumbers()), tuple)
    assert isinstance(pack_column(["long" * 100, "b"] * 1000, TextNumbers()), bytes)


@pytest.mark.parametrize("packed", [(b"a\0b", 1, b"\0\1\2"), (b"a\0b", 1, b"\0\1"), (b"a", 2, b"\0\0\1\0\0\0")])
def test_damage_is_noticed(packed: tuple[bytes, int, bytes]) -> None:
    for unpack in (unpack_column, unpack_to_arrow):
        with pytest.raises(CheckpointError, match="a chunk of 3 tuples has"):
            unpack(packed, 3)


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
