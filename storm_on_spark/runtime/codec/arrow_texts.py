"""Arrow columns of texts that repeat, as numbers.

A record batch travels with each of its different texts once and their numbers as often as they occur. A column that a
fields grouping has looked at is numbered already, so that sharing out its rows copies numbers instead of texts.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

_NUMBERED = b"storm.numbered"
"""In the metadata of an Arrow field: its texts are numbers, and were no dictionary before."""
_LEAST = 256
"""The shortest column that is checked for repeated texts."""
_SAMPLE = 4096
"""The number of texts of a longer column that are checked first."""
_MOST = 1 << 16
"""The number of different texts that a `uint16` can number."""


def is_text(kind: pa.DataType) -> bool:
    """Returns whether columns of a type are texts that can be numbered."""
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def with_numbers(batch: pa.RecordBatch, position: int, encoded: pa.DictionaryArray) -> pa.RecordBatch:
    """Returns a record batch with a column as numbers, if that saves bytes.

    Args:
        batch: the batch.
        position: of the column.
        encoded: the column, encoded.
    """
    texts, field = encoded.dictionary, batch.schema.field(position)
    if len(encoded) < _LEAST or 2 * len(texts) > len(encoded) or len(texts) == texts.null_count:
        return batch
    if texts.null_count or not is_text(field.type):
        return batch  # batches whose texts have a null among them can't be joined
    field = field.with_type(encoded.type).with_metadata({**(field.metadata or {}), _NUMBERED: b""})
    return batch.set_column(position, field, encoded)


def number_texts(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Returns a record batch with its columns of texts that repeat as few bytes, for `spell_texts`."""
    for position, field in enumerate(batch.schema):
        if not _is_numbered(field):
            column = batch.column(position)
            if len(column) < _LEAST or not is_text(field.type) or not _repeats(column):
                continue
            batch = with_numbers(batch, position, column.dictionary_encode())
        if _is_numbered(batch.schema.field(position)):
            batch = _with_used(batch, position)
    return batch


def spell_texts(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Returns the record batch that `number_texts` was given."""
    for position, field in enumerate(batch.schema):
        if _is_numbered(field):
            batch = _spelled(batch, position)
    return batch


def _is_numbered(field: pa.Field) -> bool:
    return field.metadata is not None and _NUMBERED in field.metadata


def _repeats(column: pa.Array) -> bool:
    """Whether texts are likely to repeat, judged by a sample."""
    if len(column) <= _SAMPLE:
        return True
    return 4 * len(column.slice(0, _SAMPLE).dictionary_encode().dictionary) <= 3 * _SAMPLE


def _with_used(batch: pa.RecordBatch, position: int) -> pa.RecordBatch:
    """Returns the batch with only those texts that its numbers name, or all spelled where few repeat."""
    column, field = batch.column(position), batch.schema.field(position)
    missing = column.is_null().to_numpy(zero_copy_only=False) if column.null_count else None
    numbers, texts = column.indices.fill_null(0).to_numpy(), column.dictionary
    used = np.flatnonzero(np.bincount(numbers, minlength=len(texts)))
    if 2 * len(used) > len(numbers):
        return _spelled(batch, position)
    own = np.empty(len(texts), np.uint8 if len(used) <= 1 << 8 else np.uint16 if len(used) <= _MOST else np.int32)
    own[used] = np.arange(len(used))
    if len(used) < len(texts):
        texts = texts.take(pa.array(used))
    column = pa.DictionaryArray.from_arrays(pa.array(own[numbers], mask=missing), texts)
    return batch.set_column(position, field.with_type(column.type), column)


def _spelled(batch: pa.RecordBatch, position: int) -> pa.RecordBatch:
    column, field = batch.column(position), batch.schema.field(position)
    metadata = {key: value for key, value in field.metadata.items() if key != _NUMBERED}
    column = column.dictionary.take(column.indices)
    return batch.set_column(position, field.with_type(column.type).with_metadata(metadata), column)
