"""The archive of Spark's classes with real Javas: it is made, used, and a spoilt one is no reason not to start."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from storm_on_spark.spark.session.folders.dirs import cache_dir

# Making an archive takes half a minute, and many times that on a busy machine; shorter: unit tests of its module.
pytestmark = [pytest.mark.soak, pytest.mark.timeout(1500)]

_SESSION = """
from storm_on_spark.spark.session.jvm.class_archive import find_archive
from storm_on_spark.spark.session.jars import BARE_LOCAL_FS, fetch
from storm_on_spark.spark.session.jvm.java import require_java
from storm_on_spark.spark.session import local_session, stop_session
spark = local_session("local[1]")
print(spark.range(3).count())
print(*spark.sparkContext._jvm.java.lang.management.ManagementFactory.getRuntimeMXBean().getInputArguments())
stop_session(spark)
again = find_archive(require_java(), fetch(BARE_LOCAL_FS) or ())
print(again and again.path)
"""


def run_python(*arguments: str, cache: Path) -> str:
    done = subprocess.run(
        [sys.executable, *arguments],
        env={**os.environ, "XDG_CACHE_HOME": str(cache)},
        capture_output=True,
        text=True,
        timeout=1200,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_an_archive_is_made_once_and_used_and_a_spoilt_one_is_passed_over(tmp_path: Path) -> None:
    mine = tmp_path / "storm-on-spark"
    for cache in (mine, tmp_path / "none" / "storm-on-spark"):
        cache.mkdir(parents=True)
        if (cache_dir() / "jars").is_dir():
            (cache / "jars").symlink_to(cache_dir() / "jars")
    if (cache_dir() / "classes").is_dir():
        # `make setup` has made one as a rule, which takes a minute; where it fits it is used.
        shutil.copytree(cache_dir() / "classes", mine / "classes")
    run_python("-m", "storm_on_spark.spark.class_archive", cache=tmp_path)
    made = archives(mine)
    assert made
    run_python("-m", "storm_on_spark.spark.class_archive", cache=tmp_path)
    assert archives(mine) == made

    count, arguments, again = run_python("-c", _SESSION, cache=tmp_path).splitlines()
    assert count == "3"
    archive = Path(again)
    assert archive in made, "what PySpark leaves in the environment of a process is no reason against it"
    assert f"-XX:SharedArchiveFile={archive}" in arguments
    plain = run_python("-c", _SESSION, cache=tmp_path / "none").splitlines()[1]
    assert set(options(arguments)) == set(options(plain)), "Spark's own launcher says the same"

    archive.write_bytes(bytes(archive.stat().st_size))
    assert run_python("-c", _SESSION, cache=tmp_path).splitlines()[0] == "3"


def archives(cache: Path) -> dict[Path, int]:
    """When each was written."""
    return {path: path.stat().st_mtime_ns for path in (cache / "classes").glob("*.jsa")}


def options(arguments: str) -> list[str]:
    """What is the same in every session."""
    return [
        word
        for word in arguments.split()
        if not word.startswith(("-XX:SharedArchiveFile=", '"-D', "-Dstorm", "-Djava.io"))
    ]
