"""Formats of files: what tuples become in them, and the folders of partitions."""

from __future__ import annotations

import csv
import datetime
import io
import json
import math
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal, Protocol, get_args

from storm_on_spark.api.errors import ConfigError
from storm_on_spark.connectors.sinks.columns import Columns

FileFormat = Literal["json", "csv", "parquet"]

_NO_VALUE: Final = "__HIVE_DEFAULT_PARTITION__"
"""What the folder of rows without a value is called, in Hive and in Spark."""
_ESCAPED: Final = re.compile(r"[\x00-\x1f\"#%'*/:=?\\\x7f{\[\]^]")
"""What Spark writes as %XX in the name of a partition's folder (`ExternalCatalogUtils`)."""


class Encoder(Protocol):
    """Makes files of one format."""

    def item(self, values: Sequence[Any]) -> Any:
        """Returns what stands for a tuple until its file is made; it can be pickled.

        Raises:
            ValueError: the format has no such value.
        """

    def encode(self, items: Sequence[Any]) -> bytes:
        """Returns a file."""


def encoder(format_: FileFormat, fields: Sequence[str], types: Mapping[str, str] | None) -> Encoder:
    """Returns the encoder of a format.

    Args:
        format_: its name.
        fields: names, in order.
        types: Spark SQL's types of these fields, where they were given.

    Raises:
        ConfigError: there is no such format, or it takes no types, or needs them.
    """
    if format_ not in get_args(FileFormat):
        raise ConfigError(
            f"a format is one of {', '.join(get_args(FileFormat))} (given {format_!r:.100})", key="format"
        )
    if (format_ == "parquet") != (types is not None):
        what = "types, such as {'word': 'string'}" if types is None else "names: their values have types already"
        raise ConfigError(f"the fields of {format_} files are given as {what}", key="fields")
    if types is not None:
        return _Parquet({name: types[name] for name in fields})
    return _Json(fields) if format_ == "json" else _Csv(fields)


def partition_folder(names: Sequence[str], values: Sequence[Any]) -> str:
    """Returns the path of a partition, as Spark and Hive name it.

    Raises:
        ValueError: there is no name for a value.

    Example:
        >>> partition_folder(["day", "word"], [datetime.date(2026, 2, 28), "a/b"])
        'day=2026-02-28/word=a%2Fb'
    """
    return "/".join(f"{_escaped(name)}={_partition_text(value)}" for name, value in zip(names, values, strict=True))


def _partition_text(value: Any) -> str:
    if value is None or value == "":
        return _NO_VALUE
    if isinstance(value, bool):
        return str(value).lower()
    if not isinstance(value, str | int | datetime.date) or isinstance(value, datetime.datetime):
        raise ValueError(f"partitions are by text, whole numbers, booleans, dates and None (given {value!r:.200})")
    return _escaped(str(value))


def _escaped(text: str) -> str:
    return _ESCAPED.sub(lambda found: f"%{ord(found[0]):02X}", text)


class _Json:
    def __init__(self, fields: Sequence[str]) -> None:
        self._fields = fields

    def item(self, values: Sequence[Any]) -> str:
        try:
            return json.dumps(dict(zip(self._fields, values, strict=True)), ensure_ascii=False, allow_nan=False) + "\n"
        except (TypeError, ValueError) as error:
            raise ValueError(f"a tuple can't be written as JSON: {error} (given {values!r:.200})") from error

    def encode(self, items: Sequence[str]) -> bytes:
        return "".join(items).encode()


class _Csv:
    def __init__(self, fields: Sequence[str]) -> None:
        self._head = _csv_line(fields)

    def item(self, values: Sequence[Any]) -> str:
        for value in values:
            if not isinstance(value, str | int | float | None) or (
                isinstance(value, float) and not math.isfinite(value)
            ):
                raise ValueError(f"CSV takes text, finite numbers, booleans and None (given {value!r:.200})")
        return _csv_line(values)

    def encode(self, items: Sequence[str]) -> bytes:
        return "".join([self._head, *items]).encode()


class _Parquet:
    def __init__(self, types: Mapping[str, str]) -> None:
        self._columns = Columns(types)

    def item(self, values: Sequence[Any]) -> tuple[Any, ...]:
        try:
            self._columns.table([values])
        except (TypeError, ValueError, OverflowError, NotImplementedError) as error:
            raise ValueError(f"a tuple doesn't fit in its columns: {error} (given {values!r:.200})") from error
        return tuple(values)

    def encode(self, items: Sequence[tuple[Any, ...]]) -> bytes:
        import pyarrow.parquet as pq

        file = io.BytesIO()
        pq.write_table(self._columns.table(items), file)
        return file.getvalue()


def _csv_line(values: Sequence[Any]) -> str:
    line = io.StringIO()
    csv.writer(line, lineterminator="\n").writerow(values)
    return line.getvalue()
