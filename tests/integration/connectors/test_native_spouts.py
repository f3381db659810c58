"""Spouts whose rows Spark reads itself: all formats, rows that fail, and a driver that is killed."""

from __future__ import annotations

import json
import os
from collections import Counter

from processes import killed, script
from topologies import held, reading
from waiting import eventually

from storm_on_spark import LocalCluster, TopologyBuilder
from storm_on_spark.connectors.files import FileSpout
from storm_on_spark.connectors.sources import RateSpout
from storm_on_spark.testing import running_topology

FILES, PER_FILE = 4, 100
ROWS = FILES * PER_FILE


def test_a_row_that_fails_is_retried_alone_and_none_is_lost_or_counted_twice_when_the_driver_is_killed(
    spark_session, tmp_path
) -> None:
    source, out, checkpoint = tmp_path / "in", tmp_path / "out.json", tmp_path / "checkpoint"
    source.mkdir()
    for number in range(FILES):
        path = source / f"{number}.txt"
        path.write_text("".join(f"{row}\n" for row in range(number * PER_FILE, (number + 1) * PER_FILE)))
        os.utime(path, (1_000_000_000 + number,) * 2)
    arguments = ("-m", "topologies.reading", str(source), str(checkpoint), str(out))
    with script(tmp_path / "tmp", *arguments) as process:
        eventually(lambda: process.poll() is not None, "the driver's death")
        assert killed(process)
    assert 0 < len(json.loads(out.read_text())[0]) < ROWS, "it was to be killed in the middle"

    def found():
        return json.loads(out.read_text())

    with LocalCluster(spark_session) as cluster:
        cluster.submit_topology("reading", reading.conf_of(str(checkpoint), str(out)), reading.reading(str(source)))

        def done():
            info = cluster.get_topology_info("reading")
            assert info.error is None
            return sum(map(len, found())) == ROWS and info.pending == 0

        eventually(done, "every row counted or given up")
    seen, dead = found()
    poison = [row for row in range(ROWS) if row % 100 == 9]
    assert dead == [[row, 2] for row in poison], "given up, each once, after one retry"
    assert {int(row): times for row, times in seen.items()} == {row: 1 for row in range(ROWS) if row not in poison}


def test_every_format_and_the_rate_source_in_one_topology(nothing_left_behind, spark_session, tmp_path) -> None:
    rows = [("storm", 1), ("two words", 2), ('a "quoted", word', 3), (None, 4)]
    frame = spark_session.createDataFrame(rows, "word STRING, n BIGINT")
    for name in ("json", "parquet"):
        frame.coalesce(1).write.format(name).save(str(tmp_path / name))
    frame.coalesce(1).write.csv(str(tmp_path / "csv"), header=True, quote='"', escape='"')
    frame.select("word").na.drop().coalesce(1).write.text(str(tmp_path / "text"))

    builder = TopologyBuilder()
    builder.set_spout("rate", RateSpout(200, partitions=2))
    builder.set_spout("text", FileSpout(tmp_path / "text", fields="word"))
    options = {"csv": {"header": True, "escape": '"'}}
    for name in ("json", "csv", "parquet"):
        builder.set_spout(name, FileSpout(tmp_path / name, name, "word STRING, n BIGINT", options.get(name)))
    conf = {"topology.partitions": 1}
    expected = {name: Counter(rows) for name in ("json", "csv", "parquet")}
    expected["text"] = Counter((word,) for word, _ in rows if word is not None)

    def numbers(captured):
        return Counter(value for _, value in captured.values("rate"))

    with running_topology(builder.create_topology(), conf=conf, spark=spark_session) as running:
        last = max(numbers(running.wait_until(lambda captured: len(numbers(captured)) > 100)))
        # Tasks write rows down while a micro-batch runs: one of its numbers may be there before a smaller one is.
        captured = running.wait_until(
            lambda captured: (
                all(len(captured.values(name)) >= wanted.total() for name, wanted in expected.items())
                and numbers(captured).keys() >= set(range(last + 1))
            )
        )
    assert {name: Counter(captured.values(name)) for name in expected} == expected
    assert set(numbers(captured).values()) == {1}, "each once"


def test_a_source_is_held_while_its_rows_fail_and_reads_on_afterwards(
    nothing_left_behind, spark_session, tmp_path
) -> None:
    source, out = tmp_path / "in", tmp_path / "out"
    source.mkdir()
    out.mkdir()
    (out / "down").touch()
    files, per_file = 10, 100
    for number in range(files):
        path = source / f"{number}.txt"
        path.write_text("".join(f"{row}\n" for row in range(number * per_file, (number + 1) * per_file)))
        os.utime(path, (1_000_000_000 + number,) * 2)

    def found(name):
        return json.loads((out / name).read_text()) if (out / name).exists() else None

    with LocalCluster(spark_session) as cluster:
        conf = {"test.folder": str(out), "topology.partitions": 1, "topology.fail.fast": False}
        cluster.submit_topology("held", conf, held.held(str(source)))

        def info():
            found = cluster.get_topology_info("held")
            assert found.error is None
            return found

        eventually(lambda: info().failed > 1000, "many attempts")
        before = found("numbers")
        eventually(lambda: found("numbers") > before, "the other source reads on")
        eventually(lambda: info().failed > 2000, "more attempts")
        # Of the second file's rows some are still too few; the third is not read.
        assert found("lines")[0] == 2 * per_file
        assert info().pending == 2 * per_file, "what waits for another attempt is not done"
        cluster.deactivate("held")
        eventually(lambda: info().status == "INACTIVE", "INACTIVE")
        (out / "down").unlink()
        cluster.activate("held")
        eventually(lambda: found("lines")[0] == files * per_file and info().pending == 0, "all rows")
    assert found("lines")[1] == {str(row): 1 for row in range(files * per_file)}, "each once"
