"""A checkpoint that is older than what was written with it: refused with each sink, and right again with its own."""

from __future__ import annotations

import contextlib
import json
import shutil
import sqlite3
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable
from topologies import numbered
from waiting import eventually

from storm_on_spark import CheckpointError, compile_topology
from storm_on_spark.connectors.delta import DeltaBolt
from storm_on_spark.connectors.files import FileBolt
from storm_on_spark.connectors.jdbc import JdbcBolt
from storm_on_spark.connectors.pipeline.stream import StreamBolt
from storm_on_spark.testing import run_topology

TYPES = {"n": "long"}


def delta(folder: Path):
    return DeltaBolt(folder / "table", TYPES), lambda: DeltaTable(folder / "table").to_pyarrow_table()["n"].to_pylist()


def jdbc(folder: Path):
    connect = partial(sqlite3.connect, folder / "numbers.db")

    def held():
        with contextlib.closing(connect()) as connection:
            return [n for (n,) in connection.execute("SELECT n FROM numbers")]

    with contextlib.closing(connect()) as connection:
        connection.execute("CREATE TABLE numbers (n INTEGER)")
    return JdbcBolt(connect, "numbers", TYPES), held


def files(folder: Path):
    def held():
        lines = [line for file in (folder / "files").glob("*.json") for line in file.read_text().split("\n")]
        return [json.loads(line)["n"] for line in lines if line]

    return FileBolt(folder / "files", ["n"]), held


def stream(folder: Path):
    def held():
        return [n for file in (folder / "stream").glob("*.parquet") for n in pq.read_table(file)["n"].to_pylist()]

    return StreamBolt(folder / "stream", TYPES), held


def last_of(folder: Path) -> int:
    return max((int(path.name) for path in folder.glob("*") if path.name.isdecimal()), default=-1)


# Each kind and each profile, and each pair where there is time: both are told by one comparison.
@pytest.mark.parametrize(
    ("kind", "profile"),
    [
        *[(delta, "latency"), (jdbc, "realtime"), (files, "realtime"), (stream, "latency")],
        pytest.param(delta, "realtime", marks=pytest.mark.soak),
        pytest.param(jdbc, "latency", marks=pytest.mark.soak),
        pytest.param(files, "latency", marks=pytest.mark.soak),
        pytest.param(stream, "realtime", marks=pytest.mark.soak),
    ],
)
def test_an_older_checkpoint_is_refused_and_nothing_is_lost_or_there_twice(
    nothing_left_behind, spark_session, tmp_path, kind: Callable[[Path], tuple], profile: str
):
    sink, held = kind(tmp_path)
    checkpoint, older, newer = (tmp_path / name for name in ("checkpoint", "older", "newer"))

    def run(limit):
        conf = {
            "topology.checkpoint.dir": str(checkpoint),
            "test.limit": limit,
            "topology.durability": "machine",
            "topology.profile": profile,
        }
        return run_topology(numbered.numbers_to(sink), conf=conf, spark=spark_session, capture=[])

    def put_back(copy):
        shutil.rmtree(checkpoint)
        shutil.copytree(copy, checkpoint)

    run(20)
    shutil.copytree(checkpoint, older)
    run(40)
    shutil.copytree(checkpoint, newer)
    assert sorted(held()) == list(range(40))

    put_back(older)
    with pytest.raises(CheckpointError, match="Put back the checkpoint that belongs to it, or start with --reset"):
        run(60)

    # The machine died, and of the last micro-batches the disk has nothing. On a slow machine the very last one is for
    # timeouts and has no tuples: a sink need not notice the loss of that one alone.
    put_back(newer)
    for name in ("commits", "offsets"):
        for lost in range(last_of(older / "offsets") + 1, last_of(newer / "offsets") + 1):
            (checkpoint / name / str(lost)).unlink(missing_ok=True)
            (checkpoint / name / f".{lost}.crc").unlink(missing_ok=True)
    with pytest.raises(CheckpointError, match="older than what was written with it"):
        run(60)
    assert sorted(held()) == list(range(40)), "nothing was written, and nothing overwritten"

    put_back(newer)
    run(60)
    assert sorted(held()) == list(range(60))


@pytest.mark.slow
def test_files_of_a_topology_in_real_time_have_each_tuple_once_when_it_goes_on_with_another_profile(
    nothing_left_behind, spark_session, tmp_path
):
    """A file for each round would stay beside the one that a micro-batch of the other profile writes for them all."""
    sink, held = files(tmp_path)
    checkpoint = tmp_path / "checkpoint"
    topology = numbered.numbers_to(sink, every=0.01)
    realtime = {"topology.profile": "realtime", "topology.state.checkpoint.interval.ms": 5000, "test.limit": 100_000}

    query = compile_topology(topology, realtime).start(spark_session, "filing", checkpoint=checkpoint)
    try:
        for _ in range(2):  # what is live begins after the first micro-batches
            known = last_of(checkpoint / "commits")
            eventually(lambda known=known: last_of(checkpoint / "commits") > known)
        acked = query.status_info().acked
        eventually(lambda: query.status_info().acked > acked + 100)
    finally:
        query.stop()

    latency = {"topology.profile": "latency", "test.limit": max(held()) + 100}
    query = compile_topology(topology, latency).start(spark_session, "filing", checkpoint=checkpoint)
    try:
        query.awaitTermination(60)
    finally:
        query.stop()
    # The spout was ahead of the files, perhaps also of the limit.
    assert sorted(held()) == list(range(max(held()) + 1))
