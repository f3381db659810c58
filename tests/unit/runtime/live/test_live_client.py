"""What is asked of the live process; one that can't start is told of, once."""

from __future__ import annotations

import dataclasses
import logging
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import psutil
import pytest
import stormtest
from endless import Endless
from stormtest import ExecutorHost, Spouts
from waiting import eventually

from storm_on_spark.runtime.batches.live_process import Spent, Status
from storm_on_spark.runtime.batches.metrics.round_times import RoundTimes
from storm_on_spark.runtime.batches.offsets import Offset
from storm_on_spark.runtime.codec import chunk
from storm_on_spark.runtime.codec.chunk import Kind
from storm_on_spark.runtime.live import client
from storm_on_spark.runtime.live.client import LiveClient, socket_of, started
from storm_on_spark.runtime.live.messages import Adopt
from storm_on_spark.runtime.live.processes.watch import LiveWatch
from storm_on_spark.runtime.processes.run_folder import (
    MOST_SOCKET_PATH,
    make_private,
    new_start_id,
    remove_run_folder,
)
from storm_on_spark.runtime.reports.report import Failure
from storm_on_spark.runtime.run.settings import SpoutSettings
from storm_on_spark.runtime.spouts.messages import GoLive, Message, Progress
from storm_on_spark.runtime.spouts.spout_host import Executor
from storm_on_spark.runtime.spouts.task_loop import TaskLoop
from storm_on_spark.runtime.tracking.acker import ACKED
from storm_on_spark.runtime.tracking.ids import root_base


@pytest.fixture
def start_id() -> Iterator[str]:
    start_id = uuid.uuid4().hex
    yield start_id
    remove_run_folder(start_id)


def start_and_wait(live: LiveClient, start_id: str) -> subprocess.Popen[bytes]:
    """Starts a live process, and returns it once it listens."""
    live.start(1)
    _, process = client.started[start_id]
    while not live.listens():
        assert process.poll() is None
        time.sleep(0.01)
    return process


def test_a_live_process_that_ends_at_once_is_logged_once(
    start_id: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(sys, "executable", "/bin/false")
    monkeypatch.setattr(client, "_START_SECS", 0.0)
    for _ in range(3):
        LiveClient(start_id).start(1)
        _, process = client.started[start_id]
        process.wait(60)
    [record] = [record for record in caplog.records if record.levelno == logging.WARNING]
    assert "the live process can't be started: it ended with status 1" in record.getMessage()


def test_a_path_that_is_too_long_for_a_socket_is_logged_once_and_reported(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(client, "socket_of", lambda start_id: Path("/", "long" * 30, start_id))
    start_id = uuid.uuid4().hex
    live = LiveClient(start_id)
    live.start(1)
    live.start(1)
    [record] = caplog.records
    assert "are allowed; set TMPDIR" in record.getMessage()
    reported: list[Failure] = []
    with LiveWatch(start_id, lambda: None, reported.extend):
        [failure] = eventually(lambda: reported)
    assert failure.message == record.getMessage()


def test_the_driver_of_a_development_cluster_may_have_a_live_process(monkeypatch: pytest.MonkeyPatch) -> None:
    slot = "/tmp/storm-spark-dev-12345678/supervisor-1/supervisor/slots/6700/tmp"
    monkeypatch.setattr(tempfile, "tempdir", slot)
    assert len(os.fsencode(client.socket_of(new_start_id()))) <= MOST_SOCKET_PATH


def test_a_path_that_is_just_short_enough_is_listened_at(start_id: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with tempfile.TemporaryDirectory(dir="/tmp") as short:
        folder = Path(short) / "x"
        # Linux takes 107, and the name from which it is moved is two longer.
        missing = 105 - len(str(folder / Path(*socket_of(start_id).parts[-2:])))
        folder = folder.with_name("x" * (1 + missing))
        folder.mkdir()
        monkeypatch.setenv("TMPDIR", str(folder))
        monkeypatch.setattr(tempfile, "tempdir", None)
        live = LiveClient(start_id)
        assert len(str(live.path)) == 105
        process = start_and_wait(live, start_id)
        process.send_signal(signal.SIGHUP)
        assert process.wait(60) == 0


def test_only_a_socket_on_which_nobody_listens_is_removed(start_id: str, monkeypatch: pytest.MonkeyPatch) -> None:
    live = LiveClient(start_id)
    make_private(live.path.parent)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(live.path))
        listener.listen(0)
        monkeypatch.setattr(client, "ANSWER_SECS", 0.05)
        with socket.socket(socket.AF_UNIX) as other:
            other.connect(str(live.path))  # the only one that may wait
            assert live.barrier(Offset(), {}) is None
            assert live.listens(), "it is only slow to accept"
    assert live.barrier(Offset(), {}) is None
    assert not live.listens()


def sleep_or_listen(secs: float | None, live: LiveClient) -> None:
    """Sleeps while a process starts; for None, until it listens."""
    if secs is None:
        eventually(live.listens)
    else:
        time.sleep(secs)


@pytest.mark.parametrize("secs", [0.0, 0.3, None])
def test_a_process_that_is_to_end_while_it_starts_leaves_no_folder(start_id: str, secs: float | None) -> None:
    live = LiveClient(start_id)
    live.start(2)
    _, process = client.started[start_id]
    sleep_or_listen(secs, live)
    process.send_signal(signal.SIGHUP)  # as Spark's daemon does when its executor is gone
    assert process.wait(60) == 0
    assert not live.path.parent.exists()


@pytest.mark.parametrize("secs", [0.0, 0.3, None])
def test_a_process_beside_a_driver_that_is_killed_leaves_no_folder(start_id: str, secs: float | None) -> None:
    code = "\n".join(
        [
            "import os, sys, time",
            "from storm_on_spark.runtime.live.client import LiveClient",
            "from storm_on_spark.runtime.processes.run_folder import owned_run_folder",
            "with owned_run_folder(sys.argv[1]):",
            "    print(LiveClient(sys.argv[1]).start(2, beside=os.getpid()).pid, flush=True)",
            "    time.sleep(100)",
        ]
    )
    folder = socket_of(start_id).parent
    with subprocess.Popen([sys.executable, "-c", code, start_id], stdout=subprocess.PIPE, text=True) as driver:
        assert driver.stdout is not None
        process = psutil.Process(int(driver.stdout.readline()))
        assert folder.exists()
        sleep_or_listen(secs, LiveClient(start_id))
        driver.kill()
    psutil.wait_procs([process], timeout=20)
    assert not process.is_running()
    assert not folder.exists()


def test_a_watch_looks_until_its_end_and_reports_that_the_process_is_gone(start_id: str) -> None:
    live = LiveClient(start_id)
    looks: list[Status | None] = [None]
    reported: list[Failure] = []

    def look() -> Status | None:
        looks.append(live.look(0, time.monotonic()))
        return looks[-1]

    with LiveWatch(start_id, look, reported.extend, 0.01):
        process = start_and_wait(live, start_id)
        eventually(lambda: looks[-1] is not None)
        known = len(looks)
        eventually(lambda: len(looks) > known + 5)
        assert not reported
        process.kill()
        eventually(lambda: reported)
    [failure] = reported
    assert (failure.component, failure.fatal) == ("__system", False)
    assert f"the live process {process.pid} ended unexpectedly (killed by SIGKILL)" in failure.message


def test_the_end_of_an_idle_process_is_noticed_between_two_looks(
    start_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("storm_on_spark.runtime.live.processes.watch._IDLE_LOOKS", 1 << 20)
    reported: list[Failure] = []
    looks: list[int] = []
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        monkeypatch.setitem(started, start_id, (0.0, process))

        def look() -> Status | None:
            looks.append(process.pid)
            if process.poll() is None:
                return Status(process.pid, live=True)
            # As where the driver starts another one at once.
            started[start_id] = (0.0, None)
            return None

        with LiveWatch(start_id, look, reported.extend, 0.01):
            eventually(lambda: len(looks) == 2)
            process.kill()
            eventually(lambda: reported)
    assert f"the live process {process.pid} ended unexpectedly (killed by SIGKILL)" in reported[0].message


@pytest.fixture
def live_spouts(start_id: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Spouts, LiveClient]]:
    """A spout, and the live process that has its readers and that nobody is on a line to."""
    spouts = Spouts(Endless(), tmp_path, {"topology.profile": "realtime"}, partitions=1)
    spec = dataclasses.replace(spouts.worker.spec, folder=str(tmp_path), start_id=start_id)
    spouts.folder = tmp_path / "spouts" / str(spouts.task_id)
    monkeypatch.setenv("PYTHONPATH", str(Path(stormtest.__file__).parent))  # the bolts' module
    asked = LiveClient(spec.start_id)
    process = start_and_wait(asked, spec.start_id)
    assert asked.look(0, time.monotonic()).live is False
    assert asked.adopt(Adopt(spec.start_id, spec.dumps(), b"token", Offset(), {}, ()))
    yield spouts, asked
    asked.path.unlink()
    assert process.wait(60) in (0, -signal.SIGKILL)


def test_a_barrier_covers_what_is_in_the_log_although_no_host_has_said_so(
    live_spouts: tuple[Spouts, LiveClient],
) -> None:
    spouts, asked = live_spouts
    task = spouts.open()
    for _ in range(3):
        task.next_tuple(0.0)
    written = task.cut().mark
    end = asked.barrier(Offset(), {spouts.task_id: written})
    assert end.mark(spouts.task_id) == written
    outcomes = [
        body for body in asked.fetch(b"token", Offset(), end).rows if chunk.read_header(body).kind == Kind.OUTCOME
    ]
    assert sum(len(chunk.read_outcome(chunk.read_header(body), body)[0]) for body in outcomes) == 3
    # Also a cut without tuples, which saves what the spout has heard: the coordinator asks until it is covered.
    roots = np.arange(3, dtype=np.uint64) + np.uint64(root_base(spouts.task_id))
    task.settle(-1, roots, np.full(3, ACKED, np.uint8))
    assert task.dirty
    written = task.cut().mark
    again = asked.barrier(end, {spouts.task_id: written})
    assert again.mark(spouts.task_id) == written
    task.close()


def test_an_executor_hears_acks_on_its_own_line_and_notices_its_end(live_spouts: tuple[Spouts, LiveClient]) -> None:
    spouts, asked = live_spouts
    task = spouts.open()
    task.now = time.monotonic
    sent: list[Message] = []
    loop = TaskLoop(task, spouts.worker.wiring.settings(SpoutSettings, "spout"), sent.append, 0)
    executor = Executor(ExecutorHost(lambda task: loop), (spouts.task_id,), True)  # type: ignore[arg-type]
    executor.start()
    pid = asked.look(0, time.monotonic()).pid
    executor.tell(GoLive(str(asked.path), pid))
    eventually(lambda: task.stats.acked > 100)
    # It says where its time goes, of which no moment is counted twice.
    times, begun = RoundTimes(), time.monotonic()
    first = asked.look(0, time.monotonic())
    times.look(100.0, first, (0.0, 0.0), 0)
    eventually(lambda: time.monotonic() - begun > 0.5)
    second = asked.look(0, time.monotonic())
    grown = Spent(*(later - earlier for earlier, later in zip(first.spent, second.spent, strict=True)))
    assert all(getattr(grown, name) > 0 for name in ("rounds", "reads", "executes", "logs", "tells"))
    assert sum(grown[1:]) <= time.monotonic() - begun + 0.5
    times.look(101.0, second, (0.25, 0.0), 7)
    [shown] = times.last()
    assert (shown.rounds, shown.tuples, shown.parts["spouts emit"]) == (grown.rounds, 7, 250.0)
    told = [message for message in sent if isinstance(message, Progress)]
    assert all(sum(getattr(each, name) for each in told) > 0 for name in ("emitting_secs", "writing_secs"))
    _, process = client.started[asked.path.parent.name.rpartition("-")[2]]
    os.kill(pid, signal.SIGKILL)
    eventually(lambda: process.poll() is not None)
    # Once it has noticed, the coordinator has to hear of each cut again.
    eventually(lambda: [message for message in sent if isinstance(message, Progress) and message.cut])
    eventually(lambda: not executor.is_live)
    executor.stop()
    executor.join(20)
    assert not executor.is_alive()


def test_a_process_that_was_started_as_the_last_of_its_workers_ends(start_id: str) -> None:
    words = [sys.executable, "-m", "storm_on_spark.runtime.live.processes.process", "1", start_id]
    make_private(socket_of(start_id).parent)
    said, ours = os.pipe()
    # The shell stands for the daemon, and is gone before the process listens.
    subprocess.run(["sh", "-c", '"$@" & ', "sh", *words], pass_fds=[ours], start_new_session=True, check=True)
    os.close(ours)
    ready, _, _ = select.select([said], [], [], 20)
    assert ready, "it ends long before it would for want of a coordinator"
    assert os.read(said, 1) == b""
    os.close(said)
    assert not socket_of(start_id).exists()


def test_a_process_that_is_told_to_end_several_times_ends_with_those_it_has_started(start_id: str) -> None:
    words = [sys.executable, "-m", "storm_on_spark.runtime.live.processes.process", "3", start_id]
    make_private(socket_of(start_id).parent)
    with subprocess.Popen(words, stdin=subprocess.DEVNULL) as process:
        try:
            eventually(socket_of(start_id).exists)
            others = psutil.Process(process.pid).children()
            assert len(others) == 2
            for _ in range(100):
                process.send_signal(signal.SIGHUP)
                time.sleep(0.0002)
            assert process.wait(20) == 0
            _, alive = psutil.wait_procs(others, timeout=20)
            assert (alive, socket_of(start_id).exists()) == ([], False)
        finally:
            process.kill()
