"""From Kafka to a Delta table, by this project and by plain PySpark: same topics, same tables, same measure.

Throughput is what Spark reports of the source of Kafka. Latency is from a record's making to the commit of its row in
the table's log, which both write.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow.parquet as pq

from lab.benchmarks import progress
from lab.benchmarks.cases import FULL, Case
from lab.benchmarks.contenders import Figures, Setup, figures
from lab.benchmarks.measures import ProcessTree
from lab.benchmarks.workloads.topics import LIVE_PARTITIONS, MESSAGES, TOPIC, made, producer_of
from lab.benchmarks.workloads.topologies import PIPELINES
from lab.load.delta_log import commits
from storm_on_spark import Config, compile_topology
from storm_on_spark.connectors.delta import spout as delta_spout
from storm_on_spark.connectors.kafka.jars import SOURCE, SOURCE_CLASS
from storm_on_spark.connectors.kafka.options import POLLING
from storm_on_spark.connectors.kafka.topics import create
from storm_on_spark.runtime.processes.parent import die_with_parent
from storm_on_spark.spark.compiled import CompiledTopology
from storm_on_spark.spark.session import local_session, stop_session
from storm_on_spark.spark.session.jars import use

AT_ONCE: Final = 400_000
"""Records of a micro-batch at most."""
PAUSE_SECS: Final = 60
_WARM_UP: Final = 3
"""Micro-batches before those that are measured, unless they take longer than the warm-up."""
_OF_KAFKA: Final = "KafkaV2"
_WAIT_SECS: Final = 180.0
_ALL_OF_THE_JIT: Final = {"spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=4"}


def run(case: Case, setup: Setup) -> Figures:
    """Runs a query or a topology and measures it: on all records of a topic, or on records at a rate."""
    native = case.options.get("native", False)
    [phase] = case.phases
    if native:
        spark = local_session(conf=_ALL_OF_THE_JIT if phase is FULL else None)
    else:
        # As for a user: the JVM settings of a profile come with the topology.
        spark = local_session(conf=_compiled(case, setup.servers, TOPIC, setup.folder).session_conf())
    spark.conf.set("spark.sql.streaming.numRecentProgressUpdates", "100000")
    try:
        start = _native if native else _ours
        folder = setup.folder / "run"
        folder.mkdir()
        if phase is FULL:
            return _full_speed(lambda: start(spark, case, setup.servers, TOPIC, folder), setup, case)
        topic = f"live-{setup.folder.name}"
        create(setup.servers, {topic: LIVE_PARTITIONS})
        with Feeder(setup.servers, topic, phase.rate or 0) as feeder:
            open_query = lambda: start(spark, case, setup.servers, topic, folder)  # noqa: E731
            if case.options.get("pause"):
                return _after_a_pause(open_query, feeder, setup, case, folder / "table")
            return _at_rate(open_query, setup, case, folder / "table")
    finally:
        stop_session(spark)


def _full_speed(start: Callable[[], Any], setup: Setup, case: Case) -> Figures:
    """Measures whole micro-batches: some seconds of them, or what the topic has."""
    query = start()
    try:
        tree = ProcessTree()
        _until(query, lambda: _batches(query), "a micro-batch")
        warm_until = time.monotonic() + setup.jvm_warm_up
        _until(query, lambda: len(_batches(query)) >= _WARM_UP or time.monotonic() > warm_until, "warm")
        first, cpu, started = len(_batches(query)), tree.cpu_seconds(), time.monotonic()
        _until(query, lambda: _measured(query, first, started + setup.seconds), "two micro-batches", 0.2)
        used, took = tree.cpu_seconds() - cpu, time.monotonic() - started
        tree.wait(0.01)
        batches = _batches(query)
        # From commit to commit. The last one may have less than the others.
        seconds = progress.end(batches[-1]) - progress.end(batches[first - 1])
        rows = sum(map(_rows, batches[first:]))
        _check(query)
        found = figures(rows, seconds, used * seconds / took, None, batches=len(batches) - first)
    finally:
        query.stop()
    return {"memory_mb": tree.peak_memory_mb(), "phases": {case.phases[0].name: found}}


def _measured(query: Any, first: int, until: float) -> bool:
    batches = _batches(query)
    everything = sum(map(_rows, batches)) >= MESSAGES
    return everything or (time.monotonic() > until and len(batches) >= first + 2)


def _at_rate(start: Callable[[], Any], setup: Setup, case: Case, table: Path) -> Figures:
    query = start()
    try:
        tree = ProcessTree()
        _until(query, lambda: table.exists() and commits(table), "a commit")
        tree.wait(setup.warm_up)
        version, cpu, started = commits(table)[-1].version, tree.cpu_seconds(), time.monotonic()
        tree.wait(setup.seconds)
        used, took = tree.cpu_seconds() - cpu, time.monotonic() - started
        done = commits(table, version)
        _check(query)
    finally:
        query.stop()
    latencies = np.concatenate([_latencies(table, commit) for commit in done])
    percentiles = {f"p{p}": round(float(np.percentile(latencies, p)), 1) for p in (50, 95, 99)}
    found = figures(len(latencies), took, used, percentiles, batches=len(done))
    return {"memory_mb": tree.peak_memory_mb(), "phases": {case.phases[0].name: found}}


def _after_a_pause(start: Callable[[], Any], feeder: Feeder, setup: Setup, case: Case, table: Path) -> Figures:
    rate = case.phases[0].rate or 0
    query = start()
    try:
        _until(query, lambda: table.exists() and commits(table), "a commit")
        time.sleep(setup.settle)
    finally:
        query.stop()
    feeder.burst(int(PAUSE_SECS * rate))
    began = time.monotonic()
    query = start()
    try:
        _until(
            query, lambda: sum(commit.rows for commit in commits(table)) >= feeder.sent - 2 * rate, "catching up", 0.2
        )
        secs = time.monotonic() - began
        _check(query)
    finally:
        query.stop()
    found = figures(PAUSE_SECS * rate, secs, 0.0, None)
    return {"catching_up_secs": secs, "phases": {case.phases[0].name: found}}


def _latencies(table: Path, commit: Any) -> Any:
    values = [pq.read_table(table / file, columns=["value"])["value"].to_pylist() for file in commit.files]
    made = np.array([float(value) for part in values for value in part])
    return 1000 * (commit.at - made)


def _check(query: Any) -> None:
    info = query.status_info() if hasattr(query, "status_info") else None
    if info is not None and (info.error or info.failed):
        raise RuntimeError(f"the topology's figures are void: {info.failed} tuples failed, error {info.error}")


def _batches(query: Any) -> list[dict[str, Any]]:
    return [batch for batch in progress.recent(query, 0) if _rows(batch)]


def _rows(batch: dict[str, Any]) -> int:
    return sum(source["numInputRows"] for source in batch["sources"] if _OF_KAFKA in source["description"])


def _until(query: Any, condition: Callable[[], Any], what: str, pause: float = 0.02) -> None:
    deadline = time.monotonic() + _WAIT_SECS
    while not condition():
        _check(query)
        if time.monotonic() > deadline or not getattr(query, "isActive", True):
            raise TimeoutError(f"not within {_WAIT_SECS:.0f} s: {what}")
        time.sleep(pause)


# --- contenders ---------------------------------------------------------------


def _compiled(case: Case, servers: str, topic: str, folder: Path) -> CompiledTopology:
    topology = PIPELINES[case.workload](servers, topic, folder / "table", AT_ONCE)
    conf = {Config.TOPOLOGY_PROFILE: case.profile, Config.TOPOLOGY_MESSAGE_TIMEOUT_SECS: 3600}
    return compile_topology(topology, conf)


def _ours(spark: Any, case: Case, servers: str, topic: str, folder: Path) -> Any:
    return _compiled(case, servers, topic, folder).start(spark, name="benchmark", checkpoint=folder / "checkpoint")


def _native(spark: Any, case: Case, servers: str, topic: str, folder: Path) -> Any:
    from pyspark.sql import functions as F  # noqa: N812 # as everybody writes it

    use(spark, SOURCE, SOURCE_CLASS)
    use(spark, delta_spout.JARS, delta_spout._CLASS)  # noqa: SLF001
    spark.conf.set(delta_spout._CHECK, "false")  # noqa: SLF001
    spark.conf.set("spark.sql.shuffle.partitions", "2")
    # Otherwise Delta reads its log in fifty tasks after each commit, which takes longer here than writing the rows.
    spark.conf.set("spark.databricks.delta.snapshotPartitions", "2")
    options = {
        "kafka.bootstrap.servers": servers,
        "subscribe": topic,
        "startingOffsets": "earliest",
        "maxOffsetsPerTrigger": AT_ONCE,
        **POLLING,  # as `KafkaSpout`: a setting that any query may have is not what is measured
    }
    rows = spark.readStream.format("kafka").options(**options).load()
    rows = rows.select("topic", "partition", "offset", F.col("value").cast("string").alias("value"))
    checkpoint, table = str(folder / "checkpoint"), str(folder / "table")
    if case.workload == "pass-through":
        return rows.writeStream.format("delta").option("checkpointLocation", checkpoint).start(table)

    def write(frame: Any, batch: int) -> None:
        once = {"txnAppId": "benchmark", "txnVersion": batch}
        frame.write.format("delta").mode("append").options(**once).save(table)

    words = rows.select(F.explode(F.split("value", " ")).alias("word")).groupBy("word").count()
    return words.writeStream.outputMode("update").foreachBatch(write).option("checkpointLocation", checkpoint).start()


class Feeder:
    """A process that writes records to a topic at a rate, each with its creation time in seconds since the epoch.

    Args:
        servers: of Kafka.
        topic: must exist.
        rate: records per second.
    """

    def __init__(self, servers: str, topic: str, rate: float) -> None:
        self._servers, self._topic, self._rate = servers, topic, rate

    def __enter__(self) -> Feeder:
        command = [
            sys.executable,
            "-m",
            "lab.benchmarks.workloads.topics",
            "feed",
            self._servers,
            self._topic,
            str(self._rate),
        ]
        self._process = subprocess.Popen(die_with_parent(command), stdin=subprocess.DEVNULL)
        return self

    def __exit__(self, *error: object) -> None:
        self._process.kill()
        self._process.wait()

    def burst(self, count: int) -> None:
        """Writes this many at once; returns when Kafka has them."""
        producer = producer_of(self._servers, 20)
        for _ in range(count):
            producer.send(self._topic, made())
        producer.flush()
        producer.close()

    @property
    def sent(self) -> int:
        """How many records are in the topic."""
        from kafka import KafkaConsumer, TopicPartition

        consumer = KafkaConsumer(bootstrap_servers=self._servers)
        try:
            places = [TopicPartition(self._topic, number) for number in range(LIVE_PARTITIONS)]
            return sum(consumer.end_offsets(places).values())
        finally:
            consumer.close()
