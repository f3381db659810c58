"""A step of an instance as a Parquet file: a row for each message, and the rest of the record in the file's footer.

A payload stands as the text that it is, or as JSON. Values that JSON does not have stand as Python prints them, for
readers of the table; the footer has them exactly. It is a pickle, sealed by the cluster's key together with a checksum
of the rows, so who may only write to the store can't have containers execute Python.
"""

from __future__ import annotations

import base64
import datetime
import hashlib
import io
import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from storm_on_spark.api.errors import CheckpointError
from storm_on_spark.xd.bus.journal import Message, Record
from storm_on_spark.xd.bus.port import BusError
from storm_on_spark.xd.bus.seals import Seals

if TYPE_CHECKING:
    import pyarrow as pa

_RECORD: Final = b"xd.record.2"
_UNSEALED: Final = b"xd.record.1"
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


def to_parquet(record: Record, instance: int, step: int, now: float, seals: Seals, name: str) -> bytes:
    """Returns a record as a Parquet file.

    Args:
        record: the record.
        instance: the number of the instance.
        step: the number of the record.
        now: seconds since 1970.
        seals: of the cluster.
        name: of the step in the whole store, which it is sealed for.

    Example:
        >>> record, seals = Record((Message({"a": 1}, {}), Message((1,), {})), {"1": (2, 0)}), Seals(bytes(32))
        >>> data = to_parquet(record, 1, 7, 0, seals, "rate/1/7")
        >>> [message.payload for message in of_parquet(data, seals, "rate/1/7", "here").messages]
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
    footer = {_RECORD: base64.b64encode(seals.sealed(name, (replace(record, messages=()), others, checksum)))}
    file = io.BytesIO()
    with pq.ParquetWriter(file, schema, store_schema=False) as writer:
        writer.write_table(table)
        writer.add_key_value_metadata(footer)
    return file.getvalue()


def of_parquet(data: bytes, seals: Seals, name: str, where: str) -> Record:
    """Returns the record of a Parquet file.

    Args:
        data: of the file.
        seals: of the cluster.
        name: see `to_parquet`.
        where: it is, for errors.

    Raises:
        CheckpointError: the file is damaged, is none of the bus, or no container of this cluster wrote it.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        file = pq.ParquetFile(io.BytesIO(data))
        footers = file.metadata.metadata or {}
        if _UNSEALED in footers and _RECORD not in footers:
            raise CheckpointError(
                f"the record {where} is of an older release, which did not seal records: it is not read. Destroy the "
                "stream, and create it again"
            )
        footer = base64.b64decode(footers[_RECORD], validate=True)
        # Without threads of Arrow: this one would wait for them anyway.
        rows = file.read(list(_READ), use_threads=False).to_pydict()
        found = [rows[name] for name in _READ]
    except (pa.ArrowException, OSError, KeyError, ValueError) as error:
        raise CheckpointError(f"the record {where} is damaged: {error!r:.200}") from error
    try:
        record, others, checksum = seals.opened(name, footer)
    except BusError as error:
        raise CheckpointError(f"the record {where} is damaged, or no container of this cluster wrote it") from error
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


def _checksum(*columns: list[Any]) -> bytes:
    return hashlib.sha256(json.dumps(columns).encode()).digest()


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
