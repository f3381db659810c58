"""Columns of texts in Arrow: as numbers where they repeat."""

from __future__ import annotations

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from storm_on_spark.runtime.codec.arrow_texts import number_texts, spell_texts

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
