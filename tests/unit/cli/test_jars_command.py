"""`storm-spark jars`: what is there, what is fetched, and the sentence where nothing can be."""

from __future__ import annotations

import hashlib
import json
import zipfile
from pathlib import Path

import jsonschema
import pytest
from click.testing import CliRunner, Result

from storm_on_spark.cli.local import jars as module
from storm_on_spark.cli.main import main
from storm_on_spark.cli.reference.schema import schema_of
from storm_on_spark.spark.session import jars
from storm_on_spark.spark.session.jars import Jar, JarSet


def invoke(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["jars", *arguments])


@pytest.fixture
def asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """One set of one jar, an empty cache, and resolvers that get what is in `tmp_path / "repository"`."""
    repository = tmp_path / "repository"
    repository.mkdir()
    path = tmp_path / "thing-1.0.jar"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("a/B.class", b"code")
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    wanted = JarSet("thing", (Jar("org.example", "thing", "1.0", digest),), "nothing is fast")
    monkeypatch.setattr(module, "SETS", {"s3": wanted})
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    calls: list[str] = []

    def resolve(name: str) -> Path:
        calls.append(name)
        return repository

    monkeypatch.setattr(jars, "with_ivy", lambda *_: resolve("ivy"))
    monkeypatch.setattr(jars, "with_maven", lambda *_: resolve("maven"))
    return calls


def test_without_a_set_it_shows_what_is_there_and_fetches_nothing(asked: list[str]) -> None:
    done = invoke()
    assert (done.exit_code, done.stderr) == (0, "")
    assert done.stdout == "s3: missing (1 jar); without it nothing is fast\n"
    assert asked == []


def test_a_set_is_fetched_once(asked: list[str], tmp_path: Path) -> None:
    (tmp_path / "thing-1.0.jar").rename(tmp_path / "repository" / "thing-1.0.jar")
    done = invoke("s3")
    assert done.exit_code == 0, done.output
    assert done.stderr == "s3: fetching 1 jar ...\n"
    assert done.stdout.startswith("s3: present, 1 jar, ")
    document = json.loads(invoke("--all", "--json").stdout)
    jsonschema.validate(document, schema_of("jars"))
    assert document["error"] is None
    assert Path(document["sets"][0]["jars"][0]["path"]).is_file()
    assert asked == ["ivy"]


def test_without_a_network_a_sentence_says_what_is_missing_every_time(asked: list[str]) -> None:
    for _ in range(2):
        done = invoke("s3")
        assert done.exit_code == 1
        assert "Error: s3 can't be fetched: neither Ivy nor Maven gets these jars from here" in done.stderr
        assert done.stderr.endswith("Without s3, nothing is fast\n")
    assert asked == ["ivy", "maven"] * 2
    done = invoke("s3", "--json")
    document = json.loads(done.stdout)
    jsonschema.validate(document, schema_of("jars"))
    assert (document["sets"][0]["cached"], document["sets"][0]["jars"][0]["path"]) == (False, None)


def test_what_is_not_the_jar_that_was_tested_is_not_taken(asked: list[str], tmp_path: Path) -> None:
    (tmp_path / "repository" / "thing-1.0.jar").write_bytes(b"something else")
    assert invoke("s3", "--quiet").exit_code == 1
    assert not list((tmp_path / "cache").rglob("*.jar"))


def test_an_unknown_set_is_told_which_there_are(asked: list[str]) -> None:
    done = invoke("iceberg")
    assert done.exit_code == 2
    assert "'local-files', 's3', 'kafka', 'delta', 'kafka-broker'" in done.stderr
