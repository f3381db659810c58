"""Optional jars: cached, checked, and never asked for twice where they can't be had."""

from __future__ import annotations

import hashlib
import logging
import zipfile
from pathlib import Path

import pytest

from storm_on_spark.spark.session import jars
from storm_on_spark.spark.session.jars import Jar, JarSet, cached, fetch


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "source.jar"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("a/B.class", b"code")
    return path


@pytest.fixture
def wanted(source: Path) -> JarSet:
    digest = hashlib.sha256(source.read_bytes()).hexdigest()
    return JarSet("test jar", (Jar("org.example", "thing", "1.0", digest),), "everything is slow")


class Resolvers:
    """Stand-ins for Ivy and Maven that count their calls."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.ivy: Path | None = None
        self.maven: Path | None = None
        self.calls: list[str] = []
        monkeypatch.setattr(jars, "with_ivy", lambda jars, scratch, _: self._give("ivy", self.ivy, scratch))
        monkeypatch.setattr(jars, "with_maven", lambda jars, scratch, _: self._give("maven", self.maven, scratch))

    def _give(self, name: str, path: Path | None, scratch: Path) -> Path:
        self.calls.append(name)
        folder = scratch / name
        folder.mkdir()
        if path is not None:
            (folder / "thing-1.0.jar").write_bytes(path.read_bytes())
        return folder


@pytest.fixture
def resolvers(monkeypatch: pytest.MonkeyPatch) -> Resolvers:
    return Resolvers(monkeypatch)


def test_a_jar_is_fetched_once(tmp_path: Path, source: Path, wanted: JarSet, resolvers: Resolvers) -> None:
    resolvers.ivy = source
    root = tmp_path / "cache" / "jars"
    assert cached(wanted, root) is None
    paths = fetch(wanted, root)
    assert paths == (root / "org.example_thing-1.0.jar",)
    assert fetch(wanted, root) == cached(wanted, root) == paths
    assert resolvers.calls == ["ivy"]
    assert [path.name for path in root.iterdir()] == ["org.example_thing-1.0.jar"]


def test_maven_is_asked_where_ivy_has_nothing(
    tmp_path: Path, source: Path, wanted: JarSet, resolvers: Resolvers
) -> None:
    resolvers.maven = source
    assert fetch(wanted, tmp_path / "cache") is not None
    assert resolvers.calls == ["ivy", "maven"]


def test_absence_is_said_once_a_day(
    tmp_path: Path, wanted: JarSet, resolvers: Resolvers, caplog: pytest.LogCaptureFixture
) -> None:
    root = tmp_path / "cache"
    with caplog.at_level(logging.WARNING):
        assert fetch(wanted, root, now=1_000_000.0) is None
        assert fetch(wanted, root, now=1_000_000.0 + 3600) is None
    assert resolvers.calls == ["ivy", "maven"]
    assert [record.getMessage() for record in caplog.records] == [
        "Spark runs without the jar of the test jar, which can't be fetched here: everything is slow."
    ]
    assert fetch(wanted, root, now=1_000_000.0 + 25 * 3600) is None
    assert len(resolvers.calls) == 4


def test_a_file_that_is_not_the_tested_one_is_not_used(
    tmp_path: Path, wanted: JarSet, resolvers: Resolvers, caplog: pytest.LogCaptureFixture
) -> None:
    other = tmp_path / "other.jar"
    with zipfile.ZipFile(other, "w") as archive:
        archive.writestr("a/B.class", b"other code")
    resolvers.ivy = other
    assert fetch(wanted, tmp_path / "cache") is None
    assert "is not the file that was tested" in caplog.text


def test_a_damaged_file_in_the_cache_is_fetched_again(
    tmp_path: Path, source: Path, wanted: JarSet, resolvers: Resolvers
) -> None:
    resolvers.ivy = source
    root = tmp_path / "cache"
    root.mkdir()
    (root / "org.example_thing-1.0.jar").write_bytes(source.read_bytes()[:50])
    assert cached(wanted, root) is None
    assert fetch(wanted, root) is not None


def test_a_cache_that_cannot_be_written_is_no_error(tmp_path: Path, wanted: JarSet, resolvers: Resolvers) -> None:
    (tmp_path / "file").write_text("in the way")
    assert fetch(wanted, tmp_path / "file" / "jars") is None
    assert resolvers.calls == []
