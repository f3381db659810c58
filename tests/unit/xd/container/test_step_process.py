"""The process of a step, without ZooKeeper: its end, its error, its log, and what ends it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from waiting import eventually

from storm_on_spark.xd.container.jobs.orders import StepOrder
from storm_on_spark.xd.container.jobs.process import StepProcess
from storm_on_spark.xd.modules.local_registry import LocalRegistry
from storm_on_spark.xd.modules.python_files import checksum
from storm_on_spark.xd.tree.jobs import ReportNode

SOURCE = """\
import os, subprocess, sys, time
from pathlib import Path
from storm_on_spark.xd.modules import ModuleDeclaration, Option

def act(context, what, dir):
    print("acting", context.parameters)
    if what == "raise":
        raise ValueError("no such day")
    if what == "exit":
        sys.exit(7)
    if what in ("NO ROWS", "two\\nlines"):
        return what
    if what == "die":
        os.abort()
    if what == "hold":
        child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
        half = Path(dir) / "pids.tmp"
        half.write_text(f"{os.getpid()} {child.pid}")
        half.rename(Path(dir) / "pids")
        time.sleep(600)

MODULE = ModuleDeclaration("job", "act", "Acts.", act, (
    Option("what", "text", "end", "What."), Option("dir", "text", "", "Where.")))
"""

CHECKSUM = checksum(SOURCE.encode())


@pytest.fixture(autouse=True)
def home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("STORM_SPARK_XD_HOME", str(tmp_path))
    (tmp_path / "act.py").write_text(SOURCE)
    LocalRegistry(tmp_path / "modules").upload(tmp_path / "act.py")
    # The record stands in ZooKeeper only, which the process of a step does not know.
    (tmp_path / "modules" / "job" / "act.json").unlink()


class Step:
    """A step that runs."""

    def __init__(
        self,
        folder: Path,
        what: str,
        lease: float = 30.0,
        connected: Callable[[], bool] = lambda: True,
        sha256: str = CHECKSUM,
    ) -> None:
        order = StepOrder(
            job="j", step="act", execution=3, definition=f"act --what='{what}' --dir={folder}", parameters={"day": "7"},
            modules={"act": sha256}, lease=lease,
        )  # fmt: skip
        self.folder, self.log = folder, folder / "logs" / "act.log"
        self.reports: list[ReportNode] = []
        self.process = StepProcess(order, self.log, connected, self.reports.append)
        self.process.start()

    def ended(self) -> ReportNode:
        self.process.join()
        first, last = self.reports
        assert (first.status, first.log) == ("STARTED", str(self.log))
        return last

    def pids(self) -> list[int]:
        eventually((self.folder / "pids").exists)
        return [int(each) for each in (self.folder / "pids").read_text().split()]


def runs(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_a_step_that_ends_has_completed(tmp_path: Path) -> None:
    step = Step(tmp_path, "end")
    found = step.ended()
    assert (found.status, found.exit, found.error, found.exit_status) == ("COMPLETED", 0, "", "")
    assert step.log.read_text() == "acting {'day': '7'}\n"
    assert step.log.parent.stat().st_mode & 0o077 == 0, "other users can read what it printed"


def test_a_text_that_a_step_returns_is_its_exit_status(tmp_path: Path) -> None:
    found = Step(tmp_path, "NO ROWS").ended()
    assert (found.status, found.exit, found.exit_status) == ("COMPLETED", 0, "NO ROWS")


@pytest.mark.parametrize(
    ("what", "code", "error"),
    [
        ("two\nlines", 1, "ValueError: Expected an exit status of at most 200 printable characters, got 'two\\nlines'"),
        ("raise", 1, "ValueError: no such day"),
        ("exit", 7, "exit code 7"),
        ("die", -signal.SIGABRT, "the process of the step has ended: ended by signal 6; last it printed: "),
    ],
)
def test_a_step_that_fails_says_why(tmp_path: Path, what: str, code: int, error: str) -> None:
    step = Step(tmp_path, what)
    found = step.ended()
    assert (found.status, found.exit) == ("FAILED", code)
    assert found.error.startswith(error)
    assert ("Traceback" in step.log.read_text()) == (what in ("raise", "two\nlines"))


def test_a_module_that_was_changed_is_not_executed(tmp_path: Path) -> None:
    (copy,) = (tmp_path / "modules" / "files").glob("*.py")
    copy.write_text(SOURCE + "\nprint('changed')\n")
    step = Step(tmp_path, "end")
    assert (step.ended().status, step.reports[-1].exit) == ("FAILED", 1)
    assert "was changed; delete and upload it again" in step.reports[-1].error
    assert "changed\n" not in step.log.read_text().splitlines(keepends=True)


@pytest.mark.parametrize("sha256", ["../act", "0" * 64])
def test_a_checksum_without_a_file_fails_the_step(tmp_path: Path, sha256: str) -> None:
    assert Step(tmp_path, "end", sha256=sha256).ended().status == "FAILED"


def test_a_step_that_is_stopped_ends_with_its_children(tmp_path: Path) -> None:
    step = Step(tmp_path, "hold")
    pids = step.pids()
    step.process.end("STOPPED", "it was stopped")
    assert (step.ended().status, step.reports[-1].error) == ("STOPPED", "it was stopped")
    assert not any(map(runs, pids))


def test_a_step_ends_itself_once_its_container_is_silent(tmp_path: Path) -> None:
    alive = threading.Event()
    alive.set()
    step = Step(tmp_path, "hold", lease=2.0, connected=alive.is_set)
    pids = step.pids()
    assert all(map(runs, pids))
    alive.clear()
    assert (step.ended().status, step.reports[-1].exit) == ("FAILED", -signal.SIGKILL)
    assert not any(map(runs, pids))


CONTAINER = """\
import sys
from pathlib import Path
from storm_on_spark.xd.container.jobs.orders import StepOrder
from storm_on_spark.xd.container.jobs.process import StepProcess
folder = Path(sys.argv[1])
order = StepOrder(job="j", step="act", execution=3, definition=f"act --what=hold --dir={folder}", parameters={},
                  modules={"act": sys.argv[2]}, lease=3.0)
process = StepProcess(order, folder / "log", lambda: True, lambda report: None)
process.start()
process.join()
"""


@pytest.mark.parametrize("fault", [signal.SIGKILL, signal.SIGSTOP])
def test_a_step_ends_with_its_container(tmp_path: Path, fault: signal.Signals) -> None:
    container = subprocess.Popen([sys.executable, "-c", CONTAINER, str(tmp_path), CHECKSUM], start_new_session=True)
    try:
        eventually((tmp_path / "pids").exists)
        pids = [int(each) for each in (tmp_path / "pids").read_text().split()]
        assert all(map(runs, pids))
        os.kill(container.pid, fault)
        eventually(lambda: not any(map(runs, pids)))
    finally:
        container.kill()
        container.wait()
