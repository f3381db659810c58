"""Native spouts without Spark: what they refuse, and what becomes of rows that were not acked at once."""

from __future__ import annotations

import logging
import pickle
from types import SimpleNamespace

import cloudpickle
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from storm_on_spark import ConfigError, Fields, InvalidTopologyError, TopologyBuilder
from storm_on_spark.connectors.delta import DeltaSpout
from storm_on_spark.connectors.files import FileSpout
from storm_on_spark.connectors.sources import RateSpout, RetryBackoff, SourceError, SparkSourceSpout
from storm_on_spark.plan.compile import compile_graph, place
from storm_on_spark.plan.fingerprint import compare, fingerprint
from storm_on_spark.runtime.in_process import InProcessTopology
from storm_on_spark.runtime.tracking.ids import native_base
from storm_on_spark.testing import ListSpout

RETRY = RetryBackoff(initial_delay_ms=100, delay_period_ms=1000, max_retries=2)


class Words(SparkSourceSpout):
    """Rows with a word, of which those in capitals can't be translated."""

    def read(self, spark):
        raise AssertionError("not without Spark")

    def message_id(self, row):
        return row["id"]

    def tuple_streams(self):
        return {"default": Fields("word")}

    def tuple_of(self, row):
        if row["word"].isupper():
            raise ValueError("too loud")
        return None if row["word"] == "the" else [row["word"]]


class Opened:
    """A spout with a collector and a clock."""

    def __init__(self, dead_letters="dead", retry=RETRY):
        self.spout = Words(retry, dead_letters)
        self.dead_letters, self.retry = dead_letters, retry
        self.emitted = []
        self.now = 1000.0
        self._open()

    def _open(self):
        def emit(values, message_id=None, stream="default"):
            self.emitted.append((list(values), message_id, stream))

        self.spout.clock = lambda: self.now
        self.spout.open({}, SimpleNamespace(this_component_id="words"), SimpleNamespace(emit=emit))

    def keep(self, **words):
        rows = pa.RecordBatch.from_pylist([{"id": name, "word": word} for name, word in words.items()])
        self.spout.keep(range(10, 10 + len(words)), rows)

    def restart(self):
        saved = pickle.dumps(vars(self.spout.state_holder))
        self.spout = Words(self.retry, self.dead_letters)
        vars(self.spout.state_holder).update(pickle.loads(saved))
        self._open()

    def after(self, secs):
        self.now += secs
        self.emitted.clear()
        self.spout.next_tuple()
        return self.emitted


def test_a_row_that_is_acked_later_is_forgotten_and_others_wait_for_their_turn_through_a_restart() -> None:
    words = Opened()
    words.keep(a="to", b="be", c="or")
    assert set(words.spout.kept()) == {10, 11, 12}
    words.spout.row_acked(10)
    words.spout.row_failed(11, "a bolt failed its tuple")
    words.restart()
    assert set(words.spout.kept()) == {12}
    assert words.after(0.09) == []
    assert words.after(0.02) == [(["be"], "b", "default")]
    words.restart()
    words.spout.fail("b")
    assert words.after(0.9) == []
    assert words.after(0.2) == [(["be"], "b", "default")]
    words.spout.ack("b")
    assert words.after(9000) == []


def test_a_row_that_fails_too_often_is_a_dead_letter_until_that_is_acked() -> None:
    words = Opened()
    words.keep(a="to")
    words.spout.row_failed(10, "its tuple timed out")
    for _ in range(2):
        assert words.after(2.1) == [(["to"], "a", "default")]
        words.spout.fail("a")
    letter = ["a", {"id": "a", "word": "to"}, "a bolt failed its tuple, or that timed out", 3]
    assert words.after(0) == [(letter, "a", "dead")]
    words.spout.fail("a")
    words.restart()
    assert words.after(0.9) == []
    assert words.after(0.2) == [(letter, "a", "dead")]
    words.spout.ack("a")
    assert words.after(9000) == []


def test_a_row_without_a_tuple_says_why_in_its_dead_letter() -> None:
    words = Opened(retry=RetryBackoff())
    words.keep(a="LOUD")
    words.spout.row_failed(10, "a bolt failed its tuple")
    assert words.after(0) == [], "translated again, in vain"
    ((letter, name, stream),) = words.after(0)
    assert (letter[2:], name, stream) == (["no tuple can be made of it: ValueError: too loud", 1], "a", "dead")


def test_a_row_without_a_tuple_ends_the_topology_where_there_is_no_stream_for_it() -> None:
    words = Opened(dead_letters=None)
    words.keep(a="LOUD")
    words.spout.row_failed(10, "a bolt failed its tuple")
    with pytest.raises(SourceError, match="row 'a': no tuple can be made of it: ValueError: too loud; with a dead"):
        words.after(1)


def test_a_dead_letter_whose_stream_a_restart_has_removed_is_dropped_with_a_warning(caplog) -> None:
    words = Opened(retry=RetryBackoff(max_retries=0))
    words.keep(a="to")
    words.spout.row_failed(10, "a bolt failed its tuple")
    words.dead_letters = None
    words.restart()
    assert words.after(1) == []
    assert "gives up row 'a' after 1 failures" in caplog.text


def test_without_a_stream_for_it_a_row_is_dropped_with_a_warning(caplog) -> None:
    words = Opened(dead_letters=None, retry=RetryBackoff(max_retries=0))
    words.keep(a="to")
    with caplog.at_level(logging.WARNING):
        words.spout.row_failed(10, "a bolt failed its tuple")
    assert "spout \"words\" gives up row 'a' after 1 failures: a bolt failed its tuple" in caplog.text
    assert words.after(9000) == []


def test_a_clock_that_is_set_back_holds_nothing_up() -> None:
    words = Opened()
    words.keep(a="to")
    words.spout.row_failed(10, "x")
    assert words.after(-500) == [(["to"], "a", "default")]


@pytest.mark.parametrize("stream", ["", "default", "__dead"])
def test_the_stream_of_dead_letters_has_a_name_of_its_own(stream) -> None:
    with pytest.raises(ConfigError, match="needs its own name"):
        Words(RETRY, stream)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: RateSpout(0), "rows_per_second must be a whole number of 1 or more (given 0)"),
        (lambda: RateSpout(True), "rows_per_second"),
        (lambda: RateSpout(1, 0), "partitions must be"),
        (lambda: FileSpout(""), "a folder is a path or a URL (given '')"),
        (lambda: FileSpout("in", "orc"), "text, json, csv, parquet (given 'orc')"),
        (lambda: FileSpout("in", max_files_per_batch=0), "max_files_per_batch must be"),
        (lambda: FileSpout("in", fields="line STRING"), "one name without a type"),
        (lambda: FileSpout("in", fields="a, b"), "can't be read"),
        (lambda: FileSpout("in", "csv"), "names with Spark's types"),
        (lambda: FileSpout("in", "json", "word"), "names with Spark's types"),
        (lambda: FileSpout("in", "json", "a ARRAY<INT"), "fields of json"),
        (lambda: FileSpout("in", options={"wholeText": True}), "a tuple is a line"),
        (lambda: FileSpout("in", options={"cleanSource": "delete"}), "would be gone before it is acked"),
        (lambda: FileSpout("in", options={"maxFilesPerTrigger": 1}), "it is max_files_per_batch"),
    ],
)
def test_what_makes_no_sense_is_refused_with_what_does(make, words) -> None:
    with pytest.raises(ConfigError) as error:
        make()
    assert words in str(error.value)


_TYPES = st.recursive(
    st.sampled_from(["STRING", "BIGINT", "DECIMAL(10, 2)", "STRING NOT NULL"]),
    lambda inner: (
        inner.map("ARRAY<{}>".format)
        | st.lists(inner, min_size=1, max_size=3).map(lambda of: f"STRUCT<{', '.join(f'x: {one}' for one in of)}>")
    ),
    max_leaves=4,
)


@given(st.dictionaries(st.sampled_from("abcdef"), _TYPES, min_size=1))
def test_fields_are_the_names_of_the_columns_whatever_their_types(columns) -> None:
    fields = ", ".join(f"{name} {kind}" for name, kind in columns.items())
    assert list(FileSpout("in", "json", fields).tuple_streams()["default"]) == list(columns)


def test_the_message_of_a_file_s_row_says_where_spark_read_it() -> None:
    spout = FileSpout("in")
    rows = pa.RecordBatch.from_pylist([{"line": "to be", "__file": "file:/in/a", "__start": 0}])
    emitted = []

    def emit(values, message_id=None, stream="default"):
        emitted.append((list(values), message_id, stream))

    spout.open({}, SimpleNamespace(this_component_id="files"), SimpleNamespace(emit=emit))
    root = native_base(1, 7, 3) + 9
    spout.keep([root], rows)
    spout.row_failed(root, "a bolt failed its tuple")
    spout.next_tuple()
    assert emitted == [(["to be"], ("file:/in/a", 0, 9), "default")]
    assert spout.columns(rows).to_pydict() == {"line": ["to be"]}


@pytest.mark.parametrize("spout", [RateSpout(5), FileSpout("in", dead_letter_stream="dead")])
def test_spouts_travel(spout) -> None:
    assert cloudpickle.loads(cloudpickle.dumps(spout)).tuple_streams() == spout.tuple_streams()


# --- the plan ---------------------------------------------------------------------------------------------------


def rates(*names, conf=None):
    builder = TopologyBuilder()
    for name in ("a", "b"):
        builder.set_spout(name, RateSpout(1) if name in names else ListSpout([[1, 1]], fields=["timestamp", "value"]))
    return compile_graph(builder.create_topology(), conf)


def test_a_native_spout_has_one_task_whatever_is_asked_for() -> None:
    builder = TopologyBuilder()
    builder.set_spout("rate", RateSpout(1), 4).set_num_tasks(8)
    plan = place(compile_graph(builder.create_topology()), 2)
    assert (plan.native_spouts, len(plan.components["rate"].tasks)) == (("rate",), 1)


def test_a_checkpoint_knows_which_spouts_spark_read() -> None:
    both, one = fingerprint(place(rates("a", "b"), 2)), fingerprint(place(rates("b"), 2))
    assert compare(both, both) == []
    said = "Spark read the spouts a, b itself and now b, but it knows its sources by their number"
    assert compare(both, one) == [said]


def test_a_task_too_high_for_the_messages_of_rows_is_refused() -> None:
    builder = TopologyBuilder()
    builder.set_spout("a", ListSpout([1], fields=["n"]), 2047)
    builder.set_spout("b", RateSpout(1))
    with pytest.raises(InvalidTopologyError, match='spout "b": its task must be below 2048, and is 2048'):
        compile_graph(builder.create_topology())


def test_the_real_time_profile_and_a_process_without_spark_refuse_native_spouts() -> None:
    with pytest.raises(InvalidTopologyError, match="do no work with the profile realtime"):
        rates("a", conf={"topology.profile": "realtime"})
    with pytest.raises(InvalidTopologyError, match=r'spout "a": .* there is no Spark in this process'):
        InProcessTopology(rates("a"), "test")


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: DeltaSpout("", ["a"]), "a table is a path or a URI"),
        (lambda: DeltaSpout("t", "word"), "fields are one or more names of columns (given 'word')"),
        (lambda: DeltaSpout("t", []), "fields are one or more"),
        (lambda: DeltaSpout("t", ["a"], starting_version=-1), "0 or more, or 'latest' (given -1)"),
        (lambda: DeltaSpout("t", ["a"], starting_version="first"), "'latest'"),
        (lambda: DeltaSpout("t", ["a"], max_files_per_batch=True), "max_files_per_batch must be"),
        (lambda: DeltaSpout("t", ["a"], options={"startingVersion": 1}), "it is starting_version"),
    ],
)
def test_what_makes_no_sense_of_a_delta_table_is_refused(make, words) -> None:
    with pytest.raises(ConfigError) as error:
        make()
    assert words in str(error.value)


@pytest.mark.parametrize("feed", [False, True])
def test_the_message_of_a_delta_row_says_where_spark_read_it_and_of_a_change_its_version(feed) -> None:
    spout, emitted = DeltaSpout("t", ["tags"], change_feed=feed), []

    def emit(values, message_id=None, stream="default"):
        emitted.append((list(values), message_id))

    spout.open({}, SimpleNamespace(this_component_id="delta"), SimpleNamespace(emit=emit))
    change = {"_change_type": "insert", "_commit_version": 7, "_commit_timestamp": None} if feed else {}
    root, tags = native_base(1, 7, 3) + 9, [("a", 1)]
    rows = pa.table({"tags": pa.array([tags], pa.map_(pa.string(), pa.int64()))}).to_batches()[0]
    for name, value in change.items():
        rows = rows.append_column(name, pa.array([value]))
    spout.keep([root], rows)
    spout.row_failed(root, "a bolt failed its tuple")
    spout.next_tuple()
    assert emitted == [([tags, *change.values()], (7, root) if feed else root)], "with the types that it was read with"
