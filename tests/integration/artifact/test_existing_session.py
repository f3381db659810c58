"""An artifact in a program whose session is there already, as in a notebook."""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import Any

import pytest
from pyspark import SparkFiles

from storm_on_spark.artifact.start import PYTHON_PATH, adapt_session, spark_settings

pytestmark = pytest.mark.usefixtures("nothing_left_behind")


def test_workers_of_a_session_that_is_there_find_the_code(spark_session: Any, tmp_path: Path) -> None:
    (tmp_path / "code").mkdir()
    (tmp_path / "code" / "brought_along.py").write_text("WORD = 'found'")
    archive = tmp_path / "job.zip"
    with zipfile.ZipFile(archive, "w") as content:
        content.write(tmp_path / "code" / "brought_along.py", "code/brought_along.py")
    settings = spark_settings(tmp_path, archive, "job_brought_along")
    environment = spark_session.sparkContext.environment
    before = environment.get("PYTHONPATH")
    try:
        adapt_session({**settings, PYTHON_PATH: ":".join(filter(None, (settings[PYTHON_PATH], before)))})
        found = spark_session.sparkContext.parallelize([0], 1).map(lambda _: __import__("brought_along").WORD).collect()
    finally:
        if before is None:
            del environment["PYTHONPATH"]
        else:
            environment["PYTHONPATH"] = before
    assert found == ["found"]
    # On executors, whose working directory it is, the relative path leads there.
    assert Path(SparkFiles.get("job_brought_along"), "code", "brought_along.py").read_text() == "WORD = 'found'"
