"""The topologies of this project that are measured, and their bolts."""

from __future__ import annotations

import collections
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lab.benchmarks.workloads.feed import DrawnKeys, Held, Keys, Numbers, Pairs, SentenceBatches, Sentences, Words
from lab.benchmarks.workloads.windows import (
    CountColumns,
    CountResults,
    CountTuples,
    EventBatches,
    Events,
    windows,
)
from storm_on_spark import (
    BaseBasicBolt,
    BaseRichBolt,
    BaseStatefulBolt,
    BatchBolt,
    Fields,
    KeyValueState,
    OutputFieldsDeclarer,
    Topology,
    TopologyBuilder,
    Tuple,
)
from storm_on_spark.api.streams.stream import StreamSpec
from storm_on_spark.connectors.delta import DeltaBolt
from storm_on_spark.connectors.kafka import FirstPollOffsetStrategy, KafkaSpout, KafkaSpoutConfig
from storm_on_spark.multilang import ShellBolt
from storm_on_spark.runtime.state.keyvalue.state import StoredState
from storm_on_spark.streamparse import install
from storm_on_spark.streamparse.components.adapter import PystormBolt

FAN = 100


class Split(BaseBasicBolt):
    def execute(self, tup: Any, collector: Any) -> None:
        for word in tup["sentence"].split():
            collector.emit([word])

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        declarer.declare(Fields("word"))


class Count(BaseBasicBolt):
    def prepare(self, conf: Mapping[str, Any], context: Any) -> None:
        self.counts: collections.Counter[str] = collections.Counter()

    def execute(self, tup: Any, collector: Any) -> None:
        self.counts[tup[0]] += 1


class SplitBatch(BatchBolt):
    stateless = True

    def prepare(self, conf: Mapping[str, Any], context: Any, collector: Any) -> None: ...

    def execute_batch(self, batch: pa.RecordBatch, collector: Any) -> None:
        words = pc.split_pattern(batch.column(0), " ")
        parent = pc.list_parent_indices(words).to_numpy()
        collector.emit(pa.RecordBatch.from_arrays([pc.list_flatten(words)], ["word"]), parent)

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        declarer.declare(Fields("word"))


class CountBatch(BatchBolt):
    def prepare(self, conf: Mapping[str, Any], context: Any, collector: Any) -> None:
        self.counts: collections.Counter[str] = collections.Counter()

    def execute_batch(self, batch: pa.RecordBatch, collector: Any) -> None:
        counted = pc.value_counts(batch.column(0))
        for word, count in zip(counted.field(0).to_pylist(), counted.field(1).to_pylist(), strict=True):
            self.counts[word] += count


class CountInState(BaseStatefulBolt):
    def prepare(self, conf: Mapping[str, Any], context: Any, collector: Any) -> None:
        self.collector = collector

    def init_state(self, state: KeyValueState) -> None:
        self.counts = state

    def execute(self, tup: Any) -> None:
        key = tup[0]
        self.counts.put(key, self.counts.get(key, 0) + 1)
        self.collector.ack(tup)


class CountInLargeState(CountInState):
    """Counts keys; those of a range are stored at once, because a state of millions would otherwise take minutes."""

    def execute(self, tup: Any) -> None:
        if tup.source_stream != "fill":
            super().execute(tup)
            return
        keys = range(*tup.values)
        assert isinstance(self.counts, StoredState)
        if self.counts.looks_ahead:
            self.counts.look_ahead(set(keys))
        for key in keys:
            self.counts.put(key, 1)
        self.collector.ack(tup)


class Hop(BaseBasicBolt):
    """Passes its tuples on."""

    def execute(self, tup: Any, collector: Any) -> None:
        collector.emit([tup[0]])

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        declarer.declare(Fields("value"))


class Work(BaseBasicBolt):
    """Is busy for some time with each tuple.

    Args:
        micros: microseconds of the processor's.
    """

    def __init__(self, micros: int) -> None:
        self.secs = micros / 1e6

    def execute(self, tup: Any, collector: Any) -> None:
        until = time.thread_time() + self.secs
        while time.thread_time() < until:
            pass


class Fan(BaseBasicBolt):
    """Makes a hundred tuples from one."""

    def execute(self, tup: Any, collector: Any) -> None:
        value = tup[0]
        for number in range(FAN):
            collector.emit([value + number])

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        declarer.declare(Fields("value"))


class End(BaseBasicBolt):
    """Does nothing."""

    def execute(self, tup: Any, collector: Any) -> None: ...


class Join(BaseRichBolt):
    """Keeps a tuple unacked until the other one with its key comes, and anchors its output to both."""

    def prepare(self, conf: Mapping[str, Any], context: Any, collector: Any) -> None:
        self.collector = collector
        self.waiting: dict[int, Tuple] = {}

    def execute(self, tup: Tuple) -> None:
        other = self.waiting.pop(tup["key"], None)
        if other is None:
            self.waiting[tup["key"]] = tup
            return
        self.collector.emit([tup["key"]], [other, tup])
        self.collector.ack(other)
        self.collector.ack(tup)

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        declarer.declare(Fields("key"))


class Hold(BaseRichBolt):
    """Acks all tuples except those below zero."""

    stateless = True

    def prepare(self, conf: Mapping[str, Any], context: Any, collector: Any) -> None:
        self.collector = collector

    def execute(self, tup: Tuple) -> None:
        if tup[0] >= 0:
            self.collector.ack(tup)


Options = Mapping[str, Any]
"""Of a case: `acked`, `keys`, `held`, `tasks`, `levels`, as its workload wants them."""


def word_count(split: type, count: type, feed: type = Sentences) -> Callable[..., Topology]:
    """Returns what builds the word count of these bolts and this spout."""

    def build(control: str, source: str, options: Options) -> Topology:
        tasks = options.get("tasks", 2)
        builder = TopologyBuilder()
        builder.set_spout("feed", feed(control, source, options.get("acked", True)))
        builder.set_bolt("split", split(), tasks).shuffle_grouping("feed")
        builder.set_bolt("count", count(), tasks).fields_grouping("split", Fields("word"))
        return builder.create_topology()

    return build


PYSTORM_BOLTS = Path(__file__).parents[1] / "storm" / "bolts.py"
"""What Storm runs over multilang, too."""
_PYSTORM = Path(__file__).parents[3] / "build" / "storm" / "pystorm"


def _pystorm(control: str, source: str, options: Options) -> Topology:
    """Bolts of pystorm, in process."""
    install()
    from lab.benchmarks.storm.bolts import Count as PystormCount
    from lab.benchmarks.storm.bolts import Split as PystormSplit

    word = {"default": StreamSpec(Fields("word"))}
    return _pystorm_word_count(PystormBolt(PystormSplit, word), PystormBolt(PystormCount, {}), control, source, options)


def _multilang(control: str, source: str, options: Options) -> Topology:
    """The same bolts as child processes."""
    path = {"PYTHONPATH": str(_PYSTORM)} if _PYSTORM.is_dir() else {}
    split, count = (
        ShellBolt([sys.executable, str(PYSTORM_BOLTS), name], fields, environment=path)
        for name, fields in (("split", ["word"]), ("count", []))
    )
    return _pystorm_word_count(split, count, control, source, options)


def _pystorm_word_count(split: Any, count: Any, control: str, source: str, options: Options) -> Topology:
    builder = TopologyBuilder()
    builder.set_spout("feed", Sentences(control, source, options.get("acked", True)))
    builder.set_bolt("split", split, 2).shuffle_grouping("feed")
    builder.set_bolt("count", count, 2).fields_grouping("split", Fields("word"))
    return builder.create_topology()


def _chain(control: str, source: str, options: Options) -> Topology:
    builder = TopologyBuilder()
    builder.set_spout("feed", Numbers(control, source))
    above, levels = "feed", options.get("levels", 3)
    for level in range(1, levels + 1):
        bolt = builder.set_bolt(f"hop{level}", Hop() if level < levels else End(), 2)
        if options.get("fused"):
            bolt.shuffle_grouping(above)
        else:
            bolt.fields_grouping(above, Fields("value"))
        above = f"hop{level}"
    return builder.create_topology()


def _slow(control: str, source: str, options: Options) -> Topology:
    builder = TopologyBuilder()
    builder.set_spout("feed", Numbers(control, source))
    # With state, as bolts of that kind have; each process gets as many tuples as the other.
    builder.set_bolt("work", Work(options["micros"]), 2).fields_grouping("feed", Fields("value"))
    return builder.create_topology()


def _fan_out(control: str, source: str, options: Options) -> Topology:
    builder = TopologyBuilder()
    builder.set_spout("feed", Numbers(control, source))
    builder.set_bolt("fan", Fan(), 2).shuffle_grouping("feed")
    builder.set_bolt("end", End(), 2).fields_grouping("fan", Fields("value"))
    return builder.create_topology()


def _join(control: str, source: str, options: Options) -> Topology:
    builder = TopologyBuilder()
    builder.set_spout("feed", Pairs(control, source))
    join = builder.set_bolt("join", Join(), 2)
    for stream in ("left", "right"):
        join.fields_grouping("feed", Fields("key"), stream)
    builder.set_bolt("end", End(), 2).shuffle_grouping("join")
    return builder.create_topology()


def _rolling(control: str, source: str, options: Options) -> Topology:
    # The job of the same name; the folder of the jobs is on the path of whatever runs cases.
    from rolling_top_words import Rank, RollingCount, TotalRank

    window, emit, top = 6, 2, 3
    builder = TopologyBuilder()
    builder.set_spout("feed", Words(control, source))
    builder.set_bolt("counter", RollingCount(window, emit), 2).fields_grouping("feed", Fields("word"))
    builder.set_bolt("intermediate", Rank(top, emit), 2).fields_grouping("counter", Fields("word"))
    builder.set_bolt("total", TotalRank(top, emit)).global_grouping("intermediate")
    builder.set_bolt("end", End()).shuffle_grouping("total")
    return builder.create_topology()


def _large_state(control: str, source: str, options: Options) -> Topology:
    builder = TopologyBuilder()
    builder.set_spout("feed", DrawnKeys(control, source, options["keys"], options["each"]))
    count = builder.set_bolt("count", CountInLargeState())
    count.fields_grouping("feed", Fields("key")).all_grouping("feed", "fill")
    return builder.create_topology()


def _keys(count: type) -> Callable[..., Topology]:
    def build(control: str, source: str, options: Options) -> Topology:
        builder = TopologyBuilder()
        builder.set_spout("feed", Keys(control, source, options["keys"]))
        builder.set_bolt("count", count(), 2).fields_grouping("feed", Fields("key"))
        return builder.create_topology()

    return build


def _pending(control: str, source: str, options: Options) -> Topology:
    builder = TopologyBuilder()
    builder.set_spout("feed", Held(control, source, options["held"]))
    builder.set_bolt("hold", Hold(), 2).shuffle_grouping("feed")
    return builder.create_topology()


WORKLOADS: dict[str, Callable[[str, str, Options], Topology]] = {
    "word count": word_count(Split, Count),
    "word count, columnar": word_count(SplitBatch, CountBatch, SentenceBatches),
    "word count, columnar bolts": word_count(SplitBatch, CountBatch),
    "word count, pystorm": _pystorm,
    "word count, multilang": _multilang,
    "chain": _chain,
    "slow": _slow,
    "fan-out": _fan_out,
    "join": _join,
    "rolling top words": _rolling,
    "keys": _keys(Count),
    "keys in KeyValueState": _keys(CountInState),
    "one task's keys": _large_state,
    "pending": _pending,
    "windows, columnar": windows(EventBatches, CountColumns, aggregate=True),
    "windows, aggregations": windows(Events, CountResults, aggregate=True),
    "windows, tuples": windows(Events, CountTuples, aggregate=False),
}
"""By name: what builds the topology from the paths of control and input, and the case's options."""


class CountAndTell(BaseRichBolt):
    """Counts words, and emits the counts that have changed at the end of each micro-batch."""

    def prepare(self, conf: Mapping[str, Any], context: Any, collector: Any) -> None:
        self.collector = collector
        self.counts: collections.Counter[str] = collections.Counter()
        self.changed: set[str] = set()

    def execute(self, tup: Tuple) -> None:
        word = tup[0]
        self.counts[word] += 1
        self.changed.add(word)
        self.collector.ack(tup)

    def finish_micro_batch(self) -> None:
        for word in self.changed:
            self.collector.emit([word, self.counts[word]])
        self.changed = set()

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        declarer.declare(Fields("word", "count"))


class CountAndTellBatch(CountBatch):
    """Counts words, and emits the counts that a record batch has changed."""

    def execute_batch(self, batch: pa.RecordBatch, collector: Any) -> None:
        counted = pc.value_counts(batch.column(0))
        words = counted.field(0).to_pylist()
        for word, count in zip(words, counted.field(1).to_pylist(), strict=True):
            self.counts[word] += count
        columns = [pa.array(words), pa.array([self.counts[word] for word in words], pa.int64())]
        # Words are unanchored: the rows are done with this batch, and so are the words made from them.
        parents = np.full(len(words), -1)
        collector.emit(pa.RecordBatch.from_arrays(columns, ["word", "count"]), parents)

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        declarer.declare(Fields("word", "count"))


def _from_kafka(split: type | None, count: type | None, *, table: bool = True) -> Callable[..., Topology]:
    def build(servers: str, topic: str, folder: Path, at_once: int) -> Topology:
        # Not from the offsets of the previous case, which has the same topic and may have read all of it.
        start = FirstPollOffsetStrategy.EARLIEST
        group = KafkaSpoutConfig.builder(servers, topic).set_group_id("benchmark")
        config = group.set_first_poll_offset_strategy(start).build()
        builder = TopologyBuilder()
        builder.set_spout("lines", KafkaSpout(config, max_offsets_per_batch=at_once))
        if split is None or count is None:
            types = {"topic": "string", "partition": "int", "offset": "long", "value": "string"}
            builder.set_bolt("table", DeltaBolt(folder, types), 2).local_or_shuffle_grouping("lines")
            return builder.create_topology()
        builder.set_bolt("split", split(), 2).local_or_shuffle_grouping("lines")
        builder.set_bolt("count", count(), 2).fields_grouping("split", Fields("word"))
        if table:
            counts = DeltaBolt(folder, {"word": "string", "count": "long"})
            builder.set_bolt("table", counts, 2).local_or_shuffle_grouping("count")
        return builder.create_topology()

    return build


class SplitValue(Split):
    def execute(self, tup: Any, collector: Any) -> None:
        for word in tup["value"].split():
            collector.emit([word])


class SplitValueBatch(SplitBatch):
    def execute_batch(self, batch: pa.RecordBatch, collector: Any) -> None:
        super().execute_batch(batch.select(["value"]), collector)


PIPELINES: dict[str, Callable[..., Topology]] = {
    "pass-through": _from_kafka(None, None),
    "word count": _from_kafka(SplitValue, CountAndTell),
    "word count, columnar": _from_kafka(SplitValueBatch, CountAndTellBatch),
    "word count, no table": _from_kafka(SplitValue, Count, table=False),
}
"""From Kafka, by name: builds the topology from servers, topic, the table's folder, and records of a micro-batch."""
