"""Runs the topology of an unpacked artifact, in the driver. `main.py` calls this."""

from __future__ import annotations

import contextlib
import importlib
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn

from storm_on_spark.api.config import Config
from storm_on_spark.launch.loader import MODULE_FRONT_ENDS, Target, load, search_first
from storm_on_spark.spark.main import run_main

PYTHON_PATH = "spark.executorEnv.PYTHONPATH"
ARCHIVES = "spark.archives"


def start(
    folder: Path, job: Mapping[str, Any], archive: Path | None, unpacked: str, argv: Sequence[str] | None = None
) -> NoReturn:
    """Runs the topology to its end, and exits as `run_main` does.

    Args:
        folder: with the archive's files.
        job: content of its `job.json`.
        archive: for Spark to send to the executors; None if it does so already.
        unpacked: the name of the archive's folder there.
        argv: the arguments; None for those of the process.
    """
    target = loaded(folder, str(job["entry"]))
    settings = spark_settings(folder, archive, unpacked)
    adapt_session(settings)
    conf = {**target.conf, **job["conf"], Config.TOPOLOGY_NAME: job["name"], **settings}
    found = target.report
    run_main(
        target.topology,
        conf,
        None if found is None else lambda *arguments: target.call(found, *arguments),
        argv,
    )
    raise AssertionError("run_main exits")


def spark_settings(folder: Path, archive: Path | None, unpacked: str) -> dict[str, str]:
    """Returns the settings by which Python workers find the packages and the code.

    Spark unpacks the archive in an executor's working directory, so a relative path leads to it. Processes that Spark
    starts beside the driver have another working directory, and the absolute path.

    Example:
        >>> spark_settings(Path("/tmp/x"), None, "job")
        {'spark.executorEnv.PYTHONPATH': 'job/code:job/python:/tmp/x/code:/tmp/x/python'}
    """
    places = (unpacked, str(folder))
    path = os.pathsep.join(f"{place}/{part}" for place in places for part in ("code", "python"))
    return {PYTHON_PATH: path, **({} if archive is None else {ARCHIVES: f"{archive.as_uri()}#{unpacked}"})}


def adapt_session(settings: Mapping[str, str]) -> None:
    """Puts the settings into an existing session, as on Databricks; without one it does nothing.

    Args:
        settings: of `spark_settings`.
    """
    from pyspark.sql import SparkSession

    session = SparkSession.getActiveSession()
    if session is None:
        return
    context = session.sparkContext
    # Python processes started from now on get it.
    context.environment["PYTHONPATH"] = settings[PYTHON_PATH]
    if ARCHIVES in settings:
        context.addArchive(settings[ARCHIVES])


def loaded(folder: Path, entry: str) -> Target:
    """Returns the topology of an unpacked archive, regardless of the working directory.

    Args:
        folder: with the archive's files.
        entry: `FILE.py`, `FILE.yaml` or `package.module`, with an optional `:ATTRIBUTE`.

    Raises:
        LoadError: it can't be imported.
    """
    code = folder / "code"
    search_first(code)
    path = entry.partition(":")[0]
    if (code / path).is_file():
        return load(str(code / entry))
    # Before the loader looks in the working directory, which may have another module of that name.
    for each in MODULE_FRONT_ENDS:
        each.before_import()
    with contextlib.suppress(Exception):  # the loader reports the error
        importlib.import_module(path)
    target = load(entry)
    search_first(code)
    return target
