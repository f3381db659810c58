"""`DeltaBolt` on real tables, without Spark: each micro-batch once, appended or merged, beside other writers."""

from __future__ import annotations

import pyarrow as pa
import pytest
from deltalake import DeltaTable, Field, write_deltalake
from deltalake.schema import PrimitiveType
from hypothesis import given
from hypothesis import strategies as st

from storm_on_spark import ConfigError, SetupError, SinkContext
from storm_on_spark.connectors import delta
from storm_on_spark.connectors.columns import Columns
from storm_on_spark.connectors.delta import DeltaBolt, DeltaBoltError
from storm_on_spark.connectors.tables import last_by
from storm_on_spark.runtime.values import pickling

COLUMNS = {"word": "string", "count": "long"}


def rows_of(*rows, columns=COLUMNS):
    return Columns(columns).table(rows)


def context(micro_batch, writer="words-1/out"):
    return SinkContext(None, writer, micro_batch)


def held(place):
    return sorted((tuple(row.values()) for row in DeltaTable(place).to_pyarrow_table().to_pylist()), key=str)


@pytest.fixture
def place(tmp_path):
    return str(tmp_path / "a table")


def opened(place, **options):
    bolt = DeltaBolt(place, COLUMNS, **options)
    bolt.open_sink(context(-1))
    return bolt


def test_a_micro_batch_that_is_written_again_is_there_once(place):
    opened(place).write_table(rows_of(("a", 1)), context(3))
    opened(place).write_table(rows_of(("a", 1)), context(3))
    bolt = opened(place)
    bolt.write_table(rows_of(("b", 1)), context(4))
    bolt.write_table(rows_of(("b", 1)), context(4))
    assert held(place) == [("a", 1), ("b", 1)]
    assert DeltaTable(place).version() == 2, "one commit made the table, and one is of each micro-batch"
    opened(place).write_table(rows_of(("c", 1)), context(3, writer="words-2/out"))
    assert held(place) == [("a", 1), ("b", 1), ("c", 1)], "a topology without that checkpoint is another writer"


def test_with_keys_rows_replace_those_with_the_same_also_where_a_key_is_none(place):
    bolt = opened(place, keys=["word"])
    bolt.write_table(rows_of(("a", 1), (None, 1), ("b", 1)), context(1))
    bolt.write_table(rows_of(("a", 2), (None, 2), ("a", 3), ("c", None)), context(2))
    assert held(place) == [("a", 3), ("b", 1), ("c", None), (None, 2)]


def test_a_merge_that_is_executed_again_does_not_undo_what_others_did_since(place):
    opened(place, keys=["word"]).write_table(rows_of(("a", 1)), context(1))
    DeltaTable(place).update(new_values={"count": 99})
    opened(place, keys=["word"]).write_table(rows_of(("a", 1)), context(1))
    assert held(place) == [("a", 99)]


def test_a_driver_that_was_replaced_while_it_slept_writes_nothing(place, monkeypatch):
    sleeper = opened(place)
    commit = sleeper.commit

    def late(target, rows, context):
        opened(place).write_table(rows, context)  # its successor, between the look and the commit
        monkeypatch.setattr(sleeper, "commit", commit)
        commit(target, rows, context)

    monkeypatch.setattr(sleeper, "commit", late)
    sleeper.write_table(rows_of(("a", 1)), context(1))
    assert held(place) == [("a", 1)]


def test_a_merge_beside_another_writer_is_tried_again(place, monkeypatch):
    bolt = opened(place, keys=["word"])
    bolt.write_table(rows_of(("a", 1)), context(1))
    commit, attempts = bolt.commit, []

    def disturbed(target, rows, context):
        if not attempts:
            DeltaTable(place).update(new_values={"count": 50})
        attempts.append(target.version())
        commit(target, rows, context)

    monkeypatch.setattr(bolt, "commit", disturbed)
    monkeypatch.setattr(delta.time, "sleep", lambda secs: None)
    bolt.write_table(rows_of(("a", 2)), context(2))
    assert held(place) == [("a", 2)]
    assert len(attempts) == 2


def test_a_merge_outlasts_a_writer_that_is_faster_for_a_while(place, monkeypatch):
    bolt = opened(place, keys=["word"])
    bolt.write_table(rows_of(("a", 1)), context(1))
    commit, attempts = bolt.commit, []

    def overtaken(target, rows, context):
        attempts.append(target.version())
        if len(attempts) <= 30:
            write_deltalake(place, rows_of((f"other{len(attempts)}", 0)), mode="append")
        commit(target, rows, context)

    monkeypatch.setattr(bolt, "commit", overtaken)
    monkeypatch.setattr(delta.time, "sleep", lambda secs: None)
    bolt.write_table(rows_of(("a", 2)), context(2))
    assert len(attempts) == 31
    assert attempts == sorted(set(attempts)), "each on top of what the other had written"
    assert held(place)[0] == ("a", 2)
    assert len(held(place)) == 31


def test_a_merge_beside_a_writer_that_is_always_faster_ends_with_what_to_do(place, monkeypatch):
    bolt = opened(place, keys=["word"])
    bolt.write_table(rows_of(("a", 1)), context(1))
    commit, now, pauses = bolt.commit, [0.0], []

    def overtaken(target, rows, context):
        write_deltalake(place, rows_of(("other", 0)), mode="append")
        commit(target, rows, context)

    def sleep(secs):
        pauses.append(secs)
        now[0] += 10.0

    monkeypatch.setattr(bolt, "commit", overtaken)
    monkeypatch.setattr(delta.time, "sleep", sleep)
    monkeypatch.setattr(delta.time, "monotonic", lambda: now[0])
    with pytest.raises(DeltaBoltError, match="changed by other writers while 1 rows of micro-batch 2 were written, 7"):
        bolt.write_table(rows_of(("a", 2)), context(2))
    assert max(pauses) <= 2.0
    monkeypatch.setattr(bolt, "commit", commit)
    bolt.write_table(rows_of(("a", 2)), context(2))
    assert ("a", 2) in held(place), "started again, it goes on with that micro-batch"


def test_a_table_of_somebody_else_keeps_its_other_columns(place):
    write_deltalake(place, pa.table({"word": ["a"], "count": [1], "note": ["kept"]}))
    bolt = opened(place, keys=["word"])
    bolt.write_table(rows_of(("a", 2), ("b", 1)), context(1))
    assert held(place) == [("a", 2, "kept"), ("b", 1, None)]


def test_a_column_that_is_added_while_the_topology_runs_stays_empty(place):
    bolt = opened(place)
    bolt.write_table(rows_of(("a", 1)), context(1))
    DeltaTable(place).alter.add_columns([Field("note", PrimitiveType("string"), nullable=True)])
    bolt.write_table(rows_of(("b", 2)), context(2))
    assert held(place) == [("a", 1, None), ("b", 2, None)]


@pytest.mark.parametrize("options", [{}, {"keys": ["word"]}])
def test_a_column_that_got_another_type_is_not_written(place, options):
    bolt = opened(place, **options)
    bolt.write_table(rows_of(("a", 1)), context(1))
    write_deltalake(
        place, pa.table({"word": ["a"], "count": ["one"], "note": [1]}), mode="overwrite", schema_mode="overwrite"
    )
    with pytest.raises(SetupError, match=f"the column count of the Delta table {place} is string, and the bolt writes"):
        bolt.write_table(rows_of(("a", 2)), context(2))
    with pytest.raises(SetupError, match="the bolt writes long"):
        opened(place, **options)
    assert held(place) == [("a", "one", 1)]


def test_a_column_that_is_lost_is_not_made_again(place):
    bolt = opened(place)
    write_deltalake(place, pa.table({"word": ["a"]}), mode="overwrite", schema_mode="overwrite")
    with pytest.raises(SetupError, match="has no column count; it has word"):
        bolt.write_table(rows_of(("a", 2)), context(1))


def test_topologies_that_share_a_bolt_are_two_writers(place):
    bolt = opened(place)
    for writer in ("words-1/out", "words-2/out", "words-1/out"):
        bolt.write_table(rows_of((writer, 1)), context(7, writer=writer))
    assert held(place) == [("words-1/out", 1), ("words-2/out", 1)]


def test_a_table_that_lacks_a_column_is_refused_before_anything_is_emitted(place):
    write_deltalake(place, pa.table({"word": ["a"], "n": [1]}))
    with pytest.raises(SetupError, match="has no column count; it has word, n"):
        opened(place)


def test_a_table_that_cannot_be_opened_is_named(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(SetupError, match="file/table can't be opened"):
        opened(str(tmp_path / "file" / "table"))


def test_columns_partition_the_table_that_is_made(place):
    bolt = opened(place, partition_by=["word"])
    bolt.write_table(rows_of(("a", 1), ("b", 2)), context(1))
    assert DeltaTable(place).metadata().partition_columns == ["word"]
    assert held(place) == [("a", 1), ("b", 2)]


def test_names_may_hold_anything(place):
    columns = {"a `b` c": "string", 'say "n"': "long"}
    bolt = DeltaBolt(place, columns, keys=["a `b` c"])
    bolt.open_sink(context(-1))
    for number in (1, 2):
        bolt.write_table(rows_of(("x", number), columns=columns), context(number))
    assert held(place) == [("x", 2)]


def test_a_bolt_with_an_open_table_goes_to_workers_without_it(place):
    bolt = opened(place)
    assert pickling.loads(pickling.dumps(bolt)).location == place


@pytest.mark.parametrize("table", ["", "/a\0"])
def test_a_table_is_a_path_or_a_uri(table):
    with pytest.raises(ConfigError, match="a table is a path or a URI"):
        DeltaBolt(table, COLUMNS)


@pytest.mark.parametrize("given", [{"keys": ["day"]}, {"keys": ["word", "word"]}, {"partition_by": "day"}])
def test_keys_and_partitions_are_columns(given):
    with pytest.raises(ConfigError, match=r"is none of the columns|each column once"):
        DeltaBolt("/data/words", COLUMNS, **given)


@pytest.mark.parametrize("option", ["keys", "partition_by"])
def test_neither_keys_nor_partitions_are_arrays(option):
    with pytest.raises(ConfigError, match='column "tags" is array<string>, not a single value'):
        DeltaBolt("/data/words", {"tags": "array<string>"}, **{option: ["tags"]})


@given(st.lists(st.tuples(st.sampled_from([None, "a", "b", "c"]), st.integers(0, 2), st.integers(0, 99)), min_size=1))
def test_of_several_rows_with_the_same_keys_the_last_is_written(rows):
    columns = {"word": "string", "day": "int", "count": "long"}
    table = last_by(Columns(columns).table(rows), ["word", "day"])
    last = {(word, day): count for word, day, count in rows}
    assert {(row["word"], row["day"]): row["count"] for row in table.to_pylist()} == last
    assert table.num_rows == len(last)
