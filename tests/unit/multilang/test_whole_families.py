"""What a child starts ends with it, also what has left its session: real processes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from waiting import eventually

from storm_on_spark.multilang import ShellBolt, launcher
from storm_on_spark.runtime.processes.sessions import started_at
from storm_on_spark.testing import BoltTester, make_tuple

COMPONENTS = Path(__file__).parent / "components"
FAMILY = """
import os, subprocess, sys, time
from pathlib import Path

sleep = [sys.executable, "-c", "import time; time.sleep(600)"]
plain = subprocess.Popen(sleep, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
daemon = subprocess.Popen(
    [sys.executable, "-c", f"import subprocess as s; print(s.Popen({sleep!r}, start_new_session=True).pid)"],
    stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, start_new_session=True,
)
orphan = daemon.stdout.readline().strip()
daemon.wait()
Path(sys.argv[1] + ".part").write_text(f"{os.getpid()} {plain.pid} {orphan}")
Path(sys.argv[1] + ".part").rename(sys.argv[1])
"""
WORKER = """
import os, subprocess, sys
child = subprocess.Popen(
    [sys.executable, "-I", "-S", sys.argv[1], str(os.getpid()), sys.executable, "-c", sys.argv[2], sys.argv[3]],
    start_new_session=True,
)
print(child.pid, flush=True)
sys.exit(child.wait() % 256)
"""


def family(file: Path) -> list[int]:
    """Returns the ids of a command, of its child, and of one that has left its session and lost its parent."""
    eventually(file.exists, "the command has started its children")
    found = [int(pid) for pid in file.read_text().split()]
    assert all(started_at(pid) is not None for pid in found)
    return found


def all_gone(pids: list[int]) -> None:
    eventually(lambda: all(started_at(pid) is None for pid in pids), f"one of {pids} is left")


@pytest.fixture
def worker(tmp_path: Path) -> Iterator[Callable[[str], subprocess.Popen[str]]]:
    running: list[subprocess.Popen[str]] = []

    def start(then: str) -> subprocess.Popen[str]:
        code = [launcher.__file__, FAMILY + then, str(tmp_path / "family")]
        process = subprocess.Popen([sys.executable, "-c", WORKER, *code], stdout=subprocess.PIPE, text=True)
        running.append(process)
        return process

    yield start
    for process in running:
        process.kill()
        process.communicate()


def test_a_killed_worker_takes_grandchildren_and_daemons_along(
    worker: Callable[[str], subprocess.Popen[str]], tmp_path: Path
) -> None:
    process = worker("time.sleep(600)")
    pids = family(tmp_path / "family")
    assert process.stdout is not None
    process.kill()
    all_gone([int(process.stdout.readline()), *pids])


@pytest.mark.parametrize(("then", "code"), [("sys.exit(3)", 3), ("os.kill(os.getpid(), 15)", 256 - signal.SIGTERM)])
def test_a_command_that_ends_leaves_nothing_and_its_end_is_told(
    worker: Callable[[str], subprocess.Popen[str]], tmp_path: Path, then: str, code: int
) -> None:
    process = worker(then)
    assert process.wait(60) == code
    all_gone([int(pid) for pid in (tmp_path / "family").read_text().split()])


def test_a_thread_that_ends_leaves_the_child_that_it_has_started(tmp_path: Path) -> None:
    found: list[BoltTester[ShellBolt]] = []

    def start() -> None:
        found.append(BoltTester(ShellBolt([sys.executable, "bad.py", "nothing"], ["word"], directory=str(COMPONENTS))))
        found[0].execute(make_tuple(["a"], fields=["word"]))

    thread = threading.Thread(target=start)
    thread.start()
    thread.join()
    (kit,) = found
    with kit:
        pid = kit.bolt.pid
        assert pid is not None
        begun = started_at(pid)
        # The kernel has sent the same by now: once more, in case this worker's threads are known to it otherwise.
        os.kill(pid, launcher.PARENT_DIED)
        kit.execute(make_tuple(["b"], fields=["word"]))
        assert (kit.bolt.pid, started_at(pid)) == (pid, begun)
        assert kit.collector.values() == [("a",), ("b",)]
    all_gone([pid])
