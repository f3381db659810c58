"""A topology that should go on, and has no checkpoint: it is warned of, or refused."""

from __future__ import annotations

import logging
import subprocess
import sys
from collections import Counter

import pytest
from lengths import PATIENCE_SECS

from storm_on_spark import BaseBasicBolt, CheckpointError, Fields, TopologyBuilder, compile_topology
from storm_on_spark.connectors.delta import DeltaBolt
from storm_on_spark.connectors.files import FileBolt
from storm_on_spark.spark.checkpoint.temporary import check_temporary
from storm_on_spark.testing import ListSpout


class Count(BaseBasicBolt):
    def prepare(self, conf, context):
        self.counts = Counter()

    def execute(self, tup, collector):
        self.counts[tup["word"]] += 1
        collector.emit([tup["word"], self.counts[tup["word"]]])

    def declare_output_fields(self, declarer):
        declarer.declare(Fields("word", "count"))


class Show(BaseBasicBolt):
    stateless = True

    def execute(self, tup, collector): ...


class Committing(ListSpout):
    def __init__(self, committed):
        super().__init__(["a"], fields=["word"])
        self.committed = committed

    def committed_outside(self):
        return self.committed


def graph(spout, bolt, sink):
    builder = TopologyBuilder()
    builder.set_spout("words", spout)
    builder.set_bolt("count", bolt).fields_grouping("words", Fields("word"))
    if sink is not None:
        builder.set_bolt("table", sink).shuffle_grouping("count")
    return compile_topology(builder.create_topology()).graph


TYPES = {"word": "string", "count": "long"}
WORDS = ListSpout(["a"], fields=["word"])


def test_a_position_that_is_kept_elsewhere_is_not_gone_on_from_without_the_state(tmp_path):
    spout = Committing("consumer group g has committed offsets of lines (1 partition)")
    with pytest.raises(
        CheckpointError, match=r'spout "words" .* group g .* count has state, .*--checkpoint .*EARLIEST'
    ):
        check_temporary(graph(spout, Count(), None))
    check_temporary(graph(spout, Show(), None))  # nothing is lost where nothing is kept


@pytest.mark.parametrize(
    ("spout", "sink", "said"),
    [
        (Committing(""), None, 'what spout "words" has acked is not emitted again'),
        (
            ListSpout(["a"], fields=["word"]),
            DeltaBolt("/t", TYPES, keys=["word"]),
            'bolt "table" replaces rows of /t by',
        ),
        (WORDS, DeltaBolt("/t", TYPES), None),
        (WORDS, None, None),
    ],
)
def test_a_trial_is_warned_of_where_a_second_one_would_do_harm(spout, sink, said, caplog):
    with caplog.at_level(logging.WARNING):
        check_temporary(graph(spout, Count(), sink))
    assert [said in record.getMessage() for record in caplog.records] == ([] if said is None else [True])


def test_the_numbers_of_files_are_no_state_that_a_trial_loses(tmp_path, caplog):
    builder = TopologyBuilder()
    builder.set_spout("words", Committing("consumer group g has committed offsets of lines (1 partition)"))
    builder.set_bolt("files", FileBolt(tmp_path, ["word"])).shuffle_grouping("words")
    check_temporary(compile_topology(builder.create_topology()).graph)
    assert not caplog.records


JOB = """
from storm_on_spark import BaseBasicBolt, Fields, TopologyBuilder
from storm_on_spark.spark.main import run_main
from storm_on_spark.testing import ListSpout

class Committing(ListSpout):
    def committed_outside(self):
        return "group g has committed offsets"

class Count(BaseBasicBolt):
    def prepare(self, conf, context):
        self.count = 0

    def execute(self, tup, collector):
        self.count += 1

def build(conf):
    builder = TopologyBuilder()
    builder.set_spout("words", Committing(["a"], fields=["word"]))
    builder.set_bolt("count", Count()).global_grouping("words")
    return builder.create_topology()

if __name__ == "__main__":
    run_main(build)
"""


@pytest.mark.parametrize(("command", "code"), [(["-m", "storm_on_spark.cli", "run"], 2), ([], 1)])
def test_a_command_without_a_checkpoint_is_refused_before_spark_starts(tmp_path, command, code):
    job = tmp_path / "job.py"
    job.write_text(JOB)
    given = [sys.executable, *command, str(job)]
    done = subprocess.run(given, capture_output=True, text=True, cwd=tmp_path, timeout=PATIENCE_SECS, check=False)
    assert (done.returncode, done.stdout) == (code, "")
    assert 'spout "words" would continue in the middle of its input: group g has committed offsets' in done.stderr
    assert "Starting Spark" not in done.stderr
