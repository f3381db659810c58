"""`DeltaBolt` on real tables, without Spark: each micro-batch once, appended or merged, beside other writers."""

from __future__ import annotations

import json
from dataclasses import replace

import pyarrow as pa
import pytest
from deltalake import DeltaTable, Field, write_deltalake
from deltalake.schema import PrimitiveType
from hypothesis import given
from hypothesis import strategies as st

from storm_on_spark import ConfigError, SetupError, SinkContext
from storm_on_spark.connectors.delta import DeltaBolt, DeltaBoltError
from storm_on_spark.connectors.delta import bolt as delta
from storm_on_spark.connectors.sinks import Columns, RefusedRowError
from storm_on_spark.connectors.sinks.tables import last_by
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
    assert ("a", 2) in held(place), "started again, it continues with that micro-batch"


def letters(folder):
    """Returns rows that were refused, with the micro-batch of each."""
    found = [json.loads(line) for file in sorted(folder.iterdir()) for line in file.read_text().splitlines()]
    return [(each["micro_batch"], tuple(each["row"].values())) for each in found]


@pytest.fixture
def positive(place):
    """A table whose counts are above 0."""
    DeltaTable.create(place, Columns(COLUMNS).schema()).alter.add_constraint({"positive": "count > 0"})
    return place


def test_a_row_that_the_table_refuses_ends_the_topology_with_that_row_and_the_way_out(positive):
    bolt = opened(positive)
    message = r'refuses a row: constraint positive \(count > 0\) \(given {"word": "b", "count": -1}\).*dead_letters='
    with pytest.raises(RefusedRowError, match=message):
        bolt.write_table(rows_of(("a", 1), ("b", -1), ("c", -1)), context(1))
    assert held(positive) == []
    bolt.write_table(rows_of(("a", 1), ("b", 1)), context(1))
    assert held(positive) == [("a", 1), ("b", 1)]


@pytest.mark.parametrize("keys", [[], ["word"]])
def test_a_refused_row_is_a_dead_letter_and_its_neighbours_are_written_once(positive, tmp_path, keys):
    rows = [(f"w{number}", -1 if number == 577 else number + 1) for number in range(1000)]
    reported = []
    bolt = opened(positive, keys=keys, dead_letters=tmp_path / "refused")
    before = DeltaTable(positive).version()
    for _ in range(2):  # the driver died after the commit of the first
        bolt.write_table(rows_of(*rows), replace(context(1), report=reported.append))
    assert DeltaTable(positive).version() == before + 1, "the others are one transaction"
    assert held(positive) == sorted((row for row in rows if row[1] > 0), key=str)
    assert letters(tmp_path / "refused") == [(1, ("w577", -1))]
    assert "refuses 1 row: constraint positive (count > 0) (given" in reported[0]
    assert reported[1] == reported[0], "the driver that was told first is gone"


@pytest.mark.parametrize("still_refused", [True, False])
def test_a_driver_that_dies_before_the_commit_leaves_each_row_in_one_place(
    positive, tmp_path, monkeypatch, still_refused
):
    rows = rows_of(("a", 1), ("b", -1), ("c", 3))
    bolt = opened(positive, dead_letters=tmp_path / "refused")
    commit = bolt.commit

    def killed(target, rows, context):
        if len(rows) == 2:
            raise KeyboardInterrupt
        commit(target, rows, context)

    with monkeypatch.context() as patched:
        patched.setattr(bolt, "commit", killed)
        with pytest.raises(KeyboardInterrupt):
            bolt.write_table(rows, context(1))
    assert (held(positive), letters(tmp_path / "refused")) == ([], [(1, ("b", -1))])
    if not still_refused:
        DeltaTable(positive).alter.drop_constraint("positive")
    opened(positive, dead_letters=tmp_path / "refused").write_table(rows, context(1))
    assert sorted(held(positive) + [row for _, row in letters(tmp_path / "refused")]) == [("a", 1), ("b", -1), ("c", 3)]
    assert len(letters(tmp_path / "refused")) == still_refused


def test_rows_with_equal_keys_are_refused_one_by_one_and_the_last_that_fits_stays(positive, tmp_path):
    bolt = opened(positive, keys=["word"], dead_letters=tmp_path / "refused")
    bolt.write_table(rows_of(("a", 1), ("b", 1), (None, 1)), context(1))
    bolt.write_table(rows_of(("a", 2), ("a", 3), ("a", -1), ("b", -2), ("a", -3), (None, 2), (None, -1)), context(2))
    assert held(positive) == [("a", 3), ("b", 1), (None, 2)]
    assert {row for _, row in letters(tmp_path / "refused")} == {("a", -3), ("a", -1), ("b", -2), (None, -1)}


def test_a_constraint_on_columns_that_the_bolt_lacks_is_tried_on_the_rows_as_they_would_be(place, tmp_path):
    write_deltalake(place, pa.table({"word": ["a", "b", None], "count": [1, 1, 1], "most": [5, 50, 5]}))
    DeltaTable(place).alter.add_constraint({"fits": "count <= most"})
    bolt = opened(place, keys=["word"], dead_letters=tmp_path / "refused")
    bolt.write_table(rows_of(("a", 10), ("b", 10), (None, 3)), context(1))
    assert held(place) == [("a", 1, 5), ("b", 10, 50), (None, 3, 5)]
    assert letters(tmp_path / "refused") == [(1, ("a", 10))]


def test_a_micro_batch_of_which_all_rows_are_refused_is_done(positive, tmp_path):
    bolt = opened(positive, dead_letters=tmp_path / "refused")
    for _ in range(2):
        bolt.write_table(rows_of(("a", -1), ("b", -1)), context(1))
    bolt.write_table(rows_of(("c", 1)), context(2))
    assert held(positive) == [("c", 1)]
    assert letters(tmp_path / "refused") == [(1, ("a", -1)), (1, ("b", -1))]


def test_a_missing_value_is_refused_by_its_column(place, tmp_path):
    word, count = Columns(COLUMNS).schema()
    DeltaTable.create(place, pa.schema([word.with_nullable(False), count]), partition_by=["count"])
    reported = []
    bolt = opened(place, dead_letters=tmp_path / "refused")
    bolt.write_table(rows_of(("a", 1), (None, 2), ("c", None)), replace(context(1), report=reported.append))
    assert held(place) == [("a", 1), ("c", None)]
    assert 'no value for word (given {"word": null, "count": 2})' in reported[0]


def test_a_table_that_wants_a_column_that_the_bolt_lacks_is_refused_at_the_start(place):
    day = pa.field("day", pa.date32(), nullable=False)
    DeltaTable.create(place, pa.schema([*Columns(COLUMNS).schema(), day]))
    with pytest.raises(SetupError, match="wants a value for day, and the bolt has no such column"):
        opened(place)


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
