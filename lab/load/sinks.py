"""Bolts that write into tables and files, beside the load's own sink: each must hold every row, and hold it once.

Their output stays whatever happens to the checkpoint, as on another machine's disk.
"""

from __future__ import annotations

import contextlib
import json
import sqlite3
from collections import Counter
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import DeltaTable

from lab.load.ledger import Records
from storm_on_spark import TopologyBuilder
from storm_on_spark.connectors.delta import DeltaBolt
from storm_on_spark.connectors.files import FileBolt
from storm_on_spark.connectors.jdbc import JdbcBolt
from storm_on_spark.connectors.pipeline.stream import StreamBolt

_FIELDS = ("number", "attempt", "partner")
_TYPES = dict.fromkeys(_FIELDS, "long")

Row = tuple[int, ...]


def add(builder: TopologyBuilder, behind: str, folder: Path) -> None:
    """Adds a bolt of each kind after the component that emits the rows."""
    folder.mkdir(exist_ok=True)
    connect = partial(sqlite3.connect, folder / "rows.db")
    with contextlib.closing(connect()) as connection:
        connection.execute("CREATE TABLE IF NOT EXISTS rows (number INTEGER, attempt INTEGER, partner INTEGER)")
    bolts: dict[str, Any] = {
        "delta": DeltaBolt(folder / "delta", _TYPES),
        "jdbc": JdbcBolt(connect, "rows", _TYPES),
        "files": FileBolt(folder / "files", list(_FIELDS)),
        "stream": StreamBolt(folder / "stream", _TYPES),
    }
    for name, bolt in bolts.items():
        builder.set_bolt(name, bolt).shuffle_grouping(behind)


def check(folder: Path, sink: Records) -> list[str]:
    """Returns a sentence for each kind that does not hold every row of the load's own sink, and each once."""
    expected = Counter(tuple(row) for row in np.unique(sink[list(_FIELDS)]).tolist())
    problems = []
    for name, read in _READERS.items():
        found = Counter(read(folder))
        lost, more = expected - found, found - expected
        for what, rows in (("lost", lost), ("there without a reason, or twice", more)):
            if rows:
                problems.append(f"{name}: {rows.total()} rows {what}, such as {next(iter(rows))}")
    return problems


def _delta(folder: Path) -> Iterable[Row]:
    return _rows(DeltaTable(folder / "delta").to_pyarrow_table(columns=list(_FIELDS)))


def _jdbc(folder: Path) -> Iterable[Row]:
    with contextlib.closing(sqlite3.connect(folder / "rows.db")) as connection:
        return connection.execute("SELECT number, attempt, partner FROM rows").fetchall()


def _files(folder: Path) -> Iterable[Row]:
    lines = [line for file in (folder / "files").glob("*.json") for line in file.read_text("utf-8").split("\n")]
    return [tuple(json.loads(line)[field] for field in _FIELDS) for line in lines if line]


def _stream(folder: Path) -> Iterable[Row]:
    return [row for file in (folder / "stream").glob("*.parquet") for row in _rows(pq.read_table(file))]


def _rows(table: pa.Table) -> list[Row]:
    return [tuple(row[field] for field in _FIELDS) for row in table.to_pylist()]


_READERS: dict[str, Callable[[Path], Iterable[Row]]] = {
    "delta": _delta,
    "jdbc": _jdbc,
    "files": _files,
    "stream": _stream,
}
