"""What Spark does with a query that reads a source of ours and one of its own: the measurements behind decision 26.

    python -m lab.native_sources

It prints one JSON document. Three questions:

- which of the two sources has rows in a micro-batch, when only one of them has news;
- whether a micro-batch whose driver was killed before the commit has the same rows and time when it is executed again,
  and whether rows that "fail" and are kept in the state of an operator come again once, in the next micro-batch;
- how many rows a second pass from Parquet files to a sink: natively, as Arrow batches through Python, and
  row by row through Python.
"""

from __future__ import annotations

import json
import os
import pickle
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as sf
from pyspark.sql.datasource import DataSource, SimpleDataSourceStreamReader
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

from storm_on_spark.spark.session.local import local_session

_FILES, _ROWS_PER_FILE, _REPEATS = 12, 200_000, 3
_CHUNKS = "key int, body binary"
_KEPT = "kind string, number bigint, now string"
_DEADLINE_S = 60.0


def main() -> None:
    """Measures, and prints what came out."""
    if len(sys.argv) > 1:
        {"die": _union, "go-on": _union, "rates": _rates}[sys.argv[1]](Path(sys.argv[2]))
        return
    with tempfile.TemporaryDirectory() as folder:
        _tell({part: _child(folder, part) for part in ("die", "go-on", "rates")})


def _tell(found: Mapping[str, Any]) -> None:
    sys.stdout.write(json.dumps(found) + "\n")
    sys.stdout.flush()


def _child(folder: str, part: str) -> Any:
    command = [sys.executable, "-m", "lab.native_sources", part, folder]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=part != "die")
    if part == "die" and done.returncode != -signal.SIGKILL:
        raise RuntimeError(f"the driver was to be killed, and ended with {done.returncode}")
    return [json.loads(line) for line in done.stdout.split("\n") if line.startswith("{")]


# --- two sources ---------------------------------------------------------------


def _clock(folder: str) -> type[DataSource]:
    class Reader(SimpleDataSourceStreamReader):
        """One row for each number up to the one in a file, as our source gives one where it has news."""

        def initialOffset(self) -> dict[str, int]:  # noqa: N802
            return {"at": 0}

        def read(self, start: dict[str, int]) -> tuple[Iterator[tuple[str, int]], dict[str, int]]:
            path = Path(folder, "clock")
            end = {"at": int(path.read_text()) if path.exists() else 0}
            return self.readBetweenOffsets(start, end), end

        def readBetweenOffsets(  # noqa: N802
            self, start: dict[str, int], end: dict[str, int]
        ) -> Iterator[tuple[str, int]]:
            return iter([] if start == end else [("clock", end["at"])])

    class Clock(DataSource):
        @classmethod
        def name(cls) -> str:
            return "lab-clock"

        def schema(self) -> str:
            return "kind string, number bigint"

        def simpleStreamReader(self, schema: Any) -> Reader:  # noqa: N802
            return Reader()

    return Clock


class _Keeper(StatefulProcessor):
    """Gives rows on, keeps those with an odd number as if they had failed, and gives them again next time."""

    def init(self, handle: StatefulProcessorHandle) -> None:
        self._failed = handle.getMapState("failed", "number bigint", "now string")

    def handleInputRows(self, key: Any, rows: Iterator[Row], timerValues: Any) -> Iterator[Row]:  # noqa: N802, N803
        arrived = list(rows)
        for (number,), (now,) in list(self._failed.iterator()):
            self._failed.removeKey((number,))
            yield Row(kind="again", number=number, now=now)
        for row in arrived:
            if row.kind == "native" and row.number % 2:
                self._failed.updateValue((row.number,), (row.now,))
            yield Row(kind=row.kind, number=row.number, now=row.now)

    def close(self) -> None:
        pass


def _union(folder: Path) -> None:
    spark = local_session("local[2,4]")
    spark.dataSource.register(_clock(str(folder)))
    files = folder / "files"
    files.mkdir(exist_ok=True)
    native = (
        spark.readStream.schema("number bigint").parquet(str(files)).select(sf.lit("native").alias("kind"), "number")
    )
    both = spark.readStream.format("lab-clock").load().union(native)
    stamped = both.select(sf.lit(0).alias("key"), "kind", "number", sf.current_timestamp().cast("string").alias("now"))
    kept = stamped.groupBy("key").transformWithState(_Keeper(), _KEPT, "Append", "None")
    seen: list[dict[str, Any]] = []
    to_die = sys.argv[1] == "die"

    def sink(frame: DataFrame, batch: int) -> None:
        rows = frame.collect()
        found = {
            "batch": batch,
            "clock": sum(row.kind == "clock" for row in rows),
            "native": sorted(row.number for row in rows if row.kind == "native"),
            "again": sorted(row.number for row in rows if row.kind == "again"),
            "now": sorted({str(row.now) for row in rows}),
        }
        seen.append(found)
        _tell(found)
        if to_die and found["native"] == [3, 4]:
            os.kill(os.getpid(), signal.SIGKILL)

    query = kept.writeStream.foreachBatch(sink).option("checkpointLocation", str(folder / "checkpoint")).start()
    if to_die:
        _wait_after(seen, lambda: _set(folder, 1))
        _wait_after(seen, lambda: _put(files, [1, 2]))
        _wait_after(seen, lambda: _put(files, [3, 4]))
    else:
        _wait(lambda: len(seen) == 1)
        _wait_after(seen, lambda: _put(files, [5, 6]))
    query.stop()


def _set(folder: Path, number: int) -> None:
    (folder / "clock.new").write_text(str(number))
    (folder / "clock.new").rename(folder / "clock")


def _put(folder: Path, numbers: list[int]) -> None:
    name = f"{numbers[0]}.parquet"
    pq.write_table(pa.table({"number": numbers}), folder / f".{name}")
    (folder / f".{name}").rename(folder / name)


def _wait_after(seen: list[Any], act: Callable[[], None]) -> None:
    before = len(seen)
    act()
    _wait(lambda: len(seen) > before)


def _wait(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + _DEADLINE_S
    while not condition():
        if time.monotonic() > end:
            raise TimeoutError("the micro-batch did not come")
        time.sleep(0.01)


# --- rates ---------------------------------------------------------------


def _as_arrow(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, batch.schema) as writer:
            writer.write_batch(batch)
        yield pa.record_batch([pa.array([0], pa.int32()), pa.array([sink.getvalue().to_pybytes()])], ["key", "body"])


def _by_row(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        rows = [[number, line] for number, line in zip(*(column.to_pylist() for column in batch.columns), strict=True)]
        body = pickle.dumps(rows, 5)
        yield pa.record_batch([pa.array([0], pa.int32()), pa.array([body])], ["key", "body"])


def _rates(folder: Path) -> None:
    spark = local_session("local[2,4]")
    files = folder / "lines"
    files.mkdir()
    for index in range(_FILES):
        numbers = range(index * _ROWS_PER_FILE, (index + 1) * _ROWS_PER_FILE)
        lines = [f"the cow jumped over the moon {number}" for number in numbers]
        pq.write_table(pa.table({"number": pa.array(numbers), "line": lines}), files / f"{index:02}.parquet")
    reader = spark.readStream.schema("number bigint, line string").option("maxFilesPerTrigger", 2)
    ways: dict[str, Callable[[DataFrame], DataFrame]] = {
        "native": lambda frame: frame,
        "arrow": lambda frame: frame.mapInArrow(_as_arrow, _CHUNKS),
        "rows": lambda frame: frame.mapInArrow(_by_row, _CHUNKS),
    }
    for repeat in range(_REPEATS):
        for way, through in ways.items():
            frame = through(reader.parquet(str(files)))
            query = (
                frame.writeStream.format("noop")
                .option("checkpointLocation", str(folder / f"{way}-{repeat}"))
                .trigger(availableNow=True)
                .start()
            )
            query.awaitTermination()
            # The first micro-batch starts Python's workers and compiles.
            batches = [entry for entry in query.recentProgress if entry.numInputRows][1:]
            rows = sum(entry.numInputRows for entry in batches)
            spent = sum(entry.batchDuration for entry in batches) / 1000
            executed = sum(entry.durationMs["addBatch"] for entry in batches) / 1000
            rates = {"rows_per_s": round(rows / spent), "rows_per_s_of_execution": round(rows / executed)}
            _tell({"way": way, "repeat": repeat, "rows": rows, **rates})


if __name__ == "__main__":
    main()
