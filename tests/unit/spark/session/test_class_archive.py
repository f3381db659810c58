"""The archive of Spark's classes: which one is used, and that a bad one only costs time."""

from __future__ import annotations

import json
import logging
import os
import subprocess
from pathlib import Path

import pytest

from storm_on_spark.spark.class_archive import _forget_old
from storm_on_spark.spark.session.jvm.class_archive import ClassArchive, find_archive, key_of
from storm_on_spark.spark.session.jvm.java import Java

NOTHING: dict[str, str] = {}


@pytest.fixture
def java(tmp_path: Path) -> Java:
    home = tmp_path / "java"
    home.mkdir()
    (home / "release").write_text('JAVA_VERSION="17.0.1"')
    return Java(home, 17)


def an_archive(java: Java, root: Path, extra: tuple[Path, ...] = ()) -> tuple[Path, Path]:
    """Puts an archive there as `make_archive` does; returns its two files."""
    root.mkdir(mode=0o700, exist_ok=True)
    key = key_of(java, extra)
    archive, described = root / f"{key}.jsa", root / f"{key}.json"
    archive.write_bytes(b"classes")
    record = {"version": 1, "bytes": 7, "class_path": ["/a.jar", "/b c.jar"], "options": ["--add-opens=x"]}
    described.write_text(json.dumps(record))
    for path in (archive, described):
        path.chmod(0o600)
    return archive, described


def test_an_archive_is_found_for_the_java_and_the_jars_that_it_was_made_for(tmp_path: Path, java: Java) -> None:
    root, jar = tmp_path / "cache", tmp_path / "first.jar"
    jar.write_bytes(b"1")
    archive, _ = an_archive(java, root, (jar,))
    found = find_archive(java, (jar,), root, NOTHING)
    assert found == ClassArchive(archive, ("/a.jar", "/b c.jar"), ("--add-opens=x",))
    assert find_archive(java, (), root, NOTHING) is None
    (tmp_path / "link").symlink_to(tmp_path)
    assert find_archive(java, (tmp_path / "link" / jar.name,), root, NOTHING) == found, "the same jar, another way"
    jar.write_bytes(b"22")
    assert find_archive(java, (jar,), root, NOTHING) is None
    jar.write_bytes(b"1")
    (java.home / "release").write_text('JAVA_VERSION="17.0.11"')
    assert find_archive(java, (jar,), root, NOTHING) is None


@pytest.mark.parametrize("variable", ["SPARK_CONF_DIR", "SPARK_SUBMIT_OPTS", "PYSPARK_SUBMIT_ARGS", "HADOOP_CONF_DIR"])
def test_where_sparks_launcher_would_read_more_it_is_left_to_do_so(tmp_path: Path, java: Java, variable: str) -> None:
    an_archive(java, tmp_path / "cache")
    harmless = {"SPARK_HOME": "/x", "SPARK_LOCAL_IP": "127.0.0.1", "JAVA_HOME": "/y", "SPARK_BUFFER_SIZE": "65536"}
    assert find_archive(java, (), tmp_path / "cache", harmless) is not None
    assert find_archive(java, (), tmp_path / "cache", {variable: "x"}) is None


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (lambda archive, described: archive.write_bytes(b"short"), "has 5 bytes instead of 7"),
        (lambda archive, described: archive.unlink(), "No such file"),
        (lambda archive, described: archive.chmod(0o620), "nobody else may have access"),
        (lambda archive, described: described.chmod(0o604), "nobody else may have access"),
        (lambda archive, described: archive.parent.chmod(0o770), "nobody else may have access"),
        (lambda archive, described: described.write_text("{"), "Expecting"),
        (lambda archive, described: described.write_text("[]"), "is not a description"),
        (lambda archive, described: described.write_bytes(b"\xff"), "codec can't decode"),
        (
            lambda archive, described: described.write_text(
                '{"version": 2, "bytes": 7, "class_path": [], "options": []}'
            ),
            "of version 1",
        ),
        (
            lambda archive, described: described.write_text(
                '{"version": 1, "bytes": 7, "class_path": [1], "options": []}'
            ),
            "is not a description",
        ),
    ],
)
def test_a_bad_archive_costs_a_warning(
    tmp_path: Path, java: Java, caplog: pytest.LogCaptureFixture, spoil: object, said: str
) -> None:
    spoil(*an_archive(java, tmp_path / "cache"))  # type: ignore[operator]
    with caplog.at_level(logging.WARNING):
        assert find_archive(java, (), tmp_path / "cache", NOTHING) is None
    (record,) = caplog.records
    assert said in record.getMessage()
    assert "python -m storm_on_spark.spark.class_archive" in record.getMessage()


def test_an_archive_behind_a_link_is_not_used(tmp_path: Path, java: Java, caplog: pytest.LogCaptureFixture) -> None:
    archive, _ = an_archive(java, tmp_path / "cache")
    elsewhere = archive.rename(tmp_path / "elsewhere")
    archive.symlink_to(elsewhere)
    with caplog.at_level(logging.WARNING):
        assert find_archive(java, (), tmp_path / "cache", NOTHING) is None
    assert caplog.records


def test_the_script_passes_everything_on(tmp_path: Path) -> None:
    home = tmp_path / "a java"
    (home / "bin").mkdir(parents=True)
    (home / "bin" / "java").write_text('#!/bin/sh\nfor each in "$@"; do echo "<$each>"; done; echo $PYTHONHASHSEED\n')
    (home / "bin" / "java").chmod(0o700)
    archive = ClassArchive(Path("/c/k.jsa"), ("/a.jar", "/b c.jar"), ("--add-opens=x",))
    script = archive.submit_script(Java(home, 17), "2g", '-Xss8m "-Da.b=c d"')
    (tmp_path / "submit").write_text(script)
    done = subprocess.run(
        ["/bin/sh", str(tmp_path / "submit"), "--conf", "a=$HOME '", "pyspark-shell"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.splitlines() == [
        *("<-cp>", f"</a.jar{os.pathsep}/b c.jar>", "<-Xmx2g>", "<-XX:SharedArchiveFile=/c/k.jsa>", "<-Xss8m>"),
        *("<-Da.b=c d>", "<--add-opens=x>", "<org.apache.spark.deploy.SparkSubmit>"),
        *("<--conf>", "<a=$HOME '>", "<pyspark-shell>", "0"),
    ]


def test_only_the_newest_archives_stay(tmp_path: Path) -> None:
    for age, name in enumerate("abcde"):
        for suffix in ("json", "jsa"):
            path = tmp_path / f"{name}.{suffix}"
            path.touch()
            os.utime(path, (1000 - age, 1000 - age))
    _forget_old(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        f"{name}.{suffix}" for name in "abc" for suffix in ("jsa", "json")
    ]
