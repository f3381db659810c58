"""A session of Spark Connect is refused before anything is started."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

_CODE = """
from pathlib import Path
from pyspark.sql import SparkSession
spark = SparkSession.builder.remote("local[1]").config("spark.ui.enabled", "false").getOrCreate()
assert spark.range(3).count() == 3, "the server answers"

from storm_on_spark import TopologyBuilder, compile_topology
from storm_on_spark.api.errors import SetupError
from storm_on_spark.spark.session import local_session
from storm_on_spark.spark.state import state_values
from storm_on_spark.testing import CaptureBolt, ListSpout

builder = TopologyBuilder()
builder.set_spout("words", ListSpout(["storm"], fields=["word"]))
builder.set_bolt("show", CaptureBolt()).shuffle_grouping("words")
compiled = compile_topology(builder.create_topology())
calls = [
    lambda: compiled.start(spark, checkpoint="checkpoint"),
    lambda: compiled.explain("spark", spark),
    lambda: state_values(spark, "checkpoint", "version"),
    local_session,
]
for call in calls:
    try:
        call()
    except SetupError as error:
        print(error)
    else:
        raise AssertionError("it was taken")
assert not Path("checkpoint").exists()
spark.stop()
"""


def test_a_session_of_spark_connect_is_refused_before_anything_is_started(tmp_path: Path) -> None:
    env = {name: value for name, value in os.environ.items() if not name.startswith("SPARK_")}
    done = subprocess.run(
        [sys.executable, "-c", _CODE], cwd=tmp_path, env=env, capture_output=True, text=True, timeout=200, check=False
    )
    assert done.returncode == 0, done.stderr[-4000:]
    sentences = done.stdout.strip().splitlines()
    assert len(sentences) == 4
    assert all("Spark Connect" in sentence and "need" in sentence for sentence in sentences)
