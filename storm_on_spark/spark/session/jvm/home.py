"""What Spark reads while it starts: its environment, and a `SPARK_HOME` without what makes Python start slowly."""

from __future__ import annotations

import contextlib
import os
import shlex
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from storm_on_spark.runtime.processes.parent import in_own_group
from storm_on_spark.spark.session.jvm.java import Java


def linked_home(folder: Path, submit: str | None = None) -> Path:
    """Makes a folder of links to pyspark's, without its `python`, and returns it.

    In `python` there is an archive of pyspark's modules, which Spark puts first on the path of every Python process.
    The archive has no compiled modules, so each process compiles them again. That takes 0.75 s of processor time, and a
    dozen processes are started before the first micro-batch. The installed package is the same code, compiled.
    Executors of a `local-cluster` write into this folder too.

    Args:
        folder: where the folder `spark` is made.
        submit: a script in the place of `spark-submit`; it makes the JVM lead a group of processes.
    """
    import pyspark

    home = folder / "spark"
    home.mkdir()
    for entry in Path(pyspark.__file__).parent.iterdir():
        if entry.name in ("bin", "sbin", "jars", "conf", "examples", "licenses"):
            (home / entry.name).symlink_to(entry)
    links = (home / "bin").resolve()
    (home / "bin").unlink()
    (home / "bin").mkdir()
    for entry in links.iterdir():
        (home / "bin" / entry.name).symlink_to(entry)
    (home / "bin" / "spark-submit").unlink()
    # The JVM must survive signals that a terminal sends to the foreground group, since the run drains then.
    command = shlex.join(in_own_group([str(links / "spark-submit")]))
    (home / "bin" / "spark-submit").write_text(submit or f'#!/bin/sh\nexec {command} "$@"\n')
    (home / "bin" / "spark-submit").chmod(0o700)
    return home


@contextlib.contextmanager
def environment(java: Java, scratch: Path, home: Path | None) -> Iterator[None]:
    """Sets what Spark reads from the environment while it starts; the JVM and its workers inherit it.

    Args:
        java: what Spark runs on.
        scratch: the session's temporary files.
        home: Spark's folder; None for a Spark on other machines.
    """
    wanted = {
        "JAVA_HOME": str(java.home),
        "PYSPARK_UDS_MODE": "true",
        "SPARK_LOCAL_DIRS": str(scratch / "local"),
    }
    if home is not None:
        wanted |= {
            "SPARK_LOCAL_IP": "127.0.0.1",
            # Workers here must be this interpreter: another one may lack the packages, or its pickles differ.
            "PYSPARK_PYTHON": sys.executable,
            "PYSPARK_DRIVER_PYTHON": sys.executable,
            # Not that of another Spark that the user may have installed.
            "SPARK_HOME": str(home),
        }
    before = {name: os.environ.get(name) for name in wanted}
    os.environ.update(wanted)
    try:
        yield
    finally:
        for name, old in before.items():
            if old is None:
                del os.environ[name]
            else:
                os.environ[name] = old


@contextlib.contextmanager
def temporary_files_in(scratch: Path) -> Iterator[None]:
    """Lets PySpark make its folder for the JVM's port there: when this process is killed meanwhile, it is found."""
    before, tempfile.tempdir = tempfile.tempdir, str(scratch)
    try:
        yield
    finally:
        tempfile.tempdir = before
