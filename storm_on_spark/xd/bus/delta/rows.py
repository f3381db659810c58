"""A step of an instance as a Parquet file: a row for each message, and the rest of the record in the file's footer.

A payload stands as the text that it is, or as JSON. Values that JSON does not have stand as Python prints them, for
readers of the table; the footer has them exactly.
"""

from __future__ import annotations

import base64
import datetime
import io
import json
import pickle
import zlib
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from storm_on_spark.api.errors import CheckpointError
from storm_on_spark.xd.bus.journal import Message, Record

if TYPE_CHECKING:
    import pyarrow as pa

_RECORD: Final = b"xd.record.1"
_READ: Final = ("payload", "headers", "key", "json")


def columns() -> pa.Schema:
    """Returns the columns of a table of the bus."""
    import pyarrow as pa

    return pa.schema(
        [
            ("payload", pa.string()),
            ("headers", pa.string()),
            ("key", pa.int64()),
            ("json", pa.bool_()),
            ("instance", pa.int32()),
            ("step", pa.int64()),
            ("place", pa.int32()),
            ("time", pa.timestamp("us", "UTC")),
        ]
    )


def to_parquet(record: Record, instance: int, step: int, now: float) -> bytes:
    """Returns a record as a Parquet file.

    Args:
        record: the record.
        instance: the number of the instance.
        step: the number of the record.
        now: seconds since 1970.

    Example:
        >>> data = to_parquet(Record((Message({"a": 1}, {}), Message((1,), {})), {"1": (2, 0)}), 1, 7, 0)
        >>> [message.payload for message in of_parquet(data, "here").messages]
        [{'a': 1}, (1,)]
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    payloads: list[str] = []
    headers: list[str] = []
    others: dict[int, Message] = {}
    for place, message in enumerate(record.messages):
        payload = _as_text(message.payload) if isinstance(message.payload, str) else _as_json(message.payload)
        header = _as_json(message.headers) if message.headers else "{}"
        if payload is None or header is None:
            others[place] = message
        payloads.append(ascii(message.payload) if payload is None else payload)
        headers.append(ascii(message.headers) if header is None else header)
    keys = [message.key for message in record.messages]
    coded = [place not in others and not isinstance(each.payload, str) for place, each in enumerate(record.messages)]
    count = len(payloads)
    schema = columns()
    table = pa.table(
        [
            payloads,
            headers,
            keys,
            coded,
            [instance] * count,
            [step] * count,
            range(count),
            [datetime.datetime.fromtimestamp(now, datetime.timezone.utc)] * count,
        ],
        schema=schema,
    )
    checksum = _checksum(payloads, headers, keys, coded)
    body = pickle.dumps((replace(record, messages=()), others, checksum), pickle.HIGHEST_PROTOCOL)
    footer = {_RECORD: base64.b64encode(zlib.crc32(body).to_bytes(4, "big") + body)}
    file = io.BytesIO()
    with pq.ParquetWriter(file, schema, store_schema=False) as writer:
        writer.write_table(table)
        writer.add_key_value_metadata(footer)
    return file.getvalue()


def of_parquet(data: bytes, where: str) -> Record:
    """Returns the record of a Parquet file.

    Args:
        data: of the file.
        where: it is, for errors.

    Raises:
        CheckpointError: the file is damaged, or is none of the bus.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        file = pq.ParquetFile(io.BytesIO(data))
        footer = base64.b64decode((file.metadata.metadata or {})[_RECORD], validate=True)
        if int.from_bytes(footer[:4], "big") != zlib.crc32(footer[4:]):
            raise CheckpointError(f"the record {where} is damaged")
        # Without threads of Arrow: this one would wait for them anyway.
        rows = file.read(list(_READ), use_threads=False).to_pydict()
        found = [rows[name] for name in _READ]
    except (pa.ArrowException, OSError, KeyError, ValueError) as error:
        raise CheckpointError(f"the record {where} is damaged: {error!r:.200}") from error
    record, others, checksum = pickle.loads(footer[4:])  # noqa: S301 # our own file, as trusted as a checkpoint
    assert isinstance(record, Record)
    if _checksum(*found) != checksum:
        raise CheckpointError(f"the record {where} is damaged")
    return replace(
        record,
        messages=tuple(
            others[place]
            if place in others
            else Message(json.loads(payload) if coded else payload, json.loads(headers), key)
            for place, (payload, headers, key, coded) in enumerate(zip(*found, strict=True))
        ),
    )


def _checksum(*columns: list[Any]) -> int:
    return zlib.crc32("\0".join(str(value) for column in columns for value in column).encode())


def _as_text(value: str) -> str | None:
    try:
        value.encode()
    except UnicodeEncodeError:
        return None
    return value


def _as_json(value: Any) -> str | None:
    """Returns a value as JSON; None if JSON gives another one back."""
    try:
        text = json.dumps(value, ensure_ascii=False, allow_nan=False)
        return _as_text(text) if json.loads(text) == value else None
    except (TypeError, ValueError, RecursionError):
        return None
