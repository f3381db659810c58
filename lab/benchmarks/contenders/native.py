"""Plain PySpark: the same stateful word count, or windows, as a streaming query. Nothing tracks its rows."""

from __future__ import annotations

import bisect
import contextlib
import socket
import threading
import time
from collections.abc import Iterator
from typing import Any

import numpy as np

from lab.benchmarks import progress
from lab.benchmarks.cases import Case
from lab.benchmarks.contenders import Figures, Setup, figures
from lab.benchmarks.measures import ProcessTree
from lab.benchmarks.workloads.data import read_sentences
from storm_on_spark.spark.session import local_session, stop_session

_ROWS_PER_BATCH = {"built-in functions": 4_000_000, "Python UDF": 400_000, "windows": 4_000_000}
"""Enough for a micro-batch of a second or more on two cores, so that the cost per micro-batch hardly matters."""
_TEXTS = 1000
_ALL_OF_THE_JIT = {"spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=4"}
"""Generated code that counts millions of rows needs the optimizing compiler, which `local_session` switches off."""
_FEED_SECS = 0.002
_BATCH_SECS = 120.0
"""Longest time of a micro-batch; the first one must compile a lot."""


def run(case: Case, setup: Setup) -> Figures:
    """Runs a word count and measures it, at full speed or fed with rows at a rate."""
    [phase] = case.phases
    full_speed = phase.rate is None
    spark = local_session(conf=_ALL_OF_THE_JIT if full_speed else None)
    try:
        spark.conf.set("spark.sql.shuffle.partitions", "2")
        spark.conf.set("spark.sql.streaming.numRecentProgressUpdates", "100000")
        measured = _full_speed(spark, case, setup) if full_speed else _at_rate(spark, case, setup)
        return {**measured.pop("run"), "phases": {phase.name: measured}}
    finally:
        stop_session(spark)


def _full_speed(spark: Any, case: Case, setup: Setup) -> Figures:
    from pyspark.sql import functions as F  # noqa: N812 # as everybody writes it

    source = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", _ROWS_PER_BATCH[case.workload])
    rows = source.option("numPartitions", 2).load()
    if case.workload == "windows":
        counting: contextlib.AbstractContextManager[Any] = _running(_windows(rows, case.options["keys"]), "append")
    else:
        # The input's first sentences, as literals; otherwise reading files would be measured too.
        texts = F.array([F.lit(text) for text in read_sentences(str(setup.source))[:_TEXTS]])
        lines = rows.select(F.element_at(texts, (F.col("value") % _TEXTS + 1).cast("int")).alias("value"))
        counting = _counting(lines, case.workload)
    with counting as query:
        tree = ProcessTree()
        _since(query, 0)
        tree.wait(setup.jvm_warm_up)
        began, cpu, started = time.time(), tree.cpu_seconds(), time.monotonic()
        tree.wait(setup.seconds)
        used, took = tree.cpu_seconds() - cpu, time.monotonic() - started
        batches = _since(query, began)
        roots = sum(batch["numInputRows"] for batch in batches)
        seconds = sum(batch["durationMs"]["triggerExecution"] for batch in batches) / 1000
        found = figures(roots, seconds, used * seconds / took, None)
        return {**found, "run": {"memory_mb": tree.peak_memory_mb()}}


def _at_rate(spark: Any, case: Case, setup: Setup) -> Figures:
    """Feeds rows through a socket, because the rate source would hold each row back until its second is over."""
    texts = read_sentences(str(setup.source))
    feeder = Feeder(texts, case.phases[0].rate or 0)
    with contextlib.closing(feeder):
        source = spark.readStream.format("socket").option("host", "127.0.0.1").option("port", feeder.port)
        with _counting(source.load(), case.workload) as query:
            tree = ProcessTree()
            feeder.wait()
            _since(query, 0)
            tree.wait(setup.warm_up)
            began, cpu, started = time.time(), tree.cpu_seconds(), time.monotonic()
            tree.wait(setup.seconds)
            used, took = tree.cpu_seconds() - cpu, time.monotonic() - started
            latencies = [latencies_of(batch, feeder) for batch in _since(query, began)]
            all_rows = np.concatenate(latencies)
            percentiles = {f"p{p}": round(float(np.percentile(all_rows, p)), 2) for p in (50, 95, 99)}
            found = figures(len(all_rows), took, used, percentiles, batches=len(latencies))
            return {**found, "run": {"memory_mb": tree.peak_memory_mb()}}


def _windows(rows: Any, keys: int) -> Any:
    """Returns the counts by key in tumbling windows of ten seconds, as workloads/windows.py has them."""
    from pyspark.sql import functions as F  # noqa: N812 # as everybody writes it

    number = F.col("value")
    events = rows.select((number % keys).alias("key"), F.timestamp_millis(number).alias("time"))
    return events.withWatermark("time", "1 millisecond").groupBy(F.window("time", "10 seconds"), "key").count()


def _counting(lines: Any, kind: str) -> contextlib.AbstractContextManager[Any]:
    """Runs the word count over rows with a column `value`."""
    from pyspark.sql import functions as F  # noqa: N812 # as everybody writes it
    from pyspark.sql.types import ArrayType, StringType

    split = F.udf(lambda text: text.split(), ArrayType(StringType())) if kind == "Python UDF" else _split_built_in
    return _running(lines.select(F.explode(split(F.col("value"))).alias("word")).groupBy("word").count(), "update")


@contextlib.contextmanager
def _running(counts: Any, mode: str) -> Iterator[Any]:
    query = counts.writeStream.outputMode(mode).format("noop").start()
    try:
        yield query
    finally:
        query.stop()


def _split_built_in(column: Any) -> Any:
    from pyspark.sql import functions as F  # noqa: N812 # as everybody writes it

    return F.split(column, " ")


def _since(query: Any, began: float, timeout: float = _BATCH_SECS) -> list[dict[str, Any]]:
    """Returns the reports on micro-batches with rows that started after a moment; waits until there is one."""
    deadline = time.monotonic() + timeout
    while not (batches := progress.recent(query, began)):
        if time.monotonic() > deadline or not query.isActive:
            raise TimeoutError(f"no micro-batch ended within {timeout:.0f} s: {query.exception()}")
        time.sleep(0.1)
    return batches


class Feeder:
    """Writes lines to every client, at a rate, and records the times.

    Args:
        texts: the lines, again and again.
        rate: lines per second.
    """

    def __init__(self, texts: list[str], rate: float) -> None:
        self._texts = texts
        self._rate = rate
        self._server = socket.create_server(("127.0.0.1", 0))
        self.port = self._server.getsockname()[1]
        #: In parallel: the number of lines before each write, and its time.
        self._lines: list[int] = []
        self._times: list[float] = []
        self._connected = threading.Event()
        self._closed = False
        threading.Thread(target=self._feed, daemon=True).start()

    def _feed(self) -> None:
        # In some versions the query's first connection reads only the schema: only a client that stays gets lines.
        with contextlib.suppress(OSError):
            connection, _ = self._server.accept()
            with connection:
                self._connected.set()
                self._write(connection)

    def _write(self, connection: socket.socket) -> None:
        since, done = time.monotonic(), 0
        while not self._closed:
            due = int((time.monotonic() - since) * self._rate)
            if due > done:
                self._lines.append(done)
                self._times.append(time.time())
                lines = "\n".join(self._texts[number % len(self._texts)] for number in range(done, due))
                connection.sendall(f"{lines}\n".encode())
                done = due
            time.sleep(_FEED_SECS)

    def wait(self, timeout: float = 120) -> None:
        """Waits until the query has connected."""
        if not self._connected.wait(timeout):
            raise TimeoutError(f"Spark did not connect to the feeder within {timeout:.0f} s")

    def written_at(self, line: int) -> float:
        """Returns when a line was written, in seconds since the epoch."""
        return self._times[bisect.bisect_right(self._lines, line) - 1]

    def close(self) -> None:
        """Ends the connection."""
        self._closed = True
        self._server.close()


def latencies_of(batch: dict[str, Any], feeder: Feeder) -> Any:
    """Returns the ms from each row's creation to the end of its micro-batch."""
    [source] = batch["sources"]
    # Offsets of the socket source are the numbers of the last lines.
    first, last = (-1 if source[name] is None else int(source[name]) for name in ("startOffset", "endOffset"))
    return np.array([1000 * (progress.end(batch) - feeder.written_at(line)) for line in range(first + 1, last + 1)])
