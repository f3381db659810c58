"""Modules of jobs that use Spark."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from storm_on_spark.xd.modules import OptionError, find_module
from storm_on_spark.xd.modules.jobs.context import StepContext
from storm_on_spark.xd.modules.jobs.sparkapp import AppFailedError

pytestmark = [pytest.mark.integration, pytest.mark.spark]

CONTEXT = StepContext("nightly", "step", 1, {"day": "7"})

JVM = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""A short program ends sooner without the optimizing compiler."""

APP = """\
import sys

if sys.argv[1] == "fail":
    sys.exit(3)
from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
with open(sys.argv[2], "w") as out:
    out.write(f"{spark.sparkContext.appName} {len(spark.range(int(sys.argv[1])).collect())}")
spark.stop()
"""


def run(name: str, **options: str) -> None:
    module = find_module("job", name)
    module.component(CONTEXT, **module.values(options, "nightly"))


def test_sparksql_writes_what_a_query_answers(spark_session: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "in.csv").write_text("item,price\ntea,3\nmilk,2\ntea,4\n")
    out = tmp_path / "out"
    query = "SELECT item, sum(price) AS total FROM input GROUP BY item ORDER BY item"
    for _ in range(2):
        # A step that is run again replaces what it wrote.
        run("sparksql", input=str(tmp_path / "in.csv"), query=query, output=str(out), outputFormat="json")
    lines = [json.loads(line) for path in out.glob("*.json") for line in path.read_text().splitlines()]
    assert sorted(line["total"] for line in lines) == [2, 7]


def test_script_gets_a_session_and_the_parameters(spark_session: SparkSession, tmp_path: Path) -> None:
    source = tmp_path / "report.py"
    source.write_text(
        "def run(spark, parameters):\n"
        f"    spark.range(int(parameters['day'])).coalesce(1).write.csv({str(tmp_path / 'out')!r})\n"
    )
    run("script", location=str(source))
    assert sum(len(path.read_text().split()) for path in (tmp_path / "out").glob("*.csv")) == 7
    with pytest.raises(OptionError, match=r"expected a function other\(spark, parameters\)"):
        run("script", location=str(source), function="other")
    with pytest.raises(OptionError, match="SHA-256"):
        run("script", location=str(source), sha256="0" * 64)


def test_sparkapp_runs_an_application_with_its_arguments(tmp_path: Path) -> None:
    app, out = tmp_path / "my app.py", tmp_path / "the out"
    app.write_text(APP)
    given = {
        "appJar": str(app),
        "master": "local[1]",
        "conf": f"spark.ui.enabled=false,spark.driver.extraJavaOptions={JVM}",
    }
    run("sparkapp", programArgs=f"5 '{out}'", **given)
    assert out.read_text() == "nightly.step 5"
    with pytest.raises(AppFailedError, match="exit code 3"):
        run("sparkapp", programArgs="fail", **given)
