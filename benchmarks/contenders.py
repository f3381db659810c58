"""The word counts that are compared. Each runs in a process of its own: `python contenders.py NAME MODE SECONDS`.

MODE is `throughput` (as fast as it goes, unlimited input) or a number of sentences a second. Prints one line of JSON.
"""

from __future__ import annotations

import collections
import json
import random
import sys
import time
from collections.abc import Callable, Mapping
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from storm_on_spark import (
    BaseBasicBolt,
    BaseRichSpout,
    BatchBolt,
    Config,
    Fields,
    OutputFieldsDeclarer,
    Topology,
    TopologyBuilder,
    compile_topology,
)
from storm_on_spark.runtime.latency import LatencyHistogram
from storm_on_spark.spark.session import local_session, stop_session

WORDS_PER_SENTENCE = 7
VOCABULARY = 10_000
_SENTENCES = 50_000
_WARM_UP_SECONDS = 12.0


def sentences(count: int = _SENTENCES) -> list[str]:
    """Returns sentences of seven words whose frequencies follow Zipf's law, the same in every process."""
    generator = random.Random(7)
    words = [f"word{number}" for number in range(VOCABULARY)]
    weights = [1 / rank for rank in range(1, VOCABULARY + 1)]
    chosen = generator.choices(words, weights, k=count * WORDS_PER_SENTENCE)
    return [" ".join(chosen[at : at + WORDS_PER_SENTENCE]) for at in range(0, len(chosen), WORDS_PER_SENTENCE)]


class Sentences(BaseRichSpout):
    """Emits sentences for ever, all it can or at a fixed rate."""

    def __init__(self, rate: float | None, acked: bool) -> None:
        self.rate = rate
        self.acked = acked
        self.emitted = 0

    def open(self, conf: Mapping[str, Any], context: Any, collector: Any) -> None:
        self.collector = collector
        # Not part of the snapshot: made again by `open`.
        self._texts = _Unpicklable(sentences())
        self._started = time.monotonic()

    def next_tuple(self) -> None:
        if self.rate is not None and (time.monotonic() - self._started) * self.rate <= self.emitted:
            return
        text = self._texts.items[self.emitted % _SENTENCES]
        self.collector.emit([text], self.emitted if self.acked else None)
        self.emitted += 1

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        declarer.declare(Fields("sentence"))


class _Unpicklable:
    def __init__(self, items: list[str]) -> None:
        self.items = items

    def __reduce__(self) -> str:
        raise TypeError("made anew by open")


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
        self.counts[tup["word"]] += 1


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


def word_count(split: object, count: object, rate: float | None, acked: bool) -> Topology:
    """Returns the topology sentences -> split (2 tasks) -> count (2 tasks)."""
    builder = TopologyBuilder()
    builder.set_spout("sentences", Sentences(rate, acked), 1)
    builder.set_bolt("split", split, 2).shuffle_grouping("sentences")
    builder.set_bolt("count", count, 2).fields_grouping("split", Fields("word"))
    return builder.create_topology()


def run_topology(split: object, count: object, acked: bool, rate: float | None, seconds: float) -> dict[str, Any]:
    """Runs a word count and measures it after warm-up."""
    conf = {Config.TOPOLOGY_ACKER_EXECUTORS: 1 if acked else 0}
    spark = local_session()
    query = compile_topology(word_count(split, count, rate, acked), conf).start(spark, name="bench")
    try:
        metrics = query._coordinator.metrics  # noqa: SLF001 # the latencies of a span of time have no public door

        def done() -> int:
            # Without ackers nothing is acked late: what counts is what `count` has executed.
            info = query.status_info()
            return info.acked if acked else info.components["count"].executed // WORDS_PER_SENTENCE

        query.wait_until(lambda: done() > 0, 60)
        time.sleep(_WARM_UP_SECONDS)
        # From batch to batch, so that no part of one is counted.
        first, started = _at_a_change(done)
        before = metrics.latencies.counts.copy()
        time.sleep(seconds)
        last, ended = _at_a_change(done)
        span = LatencyHistogram()
        span.counts = metrics.latencies.counts - before
        return {"sentences_per_second": (last - first) / (ended - started), "latency_ms": span.summary()}
    finally:
        query.stop()
        stop_session(spark)


def _at_a_change(read: Callable[[], int]) -> tuple[int, float]:
    value = read()
    deadline = time.monotonic() + 30
    while (now := read()) == value and time.monotonic() < deadline:
        time.sleep(0.005)
    return now, time.monotonic()


def run_native(python_udf: bool, seconds: float) -> dict[str, Any]:
    """Runs the same word count in plain PySpark; its rows are sentences, and nothing tracks them."""
    from pyspark.sql import functions as F  # noqa: N812 # as everybody writes it
    from pyspark.sql.types import ArrayType, StringType

    spark = local_session()
    texts = sentences(1000)
    spark.conf.set("spark.sql.shuffle.partitions", "2")
    rows = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 400_000 if not python_udf else 100_000)
    lines = (
        rows.option("numPartitions", 2)
        .load()
        .select(
            F.element_at(F.array([F.lit(text) for text in texts]), (F.col("value") % len(texts) + 1).cast("int")).alias(
                "s"
            )
        )
    )
    split = F.udf(lambda text: text.split(), ArrayType(StringType())) if python_udf else lambda text: F.split(text, " ")
    counts = lines.select(F.explode(split(F.col("s"))).alias("word")).groupBy("word").count()
    query = counts.writeStream.outputMode("update").format("noop").start()
    try:
        time.sleep(_WARM_UP_SECONDS + seconds)
        late = [p for p in query.recentProgress if p["numInputRows"]][-max(3, len(query.recentProgress) // 2) :]
        rows_done = sum(p["numInputRows"] for p in late)
        return {
            "sentences_per_second": rows_done / (sum(p["batchDuration"] for p in late) / 1000),
            "latency_ms": None,
        }
    finally:
        query.stop()
        stop_session(spark)


CONTENDERS: dict[str, Callable[[float | None, float], dict[str, Any]]] = {
    "per-tuple, acked": lambda rate, s: run_topology(Split(), Count(), True, rate, s),
    "per-tuple, no ackers": lambda rate, s: run_topology(Split(), Count(), False, rate, s),
    "columnar, acked": lambda rate, s: run_topology(SplitBatch(), CountBatch(), True, rate, s),
    "columnar, no ackers": lambda rate, s: run_topology(SplitBatch(), CountBatch(), False, rate, s),
    "native PySpark": lambda rate, s: run_native(False, s),
    "native PySpark, Python UDF": lambda rate, s: run_native(True, s),
}


def main() -> None:
    """Runs one contender, as the command line says."""
    name, mode, seconds = sys.argv[1:4]
    rate = None if mode == "throughput" else float(mode)
    print(json.dumps(CONTENDERS[name](rate, float(seconds))))


if __name__ == "__main__":
    main()
