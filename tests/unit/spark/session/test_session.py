"""The parts of starting a session that need no Spark."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from storm_on_spark.spark.session import jars
from storm_on_spark.spark.session.folders.dirs import cache_dir, state_dir, writable_dir
from storm_on_spark.spark.session.local import _cause
from storm_on_spark.spark.session.settings.required import required_settings, with_attempts
from storm_on_spark.spark.session.settings.started import (
    _user_path,
    merged,
    socket_setting,
    started_settings,
    with_jars,
)


@pytest.mark.parametrize(
    ("given", "used"),
    [
        ("local", "local[1,4]"),
        ("local[3]", "local[3,4]"),
        ("local[*]", "local[*,4]"),
        ("local[2,1]", "local[2,1]"),
        ("local-cluster[2,1,1024]", "local-cluster[2,1,1024]"),
        ("spark://host:7077", "spark://host:7077"),
    ],
)
def test_a_local_master_tries_a_task_again(given: str, used: str) -> None:
    assert with_attempts(given) == used


def test_settings_of_the_design() -> None:
    settings = required_settings(bare_local_fs=True)
    assert settings["spark.sql.adaptive.enabled"] == "false"
    assert settings["spark.sql.streaming.stateStore.providerClass"].endswith("RocksDBStateStoreProvider")
    assert settings["spark.hadoop.fs.file.impl"].endswith("BareLocalFileSystem")
    assert "spark.hadoop.fs.file.impl" not in required_settings()


def test_a_local_session_listens_on_loopback_only(tmp_path: Path) -> None:
    local = started_settings("local[2,4]", tmp_path / "x.log", tmp_path, None)
    assert (local["spark.driver.host"], local["spark.driver.bindAddress"]) == ("127.0.0.1", "127.0.0.1")
    assert "spark.driver.host" not in started_settings("spark://host:7077", tmp_path / "x.log", tmp_path, None)


def test_what_else_runs_on_a_local_session_has_as_many_partitions_as_task_slots(tmp_path: Path) -> None:
    key = "spark.sql.shuffle.partitions"
    assert started_settings("local[3,4]", tmp_path / "x.log", tmp_path, None)[key] == "3"
    for master in "spark://host:7077", "local-cluster[2,1,1024]":
        assert key not in started_settings(master, tmp_path / "x.log", tmp_path, None)


def test_executors_on_other_machines_get_no_folder_of_the_driver_for_their_sockets(tmp_path: Path) -> None:
    key, sockets = "spark.python.unix.domain.socket.dir", tmp_path / "sockets"
    assert socket_setting("local[2,4]", tmp_path, sockets) == {key: str(sockets)}
    assert socket_setting("local-cluster[2,1,1024]", tmp_path, tmp_path) == {key: str(tmp_path)}
    assert socket_setting("spark://host:7077", tmp_path, tmp_path) == {}
    assert socket_setting("spark://host:7077", tmp_path, sockets) == {key: "/tmp"}


def test_sockets_are_not_in_a_container_of_yarn_whose_path_is_too_long_for_them(tmp_path: Path) -> None:
    assert socket_setting("yarn", tmp_path, tmp_path) == {"spark.python.unix.domain.socket.dir": "/tmp"}


def test_executors_on_other_machines_get_the_jars_of_a_store_from_the_driver(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jars, "fetch", lambda wanted: (Path("/cache/aws.jar"), Path("/cache/bundle.jar")))
    paths, place = "/cache/aws.jar:/cache/bundle.jar", "s3a://bucket/folder"
    assert with_jars({}, place, "local[2,4]") == {
        "spark.driver.extraClassPath": paths,
        "spark.executor.extraClassPath": paths,
    }
    assert with_jars({"spark.jars": "/my.jar"}, place, "spark://host:7077") == {
        "spark.driver.extraClassPath": paths,
        "spark.jars": "/my.jar,/cache/aws.jar,/cache/bundle.jar",
    }
    own = {"spark.jars": "/my/hadoop-aws.jar"}
    assert with_jars(own, place, "spark://host:7077") == own
    assert with_jars({}, "/folder", "spark://host:7077") == {}


def test_the_users_java_options_are_added_to_ours() -> None:
    ours = {"spark.driver.extraJavaOptions": "-Xss8m", "spark.driver.extraClassPath": "/a.jar", "x": "1"}
    theirs = {"spark.driver.extraJavaOptions": "-Da=b", "spark.driver.extraClassPath": "/b.jar", "x": "2"}
    assert merged(ours, theirs) == {
        "spark.driver.extraJavaOptions": "-Xss8m -Da=b",
        "spark.driver.extraClassPath": "/a.jar:/b.jar",
        "x": "2",
    }


def test_workers_get_the_users_folders_but_not_what_is_installed(tmp_path: Path) -> None:
    assert _user_path([str(tmp_path), *sys.path, str(tmp_path), str(tmp_path / "gone")])[0] == str(tmp_path)
    assert not any("site-packages" in entry for entry in _user_path(sys.path))
    assert os.path.dirname(os.__file__) not in _user_path(sys.path)


@pytest.mark.parametrize(
    ("text", "cause"),
    [
        (
            "An error occurred while calling X.\n: org.apache.spark.SparkException: Could not parse\n\tat y",
            "SparkException: Could not parse",
        ),
        ("plain text\nmore", "plain text"),
        ("", "ValueError"),
    ],
)
def test_javas_exception_becomes_one_line(text: str, cause: str) -> None:
    assert _cause(ValueError(text)) == cause


def test_xdg_variables_count_when_they_are_absolute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "c"))
    monkeypatch.setenv("XDG_STATE_HOME", "relative")
    assert cache_dir() == tmp_path / "c" / "storm-on-spark"
    assert state_dir() == tmp_path / ".local/state/storm-on-spark"


def test_a_new_folder_is_for_its_owner_only(tmp_path: Path) -> None:
    assert writable_dir(tmp_path / "a" / "b")
    assert (tmp_path / "a" / "b").stat().st_mode & 0o777 == 0o700
