"""Enrichment: a bolt that adds columns of a table to tuples, and reads the table again every so often."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Final, NamedTuple

from storm_on_spark.api.component import BaseRichBolt
from storm_on_spark.api.errors import ConfigError, SetupError
from storm_on_spark.api.streams.declarer import OutputFieldsDeclarer
from storm_on_spark.api.streams.fields import Fields
from storm_on_spark.api.task.collector import OutputCollector
from storm_on_spark.api.task.context import TopologyContext
from storm_on_spark.api.text.extras import needs_extra
from storm_on_spark.api.tuple import Tuple
from storm_on_spark.connectors.delta.bolt import checked_location

if TYPE_CHECKING:
    import pyarrow as pa
    from deltalake import DeltaTable

_MOST_ROWS: Final = 1_000_000


class _Loaded(NamedTuple):
    version: int
    rows: Mapping[Any, tuple[Any, ...]]


_lock = threading.Lock()
_shared: dict[tuple[Any, ...], _Loaded] = {}
"""The newest version of each Delta table that tasks of this process have read, so that they share its rows."""


class EnrichBolt(BaseRichBolt):
    """Adds columns of a table to each tuple: a join with a table that is small enough for each process's memory.

    A Delta table is read when the task starts, and again where it has a new version: that is looked for at the start of
    a micro-batch, at most every `refresh_secs`. A micro-batch that is executed again may meet a newer version.
    If the table can't be read again, the error is reported and its former rows serve on. A table of Arrow, such as
    `frame.toArrow()` of a DataFrame, is part of the bolt and never changes.

    Args:
        table: the path or URI of a Delta table (extra `delta`), or a `pyarrow.Table`.
        on: the table's column for each field of a tuple that must be equal to it. The table has a key once;
            None is equal to nothing.
        add: the columns that are added.
        fields: the fields of a tuple that are passed on, before those that are added.
        inner: whether tuples without a row in the table are dropped and acked; otherwise they get None.
        refresh_secs: how often a new version is looked for.
        clock: seconds, from anywhere.

    Raises:
        ConfigError: an argument makes no sense.

    Example:
        >>> bolt = EnrichBolt("/data/users", on={"user": "id"}, add=["country"], fields=["user", "page"])
    """

    stateless: ClassVar[bool | None] = True

    def __init__(
        self,
        table: str | os.PathLike[str] | pa.Table,
        *,
        on: Mapping[str, str],
        add: Sequence[str],
        fields: Sequence[str],
        inner: bool = False,
        refresh_secs: float = 60.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._fixed: pa.Table | None = None
        self._location = ""
        if isinstance(table, str | os.PathLike):
            self._location = checked_location(table)
        else:
            self._fixed = _checked_table(table)
        pairs: Any = on
        self._on: dict[str, str] = dict(pairs) if isinstance(pairs, Mapping) else {}
        if not self._on:
            raise ConfigError(f"expected a column for each of one or more fields (given {on!r:.200})", key="on")
        self._add = () if isinstance(add, str) else tuple(add)
        self._fields = () if isinstance(fields, str) else tuple(fields)
        if not self._add or len({*self._fields, *self._add}) < len(self._fields) + len(self._add):
            raise ConfigError(
                f"expected one or more columns to add, and other fields to pass on (given {add!r:.100} and "
                f"{fields!r:.100})",
                key="add",
            )
        secs: Any = refresh_secs
        if not isinstance(secs, int | float) or not secs > 0:
            raise ConfigError(f"expected seconds above 0 (given {refresh_secs!r:.100})", key="refresh_secs")
        self._inner = bool(inner)
        self._refresh_secs = float(refresh_secs)
        self._clock = clock

    def prepare(self, conf: Mapping[str, Any], context: TopologyContext, collector: OutputCollector) -> None:
        """Reads the table.

        Raises:
            SetupError: it can't be read, lacks a column, is too large or has a key twice.
        """
        self._collector = collector
        self._rows = self._read()
        self._due = self._clock() + self._refresh_secs
        self._looked = False

    def execute(self, tup: Tuple) -> None:
        """Emits the tuple with the columns of its row."""
        if tup.is_tick:
            self._collector.ack(tup)
            return
        if not self._looked:
            self._look()
        keys = [tup[field] for field in self._on]
        found = self._rows.get(keys[0] if len(keys) == 1 else tuple(keys))
        if found is not None or not self._inner:
            passed = [tup[field] for field in self._fields]
            self._collector.emit([*passed, *(found or [None] * len(self._add))], anchors=tup)
        self._collector.ack(tup)

    def finish_micro_batch(self) -> None:
        """Lets the next micro-batch look for a new version."""
        self._looked = False

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        """Declares the fields that are passed on, and those that are added."""
        declarer.declare(Fields(*self._fields, *self._add))

    def _look(self) -> None:
        self._looked = True
        now = self._clock()
        if self._fixed is not None or now < self._due:
            return
        self._due = now + self._refresh_secs
        try:
            self._rows = self._read()
        except SetupError as error:
            self._collector.report_error(error)

    def _read(self) -> Mapping[Any, tuple[Any, ...]]:
        if self._fixed is not None:
            return self._by_key(self._fixed)
        try:
            from deltalake import DeltaTable
            from deltalake.exceptions import DeltaError
        except ImportError as error:
            raise SetupError(needs_extra("an EnrichBolt", "delta", "deltalake")) from error
        what = (self._location, tuple(self._on.values()), self._add)
        with _lock:
            try:
                table = DeltaTable(self._location)
                kept = _shared.get(what)
                if kept is None or kept.version != table.version():
                    there = {field.name for field in table.schema().fields}
                    wanted = list(dict.fromkeys([*self._on.values(), *self._add]))
                    columns = [name for name in wanted if name in there]
                    kept = _Loaded(table.version(), self._by_key(_columns_of(table, columns)))
                    _shared[what] = kept
            except (DeltaError, OSError) as error:
                raise SetupError(f"the Delta table {self._location} can't be read: {error}") from error
        return kept.rows

    def _by_key(self, table: pa.Table) -> Mapping[Any, tuple[Any, ...]]:
        name = self._location or "of Arrow"
        for column in (*self._on.values(), *self._add):
            if column not in table.column_names:
                raise SetupError(f"the table {name} has no column {column!r:.100}")
        if table.num_rows > _MOST_ROWS:
            raise SetupError(f"the table {name} has {table.num_rows} rows; {_MOST_ROWS} can be kept in memory")
        key_columns = [table[column].to_pylist() for column in self._on.values()]
        keys = key_columns[0] if len(key_columns) == 1 else zip(*key_columns, strict=True)
        added = zip(*(table[column].to_pylist() for column in self._add), strict=True)
        rows: dict[Any, tuple[Any, ...]] = {}
        for key, row in zip(keys, added, strict=True):
            if key is None or (len(key_columns) > 1 and None in key):
                continue  # equal to nothing, as in SQL
            if rows.setdefault(key, row) is not row:
                raise SetupError(f"the table {name} has the key {key!r:.100} more than once")
        return rows


def _columns_of(table: DeltaTable, names: Sequence[str]) -> pa.Table:
    import pyarrow as pa
    from deltalake import QueryBuilder

    # Not by `to_pyarrow_table`: Python aborted at its end in 7 of 8 trials (deltalake 1.6.6, a script of five lines).
    columns = ", ".join("`" + name.replace("`", "``") + "`" for name in names) or "*"
    return pa.table(QueryBuilder().register("t", table).execute(f"SELECT {columns} FROM t").read_all())  # noqa: S608


def _checked_table(table: Any) -> pa.Table:
    import pyarrow as pa

    if not isinstance(table, pa.Table):
        raise ConfigError(
            f"a table is the path of a Delta table or a pyarrow.Table (given {table!r:.100})", key="table"
        )
    return table
