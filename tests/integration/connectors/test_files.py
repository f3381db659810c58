"""`FileBolt` on real Spark: what it writes is there once, also when the driver dies between file and commit."""

from __future__ import annotations

import re

import pytest
from processes import kill_group, killed, script
from topologies import filing
from waiting import eventually

from storm_on_spark import Fields, LocalCluster, SetupError, TopologyBuilder
from storm_on_spark.connectors.files import FileBolt
from storm_on_spark.testing import ListSpout, run_topology


# As with the files of streams, which `test_pipeline.py` shows.
@pytest.mark.soak
def test_a_driver_killed_between_a_file_and_its_commit_leaves_each_tuple_once(spark_session, tmp_path):
    folder, checkpoint, noted = tmp_path / "out", tmp_path / "checkpoint", tmp_path / "noted"
    arguments = ("-m", "topologies.filing", str(folder), str(checkpoint), str(noted))
    with script(tmp_path / "tmp", *arguments) as process:
        eventually(lambda: noted.exists() or process.poll() is not None, "the third file")
        kill_group(process)
        assert killed(process), "the topology ended before the fault"
    written = {file.name: file.stat().st_ino for file in folder.glob("*.json")}
    assert len(written) == 3

    with LocalCluster(spark_session) as cluster:
        conf = filing.conf_of(str(checkpoint), str(noted))
        cluster.submit_topology("filing", conf, filing.filing(str(folder)))
        assert cluster.await_completion("filing", 120)
        info = cluster.get_topology_info("filing")
    assert (info.status, info.failed) == ("COMPLETED", 0)

    again = [name for name, inode in sorted(written.items()) if (folder / name).stat().st_ino != inode]
    assert again == sorted(written)[-1:], "the file that was not committed, and it alone, is written again"
    rows = sorted(row["n"] for row in spark_session.read.json(str(folder)).collect())
    assert rows == list(range(filing.COUNT))


def test_several_tasks_write_csv_that_spark_reads(nothing_left_behind, spark_session, tmp_path):
    rows = [('a "quoted" word', 1), ("two\nlines, a comma", 2), ("ü", 3), (None, 4)]
    builder = TopologyBuilder()
    builder.set_spout("words", ListSpout(rows, fields=["word", "n"]))
    builder.set_bolt("files", FileBolt(tmp_path / "out", ["n", "word"], "csv"), 2).fields_grouping("words", Fields("n"))

    captured = run_topology(builder.create_topology(), spark=spark_session, capture=[])

    assert sorted(captured.acked()) == [0, 1, 2, 3]
    reader = spark_session.read.options(header=True, multiLine=True, escape='"').schema("n int, word string")
    assert sorted((row.n, row.word) for row in reader.csv(str(tmp_path / "out")).collect()) == [
        (n, word) for word, n in rows
    ]


def test_a_folder_that_cannot_be_written_ends_the_topology_which_goes_on_from_its_checkpoint(spark_session, tmp_path):
    (tmp_path / "out").write_text("in the way")
    conf = {"topology.checkpoint.dir": str(tmp_path / "checkpoint")}
    builder = TopologyBuilder()
    builder.set_spout("words", ListSpout(["a"], fields=["word"]))
    builder.set_bolt("files", FileBolt(tmp_path / "out", ["word"])).shuffle_grouping("words")
    topology = builder.create_topology()

    with pytest.raises(SetupError, match=re.escape(str(tmp_path / "out"))):
        run_topology(topology, conf=conf, spark=spark_session, capture=[])
    (tmp_path / "out").unlink()
    captured = run_topology(topology, conf=conf, spark=spark_session, capture=[])

    assert len(captured.acked()) == 1
    assert [file.read_text() for file in (tmp_path / "out").glob("*.json")] == ['{"word": "a"}\n']
