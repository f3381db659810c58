"""Finding Java, and what is said where there is none."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from storm_on_spark.api.errors import SetupError
from storm_on_spark.spark.session.jvm import java


@pytest.fixture
def nowhere(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hides what is installed on this machine."""
    monkeypatch.setattr(java, "WHERE_SYSTEMS_PUT_IT", ())


def make_java(home: Path, version: str, *, release: bool = True) -> Path:
    binary = home / "bin" / "java"
    binary.parent.mkdir(parents=True)
    binary.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\"' >&2\n")
    binary.chmod(0o755)
    if release:
        (home / "release").write_text(f'IMPLEMENTOR="X"\nJAVA_VERSION="{version}"\n')
    return home


@pytest.mark.parametrize(
    ("text", "major"),
    [
        ('JAVA_VERSION="21.0.1"', 21),
        ('IMPLEMENTOR_VERSION="99"\nJAVA_VERSION="17"', 17),
        ('Picked up JAVA_TOOL_OPTIONS: -Dx\nopenjdk version "17.0.15" 2025-04-15', 17),
        ('java version "1.8.0_412"', 8),
        ("no java here", None),
    ],
)
def test_versions_are_read_from_release_files_and_output(text: str, major: int | None) -> None:
    assert java.parse_major(text) == major


@pytest.mark.usefixtures("nowhere")
def test_java_home_goes_before_path(tmp_path: Path) -> None:
    home, other = make_java(tmp_path / "a", "21.0.2"), make_java(tmp_path / "b", "17.0.1", release=False)
    env = {"JAVA_HOME": str(home), "PATH": str(other / "bin")}
    assert java.find_java(env) == java.Java(home, 21)
    assert java.find_java({"PATH": str(other / "bin")}) == java.Java(other, 17)


@pytest.mark.usefixtures("nowhere")
def test_one_that_is_too_old_is_passed_over(tmp_path: Path) -> None:
    old, good = make_java(tmp_path / "a", "1.8.0_1"), make_java(tmp_path / "b", "17.0.1")
    assert java.find_java({"JAVA_HOME": str(old), "PATH": str(good / "bin")}) == java.Java(good, 17)


@pytest.mark.usefixtures("nowhere")
def test_without_one_the_sentence_says_what_is_there_and_how_to_get_one(tmp_path: Path) -> None:
    assert java.find_java({"PATH": ""}) is None
    assert java.missing_sentence({"PATH": ""}).startswith("Spark needs Java 17 or 21 and there is no Java here:")
    old = make_java(tmp_path / "old", "11.0.1")
    said = java.missing_sentence({"JAVA_HOME": str(old), "PATH": ""})
    assert f"only Java 11 ({old})" in said
    assert "apt-get install openjdk-17" in said


@pytest.mark.usefixtures("nowhere")
def test_require_java_raises_that_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    monkeypatch.delenv("JAVA_HOME", raising=False)
    with pytest.raises(SetupError, match="Spark needs Java 17 or 21"):
        java.require_java()


def test_the_check_of_the_makefile_needs_nothing_installed(tmp_path: Path) -> None:
    """-I -S: no site-packages at all."""
    home = make_java(tmp_path / "j", "17.0.9")
    done = subprocess.run(
        [sys.executable, "-I", "-S", java.__file__],
        env={"JAVA_HOME": str(home), "PATH": ""},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@pytest.mark.usefixtures("nowhere")
@pytest.mark.parametrize(("version", "what"), [("11.0.1", "which is Java 11"), (None, "where there is no Java")])
def test_a_java_home_that_is_not_used_is_told(
    version: str | None,
    what: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    good, given = make_java(tmp_path / "good", "17.0.1"), tmp_path / "given"
    if version is not None:
        make_java(given, version)
    monkeypatch.setenv("PATH", str(good / "bin"))
    monkeypatch.setenv("JAVA_HOME", str(given))
    assert java.require_java() == java.Java(good, 17)
    (record,) = caplog.records
    assert record.getMessage() == (
        f"JAVA_HOME is {given}, {what}; Spark needs 17 or 21, so Java 17 at {good} is used instead."
    )
    for home in (str(good), ""):
        caplog.clear()
        monkeypatch.setenv("JAVA_HOME", home)
        assert java.require_java().home == good
        assert not caplog.records


@pytest.mark.usefixtures("nowhere")
def test_where_there_is_none_java_home_is_named_too(tmp_path: Path) -> None:
    said = java.missing_sentence({"JAVA_HOME": str(tmp_path / "gone"), "PATH": ""})
    assert f"no Java here (nor in JAVA_HOME={tmp_path / 'gone'}): install one" in said
