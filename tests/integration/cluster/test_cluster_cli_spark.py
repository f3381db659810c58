"""The development cluster with real drivers: what its users type, and that nothing of it is left."""

from __future__ import annotations

import json
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from dev_processes import COMMAND, ROOT, Dev, wait_until

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


@pytest.fixture(scope="module")
def dev(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Dev]:
    found = Dev(tmp_path_factory.mktemp("dev"), "-c", "spark.driver.memory=512m")
    try:
        found.start()
        yield found
    finally:
        found.kill()


def drivers(dev: Dev) -> set[psutil.Process]:
    return {process for process in dev.processes() if "storm_on_spark.cluster.driver" in process.cmdline()}


def test_word_count_as_it_is_typed(dev: Dev) -> None:
    done = dev.run("submit", "jobs/word_count.py", "--wait")
    assert done.returncode == 0, done.stderr
    shown = done.stderr.splitlines()
    stages = ("compiling", "uploading", "code on", "scheduling", "starting its driver", "first batch")
    reached = [next((n for n, line in enumerate(shown) if stage in line), None) for stage in stages]
    # What is over at once may not be seen.
    seen = [number for number in reached if number is not None]
    assert len(seen) >= 4, done.stderr
    assert seen == sorted(seen)
    assert "has worked off its first batch on 127.0.0.1:67" in done.stdout or "is complete" in done.stdout

    page = dev.document("status", "word-count")
    assert page["driverStatus"] in ("ACTIVE", "COMPLETED")
    assert "word-count" in dev.storm_spark("list")
    assert "the topology runs" in dev.storm_spark("logs", "word-count")
    assert dev.document("logs", "word-count", "-n", "2")["lines"] != []


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
        assert json.loads(following.stdout.readline())["line"]
        dev.storm_spark("kill", "word-count", "-w", "0")
        said, told = following.communicate(timeout=60)
        assert (following.returncode, told) == (0, "word-count is gone.\n")
        assert all(json.loads(line)["line"] is not None for line in said.splitlines())
    finally:
        following.kill()
        following.communicate()
    wait_until(lambda: not drivers(dev), lambda: f"{drivers(dev)} run", 30)


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
    assert dev.document("status", "broken")["driverStatus"] == "FAILED"
    assert "only-here.txt" in dev.storm_spark("logs", "broken")
    dev.storm_spark("kill", "broken", "-w", "0")


def test_drivers_and_their_sockets_go_with_a_cluster_that_is_killed(dev: Dev) -> None:
    done = dev.run("submit", "jobs/word_count.py", "--inactive", "--wait", "--name", "again")
    assert done.returncode == 0, done.stderr
    assert "is ready on 127.0.0.1:67" in done.stdout
    running = drivers(dev)
    assert running
    start = time.monotonic()
    assert dev.end(signal.SIGKILL)[0] == -signal.SIGKILL
    # One that has ended, and that nobody has asked for yet, still counts as running for psutil.
    assert not running & dev.processes()
    assert time.monotonic() - start < 30
