"""Finding and killing processes, and noticing what is left behind."""

from __future__ import annotations

import _thread
import os
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from storm_on_spark.testing import descendants, kill_one, no_leaks, python_workers, spout_hosts, wait_gone
from storm_on_spark.testing.faults.leaks import own_temporary_folder

SLEEP = "import time; time.sleep(60)"


@pytest.fixture(autouse=True)
def own_temporary_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Other programs of the machine make files in the common folder, too."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))


@pytest.fixture
def child() -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen([sys.executable, "-c", SLEEP])
    yield process
    process.kill()
    process.wait()


def test_a_child_is_found_and_killed(child: subprocess.Popen[bytes]) -> None:
    assert child.pid in [process.pid for process in descendants()]
    assert os.getpid() not in [process.pid for process in descendants()]
    assert kill_one(lambda: [child.pid], "child") == child.pid
    assert child.pid not in [process.pid for process in descendants()]
    assert child.wait() == -signal.SIGKILL


def test_grandchildren_are_found() -> None:
    code = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {SLEEP!r}])"
    parent = subprocess.Popen([sys.executable, "-c", code])
    try:
        pid = kill_one(lambda: [p.pid for p in descendants() if p.parent == parent.pid], "grandchild")
        wait_gone(pid)
    finally:
        parent.kill()
        parent.wait()


def test_there_is_nothing_of_spark_here() -> None:
    assert python_workers() == spout_hosts() == []
    with pytest.raises(TimeoutError, match=r"no spout host appeared within 0.05 s"):
        kill_one(spout_hosts, "spout host", timeout=0.05)


def test_waiting_for_a_process_has_an_end(child: subprocess.Popen[bytes]) -> None:
    with pytest.raises(TimeoutError, match=f"process {child.pid} .* is still there"):
        wait_gone(child.pid, timeout=0.02)


def test_no_leaks_passes_what_ends_in_time() -> None:
    with no_leaks():
        threading.Timer(0.05, int).start()


def test_no_leaks_names_threads_processes_and_files(tmp_path: Path) -> None:
    stop = threading.Event()
    thread = threading.Thread(target=stop.wait, name="left-thread")
    left: list[subprocess.Popen[bytes]] = []

    def leak() -> None:
        with no_leaks(timeout=0.05):
            thread.start()
            left.append(subprocess.Popen([sys.executable, "-c", SLEEP]))
            (Path(tempfile.gettempdir()) / "left-file").touch()

    try:
        with own_temporary_folder(tmp_path), pytest.raises(AssertionError) as caught:
            leak()
    finally:
        stop.set()
        thread.join()
        left[0].kill()
        left[0].wait()
    text = str(caught.value)
    assert "threads: <Thread(left-thread" in text
    assert f"processes: ({left[0].pid}, " in text
    assert "files: left-file" in text


class LogsAtItsEnd:
    """As Py4J's connection of a thread does: a record names the thread that makes it."""

    def __del__(self) -> None:
        threading.current_thread()


def test_a_thread_that_logs_as_its_last_act_is_no_leak_once_it_has_ended() -> None:
    def hold() -> None:
        mine.it = LogsAtItsEnd()

    mine, stop = threading.local(), threading.Event()
    with no_leaks(timeout=10):
        thread = threading.Thread(target=hold)
        thread.start()
        thread.join()

    def stay() -> None:
        threading.current_thread()  # Python did not start it, and knows it from here on
        known.set()
        stop.wait()

    def leak() -> None:
        with no_leaks(timeout=0.05):
            _thread.start_new_thread(stay, ())
            known.wait()

    known = threading.Event()
    try:
        with pytest.raises(AssertionError, match="threads: <_DummyThread"):
            leak()
    finally:
        stop.set()


def test_the_temporary_folder_is_put_back(tmp_path: Path) -> None:
    before = tempfile.gettempdir()
    with own_temporary_folder(tmp_path):
        assert tempfile.gettempdir() == os.environ["TMPDIR"] == str(tmp_path)
    assert tempfile.gettempdir() == before
