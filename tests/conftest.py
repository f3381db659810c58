"""What all tests share: the order of the tiers, and no leftovers.

`tests/unit` needs no Spark and takes seconds, `tests/plan` compares plans with golden files,
`tests/integration` runs Spark.
"""

from __future__ import annotations

import gc
import importlib
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

sys.path.insert(0, str(Path(__file__).parent))
importlib.import_module("lengths")  # the profiles of property tests
left_sockets = importlib.import_module("left_sockets")

_TIERS = ("unit", "plan", "integration")
_GRACE_SECS = 30.0
_SPARE_FILES = 16
"""Files that a test may leave open: modules and loggers keep some."""


@pytest.fixture(scope="session", autouse=True)
def state_folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Keeps the token and the clusters of whoever runs the tests out of them."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("state")))
        yield


def pytest_configure(config: pytest.Config) -> None:
    """Watches sockets, and lets Ctrl-C reach the programs under test.

    A shell that starts the tests in the background ignores SIGINT, and a process inherits what is ignored from its
    parent.
    """
    left_sockets.watch()
    config.pluginmanager.register(left_sockets)
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN and threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """Hides from the garbage collector what lives as long as the run: thousands of tests, and all modules.

    To look through them takes it more than a second, and more than a third of the time in which they are collected. A
    test with a session of Spark has it look, see `no_leaks`, while what the test has started waits for its end.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Runs the quick tiers first and marks everything under tests/integration with `integration` and `spark`.

    The cluster's tests there mark themselves with `spark`: most start processes, but no session.
    """
    root = Path(__file__).parent

    def tier(item: pytest.Item) -> int:
        folder = item.path.relative_to(root).parts[0] if item.path.is_relative_to(root) else "unit"
        if folder == "integration":
            item.add_marker(pytest.mark.integration)
            if not item.path.is_relative_to(root / "integration" / "cluster"):
                item.add_marker(pytest.mark.spark)
        return _TIERS.index(folder) if folder in _TIERS else 0

    items.sort(key=tier)


@pytest.fixture(autouse=True)
def no_leftovers(request: pytest.FixtureRequest) -> Iterator[None]:
    """Fails a test that leaves a thread or a child process running, or many files open.

    Tests with a Spark session of their fixture are looked at as a whole where that fixture ends: Spark's own
    threads and workers come and go.
    """
    if request.node.get_closest_marker("spark"):
        yield
        return
    threads, children, files = set(threading.enumerate()), _children(), _open_files()
    yield
    # Some libraries' loops can't wait for a file whose number is above 1023: py4j's is one, and it waits in silence.
    assert _open_files() <= files + _SPARE_FILES
    deadline = time.monotonic() + _GRACE_SECS
    while time.monotonic() < deadline:
        left = [thread for thread in threading.enumerate() if thread not in threads and not thread.daemon]
        running = _children() - children
        if not left and not running:
            return
        time.sleep(0.02)
    pytest.fail(f"left running: threads {left}, processes {running}")


def _open_files() -> int:
    return len(os.listdir("/proc/self/fd"))


def _children() -> set[psutil.Process]:
    # For most tests Linux answers that there is none. psutil asks every process of the machine for its parent.
    if not any(map(_children_of_thread, os.listdir("/proc/self/task"))):
        return set()
    return {p for p in psutil.Process().children(recursive=True) if p.status() != psutil.STATUS_ZOMBIE}


def _children_of_thread(thread: str) -> bytes:
    try:
        return Path("/proc/self/task", thread, "children").read_bytes()
    except (FileNotFoundError, ProcessLookupError):  # it has ended since
        return b""
