"""A sink that is ahead of its checkpoint: an older copy was put back, or the machine lost what was planned."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable

from storm_on_spark import CheckpointError, SinkContext
from storm_on_spark.connectors.delta import DeltaBolt
from storm_on_spark.connectors.files import FileBolt
from storm_on_spark.connectors.jdbc import JdbcBolt
from storm_on_spark.connectors.pipeline.stream import StreamBolt
from storm_on_spark.testing import BoltTester, make_tuple

COLUMNS = {"word": "string", "count": "long"}
WRITER = "words-1/out"


@dataclass
class History:
    """The plans that a checkpoint has: fingerprints by micro-batch."""

    plans: dict[int, int]

    @property
    def last(self) -> int:
        return max(self.plans, default=-1)

    def of(self, micro_batch: int) -> int | None:
        return self.plans.get(micro_batch)


@dataclass
class Kind:
    """A sink, as the driver uses it."""

    open: Callable[[SinkContext], None]
    write: Callable[[str, SinkContext], None]
    held: Callable[[], list[str]]


def table(word: str) -> pa.Table:
    return pa.table({"word": [word], "count": pa.array([1], pa.int64())})


def delta(folder: Path, **options: list[str]) -> Kind:
    place = str(folder / "delta")
    bolt = DeltaBolt(place, COLUMNS, **options)  # type: ignore[arg-type]
    return Kind(
        bolt.open_sink,
        lambda word, context: bolt.write_table(table(word), context),
        lambda: DeltaTable(place).to_pyarrow_table()["word"].to_pylist(),
    )


def jdbc(folder: Path, **options: list[str]) -> Kind:
    place = folder / "words.db"
    with contextlib.closing(sqlite3.connect(place)) as connection:
        connection.execute("CREATE TABLE IF NOT EXISTS words (word TEXT, count INTEGER)")

    def held() -> list[str]:
        with contextlib.closing(sqlite3.connect(place)) as connection:
            return [word for (word,) in connection.execute("SELECT word FROM words")]

    bolt = JdbcBolt(partial(sqlite3.connect, place), "words", COLUMNS, **options)  # type: ignore[arg-type]
    return Kind(bolt.open_sink, lambda word, context: bolt.write_table(table(word), context), held)


def stream(folder: Path) -> Kind:
    bolt = StreamBolt(folder / "stream", COLUMNS)
    return Kind(
        bolt.open_sink,
        lambda word, context: bolt.write_table(table(word), context),
        lambda: [
            word for file in (folder / "stream").glob("*.parquet") for word in pq.read_table(file)["word"].to_pylist()
        ],
    )


def restored(folder: Path, number: int) -> tuple[FileBolt, BoltTester]:
    """Returns a task's bolt whose state says which number is the next."""
    bolt = FileBolt(folder, COLUMNS, "parquet")
    tester = BoltTester(bolt)
    bolt.__dict__.update(_number=number)
    return bolt, tester


def files(folder: Path) -> Kind:
    """Its tasks write: here one that has just been restored, to the number that the micro-batch has."""
    bolt = FileBolt(folder / "files", COLUMNS, "parquet")

    def write(word: str, context: SinkContext) -> None:
        bolt.note_plan(context)
        restored(folder / "files", context.micro_batch)[1].execute(make_tuple([word, 1], ["word", "count"]))

    return Kind(
        bolt.open_sink,
        write,
        lambda: [
            word for file in (folder / "files").glob("*.parquet") for word in pq.read_table(file)["word"].to_pylist()
        ],
    )


KINDS = {
    "delta": delta,
    "delta by key": partial(delta, keys=["word"]),
    "jdbc": jdbc,
    "jdbc by key": partial(jdbc, keys=["word"]),
    "stream": stream,
    "files": files,
}


@pytest.fixture(params=KINDS)
def sink(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Kind]:
    """A sink to which micro-batches 0 to 4 were written."""
    found = KINDS[request.param](tmp_path)  # type: ignore[operator]
    found.open(SinkContext(None, WRITER, plans=History({})))
    for micro_batch in range(5):
        found.write(f"of {micro_batch}", context(micro_batch))
    return found


def context(micro_batch: int, plan: int | None = None) -> SinkContext:
    return SinkContext(None, WRITER, micro_batch, plan=100 + micro_batch if plan is None else plan)


BEFORE = [f"of {number}" for number in range(5)]


def test_what_is_executed_again_is_there_once(sink: Kind) -> None:
    sink.write("of 4", context(4))
    sink.write("of 5", context(5))
    assert sorted(sink.held()) == [*BEFORE, "of 5"]


@pytest.mark.parametrize("micro_batch", [4, 3, 1])
def test_other_tuples_under_a_number_that_is_there_are_refused_and_nothing_is_overwritten(
    sink: Kind, micro_batch: int
) -> None:
    with pytest.raises(CheckpointError, match=f"has micro-batch 4 of {WRITER}, and the checkpoint .* older than"):
        sink.write("planned anew", context(micro_batch, plan=7))
    assert sorted(sink.held()) == BEFORE


@pytest.mark.parametrize(
    "plans",
    [{}, {0: 100, 1: 101, 2: 102}, {number: 100 + number for number in range(4)}, {3: 103, 4: 7}, {3: 103, 4: 7, 5: 8}],
)
def test_a_checkpoint_that_is_older_is_refused_before_anything_is_executed(sink: Kind, plans: dict[int, int]) -> None:
    with pytest.raises(CheckpointError, match="Put back the checkpoint that belongs to it, or start with --reset-ch"):
        sink.open(SinkContext(None, WRITER, plans=History(plans)))
    assert sorted(sink.held()) == BEFORE


@pytest.mark.parametrize("plans", [{3: 103, 4: 104}, {4: 104, 5: 105}, {number: number for number in range(50, 150)}])
def test_its_own_checkpoint_is_taken_also_when_it_has_forgotten_old_plans(sink: Kind, plans: dict[int, int]) -> None:
    sink.open(SinkContext(None, WRITER, plans=History(plans)))


def test_another_checkpoint_is_another_writer(sink: Kind) -> None:
    sink.open(SinkContext(None, "words-2/out", plans=History({})))


def test_a_state_that_is_older_than_its_files_takes_nothing_back(tmp_path: Path) -> None:
    for number in range(3):
        restored(tmp_path, number)[1].execute(make_tuple(["a", 1], ["word", "count"]))
    older, _ = restored(tmp_path, 1)
    with pytest.raises(CheckpointError, match="the state is an older copy"):
        older.take_back()
    assert len(list(tmp_path.glob("*.parquet"))) == 3
