"""The development cluster with real drivers: what its users type, and that nothing of it is left."""

from __future__ import annotations

import contextlib
import json
import re
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import psutil
import pytest
from dev_processes import COMMAND, ROOT, Dev, wait_until
from topologies import counted_windows

from storm_on_spark.cli.reference.schema import schema_of

pytestmark = pytest.mark.spark

BROKEN = """
from pathlib import Path
from storm_on_spark import TopologyBuilder
from storm_on_spark.testing import ListSpout

WORDS = Path("only-here.txt").read_text().split()

def build(conf):
    builder = TopologyBuilder()
    builder.set_spout("words", ListSpout(WORDS, fields=["word"]))
    return builder.create_topology()
"""
READING_LINE = 6

RAISING = """
from storm_on_spark import BaseBasicBolt, TopologyBuilder
from storm_on_spark.testing import ListSpout


class Count(BaseBasicBolt):
    def execute(self, tup, collector):
        print("looking at", tup["word"])
        self.look_up(tup["word"])

    def look_up(self, word):
        return {"storm": 1}[word]


def build(conf):
    builder = TopologyBuilder()
    builder.set_spout("words", ListSpout(["storm", "spark"], fields=["word"]))
    builder.set_bolt("count", Count()).shuffle_grouping("words")
    return builder.create_topology()
"""
LOOKING_LINE = 12

MOVING = """
import os
import time
from storm_on_spark import BaseBasicBolt, BaseRichSpout, TopologyBuilder


class Numbers(BaseRichSpout):
    # Goes on until a file is there; then it says how many numbers it has emitted.
    def open(self, conf, context, collector):
        self.collector, self.enough = collector, conf["moving.enough"]
        self.number, self.ended = 0, False

    def next_tuple(self):
        time.sleep(0.002)
        if not self.ended:
            self.ended = os.path.exists(self.enough)
            self.collector.emit([self.number, self.ended], message_id=self.number)
            self.number += 1

    def declare_output_fields(self, declarer):
        declarer.declare(["number", "ended"])


class Count(BaseBasicBolt):
    def prepare(self, conf, context):
        self.counted = self.sum = 0

    def execute(self, tup, collector):
        number, ended = tup.values
        self.counted += 1
        self.sum += number
        if ended:
            print(f"of {number + 1} it has counted {self.counted}, with sum {self.sum}.")


def build(conf):
    builder = TopologyBuilder()
    builder.set_spout("numbers", Numbers())
    builder.set_bolt("count", Count()).shuffle_grouping("numbers")
    return builder.create_topology()
"""


@pytest.fixture(scope="module")
def dev(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Dev]:
    """With two Pacemakers: heartbeats of drivers on Spark go there, and pages have them from there."""
    found = Dev(tmp_path_factory.mktemp("dev"), "--pacemakers", "2", "-c", "spark.driver.memory=512m")
    try:
        found.start()
        yield found
    finally:
        found.kill()


def drivers(dev: Dev) -> set[psutil.Process]:
    found = set()
    for process in dev.processes():
        with contextlib.suppress(psutil.NoSuchProcess):  # it has ended meanwhile, or is a zombie
            if "storm_on_spark.cluster.driver" in process.cmdline():
                found.add(process)
    return found


@pytest.fixture(scope="module")
def word_count(dev: Dev) -> subprocess.CompletedProcess[str]:
    """Has word count run, whichever of its tests are chosen; returns what submit said."""
    done = dev.run("submit", "jobs/word_count.py", "--wait")
    assert done.returncode == 0, done.stderr
    return done


def test_word_count_as_it_is_typed(dev: Dev, word_count: subprocess.CompletedProcess[str]) -> None:
    done = word_count
    shown = done.stderr.splitlines()
    stages = ("compiling", "uploading", "code on", "scheduling", "starting its driver", "first batch")
    reached = [next((n for n, line in enumerate(shown) if stage in line), None) for stage in stages]
    # What is over at once may not be seen.
    seen = [number for number in reached if number is not None]
    assert len(seen) >= 4, done.stderr
    assert seen == sorted(seen)
    assert "has done its first micro-batch on 127.0.0.1:67" in done.stdout or "is complete" in done.stdout

    page = dev.document("status", "word-count")
    assert page["driverStatus"] in ("ACTIVE", "COMPLETED")
    executed = [stage for operator in page["plan"]["operators"] for stage in operator["stages"]]
    assert executed == [stage["index"] for stage in page["plan"]["stages"]] != []
    assert "word-count" in dev.storm_spark("list")
    assert "the topology runs" in dev.storm_spark("logs", "word-count")
    assert dev.document("logs", "word-count", "-n", "2")["lines"] != []


@pytest.mark.usefixtures("word_count")
def test_its_heartbeats_are_in_a_pacemaker_and_pages_show_them(dev: Dev) -> None:
    topology = dev.document("status", "word-count")["id"]

    def writers() -> list[str]:
        page = dev.document("cluster")
        assert (page["heartbeatStore"], page["heartbeatsUnknownSince"]) == ("pacemaker", None)
        assert [each["awaySince"] for each in page["pacemakers"]] == [None, None]
        return [name for each in page["pacemakers"] for name in each["writers"] if name.startswith(topology)]

    wait_until(writers, lambda: f"no driver's name: {dev.document('cluster')}")
    [of_its_driver] = writers()
    (conf,) = dev.temporary.glob("storm-spark-dev-*/nimbus-1/conf.yaml")
    folder = f"/workerbeats/{topology}"
    listed = dev.document("heartbeats", "list", folder, "--conf", conf)
    assert [f"{topology}/{name}" for name in listed["names"]] == [of_its_driver]
    found = dev.document("heartbeats", "get", f"{folder}/{listed['names'][0]}", "--conf", conf)["heartbeat"]
    assert found["topology_id"] == topology
    assert found["info"]["status"] in ("ACTIVE", "COMPLETED")
    refused = dev.ask("heartbeats", "list", folder, "--conf", conf, "-c", "pacemaker.auth.method=NONE")
    assert refused.exit_code == 1
    assert "not authorized" in refused.output


@pytest.mark.usefixtures("word_count")
def test_a_log_is_followed_until_the_topology_is_gone(dev: Dev) -> None:
    following = subprocess.Popen(
        [*COMMAND, "logs", "word-count", "-f", "-n", "1", "--json"],
        env=dev.environment,
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert following.stdout is not None
        first = following.stdout.readline()
        assert "line" in json.loads(first), first
        dev.storm_spark("kill", "word-count", "-w", "0")
        said, told = following.communicate(timeout=60)
        assert (following.returncode, told) == (0, "word-count is gone.\n")
        for line in said.splitlines():
            jsonschema.validate(json.loads(line), schema_of("logs"))
    finally:
        following.kill()
        following.communicate()
    wait_until(lambda: not drivers(dev), lambda: f"{drivers(dev)} run")


def test_one_that_fails_ends_the_wait_with_the_reason(dev: Dev, tmp_path: Path) -> None:
    (tmp_path / "broken.py").write_text(BROKEN)
    (tmp_path / "only-here.txt").write_text("a b")
    done = subprocess.run(
        [*COMMAND, "submit", "broken.py", "--wait", "--json"],
        env=dev.environment,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 1, done.stderr
    assert "only-here.txt" in json.loads(done.stdout)["error"]
    assert "only-here.txt" in dev.storm_spark("errors", "broken")
    errors = [error for found in dev.document("errors", "broken")["errors"].values() for error in found]
    assert errors
    for error in errors:
        assert (Path(error["file"]).name, error["line"]) == ("broken.py", READING_LINE)
        assert "only-here.txt" in error["trace"].splitlines()[-1]
    said = dev.storm_spark("errors", "broken") + dev.storm_spark("logs", "broken", "-n", "1000")
    assert said.count(f'broken.py", line {READING_LINE}, in ') >= 2
    assert dev.document("status", "broken")["driverStatus"] == "FAILED"
    assert "only-here.txt" in dev.storm_spark("logs", "broken")
    dev.storm_spark("kill", "broken", "-w", "0")


def test_an_exception_in_a_bolt_names_the_line_of_its_code_wherever_one_looks(dev: Dev, tmp_path: Path) -> None:
    (tmp_path / "raising.py").write_text(RAISING)
    done = dev.run("submit", str(tmp_path / "raising.py"), "--wait")
    assert done.returncode == 0, done.stderr
    wait_until(lambda: dev.document("errors", "raising")["errors"].get("count"), lambda: "no errors")
    (error, *_) = dev.document("errors", "raising")["errors"]["count"]
    assert (Path(error["file"]).name, error["line"]) == ("raising.py", LOOKING_LINE)
    assert error["error"] == "component \"count\" (task 1) failed in execute: KeyError: 'spark'"
    assert (error["input"], error["beforeRestart"]) == ("('spark',)", False)
    lines = error["trace"].splitlines()
    assert 'return {"storm": 1}[word]' in error["trace"]
    assert [line.rpartition(" ")[2] for line in lines if line.startswith("  File ")] == ["execute", "look_up"]
    said, logged = dev.storm_spark("errors", "raising"), dev.storm_spark("logs", "raising", "-n", "1000")
    for text in (said, logged):
        assert f'raising.py", line {LOOKING_LINE}, in look_up' in text
    assert re.search(r"^[0-9-]{10} [0-9:]{8},[0-9]{3} \[count:1\] looking at spark$", logged, re.MULTILINE)
    dev.storm_spark("kill", "raising", "-w", "0")


@pytest.mark.soak
def test_a_drained_supervisor_loses_no_tuple_and_counts_none_twice(dev: Dev, tmp_path: Path) -> None:
    (tmp_path / "moving.py").write_text(MOVING)
    enough = tmp_path / "enough"
    done = dev.run("submit", tmp_path / "moving.py", "--name", "moving", "--wait", "-c", f"moving.enough={enough}")
    assert done.returncode == 0, done.stderr

    def page() -> dict[str, Any]:
        return dev.document("status", "moving", "--window", ":all-time")

    def acked() -> int:
        return sum(spout["acked"] for spout in page()["spouts"])

    def where() -> str:
        return "".join(worker["supervisorId"] for worker in page()["workers"])

    wait_until(acked, page)
    first, before = where(), acked()
    dev.storm_spark("drain", first)
    wait_until(lambda: where() not in ("", first), page)
    wait_until(lambda: acked() > before, page)
    enough.touch()

    def counted() -> re.Match[str] | None:
        said = dev.storm_spark("logs", "moving", "-n", "1000")
        return re.search(r"of (\d+) it has counted (\d+), with sum (\d+)\.", said)

    wait_until(counted, page)
    found = counted()
    assert found is not None
    number, *has = map(int, found.groups())
    assert has == [number, number * (number - 1) // 2]
    wait_until(lambda: acked() == number, page)
    [count] = page()["bolts"]
    assert (count["executed"], count["acked"], count["failed"]) == (number, number, 0)
    dev.storm_spark("drain", first, "--undo")
    dev.storm_spark("kill", "moving", "-w", "0")
    wait_until(lambda: not drivers(dev), lambda: f"{drivers(dev)} run")


@pytest.mark.soak
def test_windows_go_on_over_a_rebalance_and_a_killed_driver(dev: Dev, tmp_path: Path) -> None:
    done = dev.run(
        "submit", counted_windows.__file__, "--inactive", "--wait", "--name", "held", "-c", f"windows.notes={tmp_path}"
    )
    assert done.returncode == 0, done.stderr
    assert "is ready on 127.0.0.1:67" in done.stdout
    dev.storm_spark("activate", "held")
    evaluated: set[int] = set()

    def committed() -> int:
        return max((int(path.name) for path in dev.temporary.rglob("held-*/**/commits/[0-9]*")), default=-1)

    def more_windows(gone: set[psutil.Process]) -> set[psutil.Process]:
        """Returns the new drivers, once other processes than before have evaluated windows, and these are committed."""

        def windows() -> list[counted_windows.Note]:
            return [note for note in counted_windows.notes_in(tmp_path) if note.pid not in evaluated]

        wait_until(lambda: len(windows()) > 2, lambda: dev.storm_spark("logs", "held", "-n", "50"))
        evaluated.update(note.pid for note in windows())
        last = committed() + 1
        wait_until(lambda: committed() >= last, lambda: dev.storm_spark("logs", "held", "-n", "50"))
        return drivers(dev) - gone

    first = more_windows(set())
    dev.storm_spark("rebalance", "held", "-w", "0", "-n", "2")
    second = more_windows(first)
    for driver in second:
        driver.kill()
    assert second
    assert more_windows(first | second)
    notes = counted_windows.notes_in(tmp_path)
    counted_windows.check_exact(notes)
    assert sum(note.number == 1 for note in notes) == 1, "a driver began anew"
    dev.storm_spark("kill", "held", "-w", "0")


def test_drivers_and_their_sockets_go_with_a_cluster_that_is_killed(dev: Dev) -> None:
    done = dev.run("submit", "jobs/word_count.py", "--inactive", "--wait", "--name", "again")
    assert done.returncode == 0, done.stderr
    assert "is ready on 127.0.0.1:67" in done.stdout
    running = drivers(dev)
    assert running
    assert dev.end(signal.SIGKILL)[0] == -signal.SIGKILL
    # One that has ended, and that nobody has asked for yet, still counts as running for psutil.
    assert not running & dev.processes()
