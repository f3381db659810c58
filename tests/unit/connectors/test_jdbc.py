"""`JdbcBolt` on a real database, without Spark: each micro-batch once, inserted or replaced, or not at all."""

from __future__ import annotations

import contextlib
import json
import sqlite3
from dataclasses import replace
from functools import partial

import pytest

from storm_on_spark import ConfigError, SetupError, SinkContext
from storm_on_spark.connectors.jdbc import JdbcBolt
from storm_on_spark.connectors.sinks import Columns, RefusedRowError

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
    bolt.write_table(rows_of((None, 1), (None, 2), ("a", 4)), context(3))
    assert held(place) == [("a", 4), ("b", 1), ("c", None), (None, 1), (None, 2)], "None is like no other"


def test_a_micro_batch_that_is_refused_leaves_nothing_and_can_be_written_later(place):
    bolt = opened(place)
    refused = (
        r'the table words refuses a row: IntegrityError: CHECK .*\(given {"word": "b", "count": -1}\).*dead_letters='
    )
    with pytest.raises(RefusedRowError, match=refused):
        bolt.write_table(rows_of(("a", 1), ("b", -1), ("c", -1)), context(1))
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


def letters(folder):
    """Returns rows that were refused, with the micro-batch of each."""
    found = [json.loads(line) for file in sorted(folder.iterdir()) for line in file.read_text().splitlines()]
    return [(each["micro_batch"], tuple(each["row"].values())) for each in found]


def test_a_row_that_the_database_refuses_is_a_dead_letter_and_its_neighbours_are_written_once(place, tmp_path):
    rows = [("w", -1 if number == 577 else number) for number in range(1000)]
    reported = []
    noted = replace(context(1), report=reported.append)
    bolt = opened(place, dead_letters=tmp_path / "refused")
    for _ in range(2):  # the driver died after the commit of the first
        bolt.write_table(rows_of(*rows), noted)
    assert held(place) == sorted((row for row in rows if row[1] >= 0), key=str)
    assert letters(tmp_path / "refused") == [(1, ("w", -1))]
    assert reported[0].startswith("the table words refuses 1 row: IntegrityError: CHECK constraint failed")
    assert '(given {"word": "w", "count": -1}). See ' in reported[0]
    assert reported[1] == reported[0], "the driver that was told first is gone"


def test_a_driver_that_dies_before_the_commit_leaves_one_dead_letter(place, tmp_path):
    class Dying(sqlite3.Connection):
        def commit(self):
            if list((tmp_path / "refused").iterdir()):
                raise KeyboardInterrupt
            super().commit()

    rows = rows_of(("a", 1), ("b", -1), ("c", 3))
    dying = JdbcBolt(
        partial(sqlite3.connect, place, factory=Dying), "words", COLUMNS, dead_letters=tmp_path / "refused"
    )
    dying.open_sink(context(-1))
    with pytest.raises(KeyboardInterrupt):
        dying.write_table(rows, context(1))
    assert (held(place), letters(tmp_path / "refused")) == ([], [(1, ("b", -1))])
    opened(place, dead_letters=tmp_path / "refused").write_table(rows, context(1))
    assert (held(place), letters(tmp_path / "refused")) == ([("a", 1), ("c", 3)], [(1, ("b", -1))])


def test_a_row_that_is_taken_when_its_micro_batch_is_executed_again_is_no_dead_letter(place, tmp_path):
    test_a_driver_that_dies_before_the_commit_leaves_one_dead_letter(place, tmp_path)
    with contextlib.closing(sqlite3.connect(place)) as connection:
        connection.executescript("DELETE FROM storm_written; DROP TABLE words; CREATE TABLE words (word, count)")
    opened(place, dead_letters=tmp_path / "refused").write_table(rows_of(("b", -1)), context(1))
    assert (held(place), letters(tmp_path / "refused")) == ([("b", -1)], [])


def test_rows_with_equal_keys_are_refused_one_by_one_and_the_last_that_fits_stays(place, tmp_path):
    bolt = opened(place, keys=["word"], dead_letters=tmp_path / "refused")
    bolt.write_table(rows_of(("a", 1), ("b", 1), ("c", 1)), context(1))
    bolt.write_table(rows_of(("a", 2), ("a", 3), ("a", -1), ("b", -2), ("a", -3), ("c", 2)), context(2))
    assert held(place) == [("a", 3), ("b", 1), ("c", 2)]
    assert sorted(letters(tmp_path / "refused")) == [(2, ("a", -3)), (2, ("a", -1)), (2, ("b", -2))]


def test_constraints_among_the_rows_of_a_micro_batch_refuse_the_later_ones(place, tmp_path):
    with contextlib.closing(sqlite3.connect(place)) as connection:
        connection.execute("CREATE UNIQUE INDEX one ON words (word)")
    bolt = opened(place, dead_letters=tmp_path / "refused")
    bolt.write_table(rows_of(("a", 1), ("b", 1), ("a", 2), ("c", 1)), context(1))
    assert held(place) == [("a", 1), ("b", 1), ("c", 1)]
    assert letters(tmp_path / "refused") == [(1, ("a", 2))]


def test_another_history_does_not_overwrite_dead_letters(place, tmp_path):
    for plan in (1, 2):
        with contextlib.closing(sqlite3.connect(place)) as connection, contextlib.suppress(sqlite3.Error):
            connection.executescript("DELETE FROM storm_written")  # as from a backup
        opened(place, dead_letters=tmp_path / "refused").write_table(
            rows_of((str(plan), -1)), replace(context(1), plan=plan)
        )
    assert sorted(letters(tmp_path / "refused")) == [(1, ("1", -1)), (1, ("2", -1))]


def test_a_database_that_fails_makes_no_dead_letters(place, tmp_path):
    bolt = opened(place, dead_letters=tmp_path / "refused")
    with contextlib.closing(sqlite3.connect(place)) as other:
        other.execute("DROP TABLE words")
    with pytest.raises(sqlite3.OperationalError, match="no such table"):
        bolt.write_table(rows_of(("a", 1)), context(1))
    assert letters(tmp_path / "refused") == []


class Silent:
    """A connection that commits by itself and doesn't say so, as JayDeBeApi's does unless its Java object is told."""

    def __init__(self, place):
        self._connection = sqlite3.connect(place, isolation_level=None)
        self.cursor, self.close = self._connection.cursor, self._connection.close
        self.commit, self.rollback = self._connection.commit, self._connection.rollback


@pytest.mark.parametrize(
    ("connect", "table", "message"),
    [
        (sqlite3.connect, "others", "OperationalError: no such table: others"),
        (partial(sqlite3.connect, isolation_level=None), "words", "commits by itself"),
        (Silent, "words", "commits by itself"),
    ],
)
def test_what_cannot_be_written_is_refused_at_the_start(place, connect, table, message):
    with pytest.raises(SetupError, match=message):
        JdbcBolt(partial(connect, place), table, COLUMNS).open_sink(context(-1))


def test_what_is_tried_at_the_start_leaves_nothing(place):
    opened(place)
    with contextlib.suppress(SetupError):
        JdbcBolt(partial(Silent, place), "words", COLUMNS).open_sink(context(-1))
    with contextlib.closing(sqlite3.connect(place)) as connection:
        assert connection.execute("SELECT * FROM storm_written").fetchall() == []


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
