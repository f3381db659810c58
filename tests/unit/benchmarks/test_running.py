"""How cases are run: what they are, what feeds them, what is measured, and what is said when something is missing."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest
from lengths import PATIENCE_SECS

from lab.benchmarks.cases import CASES, Case
from lab.benchmarks.contenders import NotThereError, Setup, bytewax, storm
from lab.benchmarks.harness import Pace, play
from lab.benchmarks.measures import ProcessTree, grown, sizes
from lab.benchmarks.studies.soak import Sample, ratios
from lab.benchmarks.workloads.data import WORDS_PER_SENTENCE, read_sentences, sentences, sentences_file
from lab.benchmarks.workloads.feed import Control, Numbers
from lab.benchmarks.workloads.topologies import WORKLOADS

ROOT = Path(__file__).parents[3]


def test_the_input_is_the_same_for_all(tmp_path: Path) -> None:
    texts = read_sentences(str(sentences_file(tmp_path / "sentences.txt")))
    assert texts == sentences()
    assert {len(text.split()) for text in texts} == {WORDS_PER_SENTENCE}


def test_every_workload_compiles(tmp_path: Path) -> None:
    source = str(sentences_file(tmp_path / "sentences.txt"))
    ours = [case for case in CASES.values() if case.contender == "ours"]
    assert {case.workload for case in ours} == set(WORKLOADS)
    for case in ours:
        sys.path.insert(0, str(ROOT / "jobs"))
        try:
            assert WORKLOADS[case.workload]("control.json", source, case.options)
        finally:
            sys.path.remove(str(ROOT / "jobs"))


class Collector:
    def __init__(self) -> None:
        self.emitted: list[tuple[list[object], object]] = []

    def emit(self, values: list[object], message_id: object) -> None:
        self.emitted.append((values, message_id))


def test_a_feed_follows_its_control(tmp_path: Path) -> None:
    control = Control(tmp_path / "control.json")
    control.set(0)
    feed, collector = Numbers(str(control.path), str(sentences_file(tmp_path / "sentences.txt"))), Collector()
    feed.open({}, None, collector)
    for _ in range(10):
        feed.next_tuple()
    assert collector.emitted == []
    control.set(None)
    deadline = time.monotonic() + PATIENCE_SECS
    while len(collector.emitted) < 2500 and time.monotonic() < deadline:
        feed.next_tuple()
    assert collector.emitted[:2] == [([0], 0), ([1], 1)]
    assert len(collector.emitted) == 2500


def test_processor_time_of_children_counts_after_their_end() -> None:
    tree = ProcessTree()
    before = tree.cpu_seconds()
    subprocess.run([sys.executable, "-c", "sum(range(10**7))"], check=True)
    assert tree.cpu_seconds() - before > 0.01


def test_processor_time_of_a_child_that_nobody_waits_for_counts_as_it_was_last_seen() -> None:
    burning = "import time\nwhile time.process_time() < 0.4: pass\nprint(flush=True)\ninput()"
    ignoring = (
        "import signal, subprocess, sys\n"
        "signal.signal(signal.SIGCHLD, signal.SIG_IGN)\n"
        f"subprocess.Popen([sys.executable, '-c', {burning!r}])\n"
        "signal.pause()\n"
    )
    parent = subprocess.Popen([sys.executable, "-c", ignoring], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    with parent, contextlib.ExitStack() as stack:
        stack.callback(parent.kill)
        assert parent.stdin
        assert parent.stdout
        tree = ProcessTree(parent.pid)
        parent.stdout.readline()
        before = tree.cpu_seconds()
        assert before >= 0.3
        parent.stdin.write(b"end\n")
        parent.stdin.flush()
        while psutil.Process(parent.pid).children():
            time.sleep(0.01)
        assert before <= tree.cpu_seconds() < before + 0.3


def test_memory_of_children_is_told_apart() -> None:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as child:
        tree = ProcessTree()
        tree.wait(0.1)
        assert tree.memory_mb()["python"] > 0
        assert tree.open_files() > 3
        child.communicate(b"\n")
    peaks = tree.peak_memory_mb()
    assert peaks["driver"] > 0
    assert peaks["python"] > 0
    assert peaks["jvm"] == 0


def test_bytes_that_came_to_a_folder(tmp_path: Path) -> None:
    (tmp_path / "grows").write_bytes(b"12")
    (tmp_path / "goes").write_bytes(b"12345")
    before = sizes(tmp_path)
    (tmp_path / "grows").write_bytes(b"1234")
    (tmp_path / "goes").unlink()
    (tmp_path / "new").mkdir()
    (tmp_path / "new" / "file").write_bytes(b"123")
    assert grown(before, sizes(tmp_path)) == 5


def test_a_setup_survives_the_way_to_its_process(tmp_path: Path) -> None:
    setup = Setup(tmp_path / "source", tmp_path, 1.5, 2.0, 3.0, 4.0)
    assert Setup.from_dict(json.loads(json.dumps(setup.to_dict()))) == setup


def test_a_case_that_fails_is_told_and_the_rest_goes_on() -> None:
    missing = Case("not in the list", "ours", "word count", ())
    told: list[str] = []
    kept: list[int] = []
    keep = lambda outcomes: kept.append(len(outcomes[missing.name].runs))  # noqa: E731
    outcomes = play([missing], Pace(rounds=2), told.append, keep)
    assert kept == [1, 2]
    outcome = outcomes[missing.name]
    assert outcome.runs == [None, None]
    assert outcome.problems[0].startswith("not in the list ended with exit code 1: ")
    assert "KeyError: 'not in the list'" in outcome.problems[0]
    assert len(told) == 2


def test_storm_without_maven_is_a_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from storm_on_spark.spark.session.jvm.java import require_java

    monkeypatch.setenv("JAVA_HOME", str(require_java().home))
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(storm, "BUILD", tmp_path)
    with pytest.raises(NotThereError, match="there is no mvn here"):
        storm.prepare(python=False)


def test_storm_that_can_not_be_fetched_is_a_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    maven = tmp_path / "mvn"
    maven.write_text("#!/bin/sh\necho 'no route to host'\nexit 1\n")
    maven.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setattr(storm, "BUILD", tmp_path)
    with pytest.raises(NotThereError, match="could not be fetched and built: no route to host"):
        storm.prepare(python=False)


@pytest.mark.slow
def test_bytewax_that_can_not_be_installed_is_a_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bytewax, "_BUILD", tmp_path / "bytewax")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    with pytest.raises(NotThereError, match=r"bytewax==.* could not be installed for Python 3\.\d+: .*bytewax"):
        bytewax.prepare()
    assert not (tmp_path / "bytewax" / "bytewax==0.21.1").exists()


def test_latencies_of_bytewax_are_read_from_its_buckets() -> None:
    assert bytewax.percentiles({0: 90, 32: 8, -32: 0, 320: 2}) == {"p50": 1.0, "p95": 2.0, "p99": 1024.0}
    assert bytewax.percentiles({}) is None


def sample(number: int, memory: float, batch: float, checkpoint: float) -> Sample:
    return Sample(number, 1000 * number, memory, {}, batch, checkpoint, 10, 500)


def test_a_soak_compares_the_last_quarter_with_the_second() -> None:
    settling = [sample(n, 500, 300, 1) for n in range(4)]
    flat = [sample(n, 1000, 100, 10 + n % 2) for n in range(4, 12)]
    grown_since = [sample(n, 1100, 200, 22) for n in range(12, 16)]
    found = ratios([*settling, *flat, *grown_since])
    assert found == {"memory_mb": 1.1, "batch_ms": 2.0, "checkpoint_mb": 2.0, "open_files": 1.0}


def test_the_command_lists_the_cases() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "lab.benchmarks", "--list"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert [line[20:] for line in done.stdout.splitlines()] == list(CASES)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--only", "nothing"), "no case has 'nothing' in its name"),
        (("--from", "earlier.json", "--rounds", "1"), "--from continues at the pace of its file"),
    ],
)
def test_options_without_a_meaning_are_refused(options: tuple[str, ...], words: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "lab.benchmarks", *options], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert words in done.stderr
