"""Spouts and bolts of the libraries for Python, JavaScript and Ruby: Storm's, unmodified from Maven, and our own."""

from __future__ import annotations

import hashlib
import logging
import shutil
import sys
import tempfile
import time
import zipfile
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from fetching import need, run
from lengths import PATIENCE_SECS

from storm_on_spark import CountMetric, TopologyBuilder
from storm_on_spark.api.task.collector import OutputCollector
from storm_on_spark.api.task.context import TopologyContext
from storm_on_spark.multilang import ShellBolt, ShellSpout
from storm_on_spark.testing import BoltTester, SpoutTester, make_tuple, running_topology
from storm_on_spark.testing.faults.leaks import no_leaks, own_temporary_folder

SOURCES = Path(__file__).parent / "adapters"
BUILD = Path(__file__).parents[3] / "build"

PROGRAMS: dict[str, Callable[[], str]] = {
    "py": lambda: sys.executable,
    "js": lambda: need("node", "nodejs"),
    "rb": lambda: need("ruby", "ruby"),
}


class CountingShellBolt(ShellBolt):
    """Registers the metric that its child reports, as Storm wants it."""

    def prepare(self, conf: Mapping[str, Any], context: TopologyContext, collector: OutputCollector) -> None:
        super().prepare(conf, context, collector)
        self.hits = context.register_metric("hits", CountMetric(), 1)


@pytest.fixture(scope="module", params=["of Storm", "of ours"])
def adapters(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with storm.py, storm.js and storm.rb as Storm's release has them, or without: ours are found then."""
    if request.param == "of ours":
        return tmp_path_factory.mktemp("none")
    pom = SOURCES / "pom.xml"
    folder = BUILD / f"storm-adapters-{hashlib.sha256(pom.read_bytes()).hexdigest()[:16]}"
    if not folder.is_dir():
        maven = need("mvn", "maven")
        BUILD.mkdir(exist_ok=True)
        # Renamed when it is whole.
        with tempfile.TemporaryDirectory(dir=BUILD) as scratch:
            jars, new = Path(scratch, "jars"), Path(scratch, "new")
            copy = "org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy-dependencies"
            run([maven, "-B", "-q", "-f", str(pom), copy, f"-DoutputDirectory={jars}"])
            new.mkdir()
            for name in PROGRAMS:
                (jar,) = jars.glob({"py": "*-python-*", "js": "*-javascript-*", "rb": "*-ruby-*"}[name])
                with zipfile.ZipFile(jar) as archive:
                    (new / f"storm.{name}").write_bytes(archive.read(f"resources/storm.{name}"))
            new.rename(folder)
    return folder


@pytest.fixture
def resources(adapters: Path, tmp_path: Path) -> str:
    """A folder with Storm's libraries, and the bolts and spouts that use them."""
    folder = tmp_path / "resources"
    shutil.copytree(adapters, folder)
    for name in PROGRAMS:
        shutil.copy(SOURCES / f"bolt.{name}", folder)
        shutil.copy(SOURCES / f"spout.{name}", folder)
    return str(folder)


@pytest.fixture(params=PROGRAMS)
def bolt(request: pytest.FixtureRequest, resources: str, tmp_path: Path) -> Iterator[tuple[str, BoltTester]]:
    """A bolt of the library for one language: the library's name, and its tester."""
    name = request.param
    program = PROGRAMS[name]()
    streams = {"default": ["word"], "tasks": ["tasks"]}
    shell = CountingShellBolt([program, f"bolt.{name}"], streams, directory=resources)
    tester = BoltTester(shell, [word("x")], name="says", conf={"test.suffix": "!"})
    with own_temporary_folder(tmp_path), no_leaks(), tester as kit:
        yield f"storm.{name}", kit


def word(text: str) -> Any:
    return make_tuple([text], ["word"], component="words")


def errors(kit: BoltTester) -> str:
    return "\n".join(error.message for error in kit.collector.ledger.errors)


def settled(kit: BoltTester, count: int) -> None:
    """Turns until the child has acked or failed so many: with storm.js it may be after its answer to a heartbeat."""
    deadline = time.monotonic() + PATIENCE_SECS
    while len(kit.collector.acked) + len(kit.collector.failed) < count:
        assert time.monotonic() < deadline, (kit.collector.emitted, errors(kit))
        kit.execute()


def test_emits_acks_fails_logs_errors_and_metrics(
    bolt: tuple[str, BoltTester], caplog: pytest.LogCaptureFixture
) -> None:
    library, kit = bolt
    with caplog.at_level(logging.INFO):
        kit.execute(*map(word, ["ant", "fail", "log", "error", "metric", "bee"]))
    done = ["ant", "log", "error", "metric", "bee"]
    settled(kit, len(done) + 1)
    assert [tup["word"] for tup in kit.collector.acked] == done
    assert [tup["word"] for tup in kit.collector.failed] == ["fail"]
    assert kit.collector.values() == [(f"{text}!",) for text in done]
    # Nobody takes the stream in a test of one bolt, so no task got its tuples; each emit was answered in its turn.
    assert len(kit.collector.values("tasks")) == len(done)
    assert [emission.anchors[0]["word"] for emission in kit.collector.emitted if emission.stream == "default"] == done
    assert [record.levelname for record in caplog.records if f"a warning from {library}" in record.message] == [
        "WARNING"
    ]
    assert f"an error from {library}" in errors(kit)
    assert kit.bolt.hits.get_value_and_reset() == 3


def test_an_exception_ends_the_child_and_the_next_tuple_has_a_new_one(bolt: tuple[str, BoltTester]) -> None:
    library, kit = bolt
    kit.execute(word("ant"), word("raise"))
    assert [tup["word"] for tup in kit.collector.failed][-1:] == ["raise"]
    assert f"raised in {library}" in errors(kit)
    before = len(kit.collector.acked) + len(kit.collector.failed)
    kit.execute(word("bee"))
    settled(kit, before + 1)
    assert kit.collector.values()[-1] == ("bee!",)
    assert kit.collector.acked[-1]["word"] == "bee"


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_spout_hears_of_acks_and_fails(
    name: str, resources: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    spout = ShellSpout([PROGRAMS[name](), f"spout.{name}"], ["word"], directory=resources)
    with (
        own_temporary_folder(tmp_path),
        no_leaks(),
        SpoutTester(spout, conf={"test.word": "bee"}) as kit,
        caplog.at_level(logging.INFO),
    ):
        emissions = emitted(kit, 3)
        assert [(each.message_id, each.values) for each in emissions] == [
            (f"{name}1", ("ant",)),
            (f"{name}2", ("fail",)),
            (f"{name}3", ("bee",)),
        ]
        kit.ack(f"{name}1")
        kit.fail(f"{name}2")
        assert [(each.message_id, each.values) for each in emitted(kit, 1)] == [(f"{name}2", ("again",))]
    assert f"storm.{name} was told of the ack of {name}1" in caplog.text


def emitted(kit: SpoutTester, count: int) -> list[Any]:
    found: list[Any] = []
    deadline = time.monotonic() + PATIENCE_SECS
    while len(found) < count:
        assert time.monotonic() < deadline, found
        found += kit.next_tuple()
    return found


def test_spouts_and_bolts_of_all_libraries_in_one_topology_on_spark(
    resources: str, nothing_left_behind: None, spark_session: Any
) -> None:
    builder = TopologyBuilder()
    for name, program in PROGRAMS.items():
        builder.set_spout(f"words-{name}", ShellSpout([program(), f"spout.{name}"], ["word"], directory=resources))
    streams = {"default": ["word"], "tasks": ["tasks"]}
    for name, program in PROGRAMS.items():
        bolt = builder.set_bolt(name, ShellBolt([program(), f"bolt.{name}"], streams, directory=resources))
        for source in PROGRAMS:
            bolt.shuffle_grouping(f"words-{source}")
    conf = {"test.word": "bee", "test.suffix": "!"}
    with running_topology(builder.create_topology(), conf=conf, spark=spark_session, capture=list(PROGRAMS)) as running:
        captured = running.wait_until(lambda captured: len(captured.acks) == 3 * len(PROGRAMS))
        assert sorted(captured.acked()) == [f"{name}{number}" for name in sorted(PROGRAMS) for number in (1, 2, 3)]
        assert sorted(captured.failed()) == [f"{name}2" for name in sorted(PROGRAMS)]
        for name in PROGRAMS:
            expected = {word: len(PROGRAMS) for word in ("ant!", "bee!", "again!")}
            assert Counter(word for (word,) in captured.values(name)) == expected, name
