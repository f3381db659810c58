"""`JdbcBolt` on a real database, without Spark: each micro-batch once, inserted or replaced, or not at all."""

from __future__ import annotations

import contextlib
import sqlite3
from functools import partial

import pytest

from storm_on_spark import ConfigError, SetupError, SinkContext
from storm_on_spark.connectors.columns import Columns
from storm_on_spark.connectors.jdbc import JdbcBolt

COLUMNS = {"word": "string", "count": "long"}


def rows_of(*rows):
    return Columns(COLUMNS).table(rows)


def context(micro_batch, writer="words-1/out"):
    return SinkContext(None, writer, micro_batch)


@pytest.fixture
def place(tmp_path):
    place = str(tmp_path / "words.db")
    with contextlib.closing(sqlite3.connect(place)) as connection:
        connection.execute("CREATE TABLE words (word TEXT, count BIGINT CHECK (count >= 0), note TEXT)")
    return place


def held(place):
    with contextlib.closing(sqlite3.connect(place)) as connection:
        return sorted(connection.execute("SELECT word, count FROM words").fetchall(), key=str)


def opened(place, **options):
    bolt = JdbcBolt(partial(sqlite3.connect, place), "words", COLUMNS, **options)
    bolt.open_sink(context(-1))
    return bolt


def test_a_micro_batch_that_is_written_again_is_there_once(place):
    for micro_batch in (3, 3, 4, 4):
        opened(place).write_table(rows_of((f"of {micro_batch}", 1)), context(micro_batch))
    opened(place).write_table(rows_of(("of another", 1)), context(3, "words-2/out"))
    assert held(place) == [("of 3", 1), ("of 4", 1), ("of another", 1)]


def test_with_keys_the_last_row_of_each_stays(place):
    bolt = opened(place, keys=["word"])
    bolt.write_table(rows_of(("a", 1), ("b", 1)), context(1))
    bolt.write_table(rows_of(("a", 2), ("c", None), ("a", 3)), context(2))
    assert held(place) == [("a", 3), ("b", 1), ("c", None)]


def test_a_micro_batch_that_is_refused_leaves_nothing_and_can_be_written_later(place):
    bolt = opened(place)
    with pytest.raises(sqlite3.IntegrityError):
        bolt.write_table(rows_of(("a", 1), ("b", -1)), context(1))
    assert held(place) == []
    bolt.write_table(rows_of(("a", 1), ("b", 1)), context(1))
    assert held(place) == [("a", 1), ("b", 1)]


def test_a_driver_that_was_replaced_waits_for_its_successor_and_writes_nothing(place):
    bolt = opened(place)
    bolt.write_table(rows_of(("a", 1)), context(1))
    sleeper = JdbcBolt(partial(sqlite3.connect, place, timeout=0), "words", COLUMNS)
    with contextlib.closing(sqlite3.connect(place)) as successor:
        successor.execute("UPDATE storm_written SET micro_batch = 2")
        with pytest.raises(sqlite3.OperationalError, match="locked"):
            sleeper.write_table(rows_of(("b", 1)), context(2))
        successor.execute("INSERT INTO words (word, count) VALUES ('b', 1)")
        successor.commit()
    sleeper.write_table(rows_of(("b", 1)), context(2))
    assert held(place) == [("a", 1), ("b", 1)]


@pytest.mark.parametrize(
    ("connect", "table", "message"),
    [
        (sqlite3.connect, "others", "OperationalError: no such table: others"),
        (partial(sqlite3.connect, isolation_level=None), "words", "commits by itself"),
    ],
)
def test_what_cannot_be_written_is_refused_at_the_start(place, connect, table, message):
    with pytest.raises(SetupError, match=message):
        JdbcBolt(partial(connect, place), table, COLUMNS).open_sink(context(-1))


def test_a_table_that_lacks_a_column_is_refused_at_the_start(place):
    with pytest.raises(SetupError, match="no such column: day"):
        JdbcBolt(partial(sqlite3.connect, place), "words", {"day": "date"}).open_sink(context(-1))


@pytest.mark.parametrize(
    "given",
    [
        {"connect": "words.db"},
        {"table": "words; DROP TABLE words"},
        {"columns": {"a b": "string"}},
        {"keys": ["day"]},
        {"paramstyle": "named"},
    ],
)
def test_arguments_that_make_no_sense_are_refused(given):
    with pytest.raises(ConfigError):
        JdbcBolt(**{"connect": sqlite3.connect, "table": "words", "columns": COLUMNS, **given})
