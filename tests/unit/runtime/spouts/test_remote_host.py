"""Spout hosts that call the driver: real processes and sockets, kept by a process instead of a Spark task."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import pickle
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from lengths import PATIENCE_SECS
from stormtest import Nothing, make_worker
from waiting import eventually

from storm_on_spark.api import BaseRichSpout, Fields, TopologyBuilder
from storm_on_spark.runtime.batches.clock import SystemClock
from storm_on_spark.runtime.batches.coordinator import Coordinator
from storm_on_spark.runtime.batches.offsets import Offset
from storm_on_spark.runtime.processes.lines.line import Line
from storm_on_spark.runtime.processes.lines.listener import Hello, LineListener, listen_at
from storm_on_spark.runtime.processes.sessions import started_at
from storm_on_spark.runtime.reports.report import Failure
from storm_on_spark.runtime.spouts.log import iter_cuts
from storm_on_spark.runtime.spouts.messages import Setup
from storm_on_spark.runtime.spouts.remote.host import RemoteHost
from storm_on_spark.runtime.spouts.remote.keeper import Place, keep_host
from storm_on_spark.testing.faults.connections import TcpProxy


class Counting(BaseRichSpout):
    """Emits 0, 1, 2, ... and says which process does.

    Args:
        folder: where the process ids go.
    """

    def __init__(self, folder: str):
        self.folder = folder
        self.next = 0

    def open(self, conf, context, collector):
        self.collector = collector
        Path(self.folder, str(os.getpid())).touch()

    def next_tuple(self):
        time.sleep(0.002)
        self.collector.emit([self.next], self.next)
        self.next += 1

    def close(self):
        Path(self.folder, f"closed-{os.getpid()}").touch()

    def declare_output_fields(self, declarer):
        declarer.declare(Fields("n"))


KEEP = """
import pickle, sys
from storm_on_spark.runtime.spouts.remote.keeper import keep_host
keep_host(*pickle.load(sys.stdin.buffer))
"""


class Keeper:
    """Keeps a host as a Spark task would, in a process; `again` is what Spark does when it has given an executor up."""

    def __init__(self, place: Callable[[], Place]) -> None:
        self._place = place
        self.processes: list[subprocess.Popen[bytes]] = []

    def ensure(self) -> str:
        if not self.processes or self.processes[-1].poll() is not None:
            self.again()
        return ""

    def again(self) -> None:
        process = subprocess.Popen([sys.executable, "-c", KEEP], stdin=subprocess.PIPE)
        self.processes.append(process)
        assert process.stdin is not None
        with process.stdin:
            process.stdin.write(pickle.dumps((self._place(), len(self.processes))))

    def end(self) -> None:
        for process in self.processes:
            process.kill()
            process.wait()


class Running:
    """A topology of one spout whose host calls in."""

    def __init__(self, folder: Path, through: Callable[[int], str] | None = None) -> None:
        self.notes = folder / "notes"
        self.notes.mkdir()
        self.folder = folder / "checkpoint" / "storm"
        builder = TopologyBuilder()
        builder.set_spout("spout", Counting(str(self.notes)))
        builder.set_bolt("bolt", Nothing()).shuffle_grouping("spout")
        spec = dataclasses.replace(make_worker(builder).spec, sys_path=tuple(sys.path))
        self.failures: list[Failure] = []
        self.hosts: list[RemoteHost] = []
        #: What processes of hosts were given, the oldest first.
        self.setups: list[Setup] = []
        self.listener = LineListener(listen_at("127.0.0.1"), b"s" * 32, self._on_host)
        driver, _, port = (through(self.listener.port) if through else f"127.0.0.1:{self.listener.port}").partition(":")
        self.keeper = Keeper(lambda: Place(0, driver, int(port), self.listener.secret.hex()))
        self.coordinator = Coordinator(
            spec, self.folder, SystemClock(), True, self.failures.append, make_host=self._make_host
        )
        self.offset = Offset()
        #: The number of the first message that was in no micro-batch.
        self.following = 1

    def start(self) -> None:
        self.coordinator.start(self.offset)

    def _make_host(self, *args: Any) -> RemoteHost:
        tasks, make_setup, *calls = args

        def noted() -> Setup:
            self.setups.append(make_setup())
            return self.setups[-1]

        self.hosts.append(RemoteHost(self.keeper, tasks, noted, *calls))
        return self.hosts[0]

    def _on_host(self, line: Line, hello: Hello) -> None:
        self.hosts[hello.number].answer(line, hello)

    def pids(self) -> list[int]:
        """The processes that opened the spout, the oldest first."""
        found = [path for path in self.notes.iterdir() if path.name.isdigit()]
        return [int(path.name) for path in sorted(found, key=lambda path: path.stat().st_mtime_ns)]

    def next_batch(self, seconds: float = PATIENCE_SECS) -> None:
        """Plans micro-batches until one has something."""
        deadline = time.monotonic() + seconds
        while (end := self.coordinator.poll(self.offset)) == self.offset:
            assert not self.failures
            assert time.monotonic() < deadline, "nothing comes"
        (task,) = end.logs
        log, start = self.folder / "spouts" / str(task), self.offset.logs.get(task, 0)
        for cut in iter_cuts(log, start, end.logs[task], end.epochs[task]):
            if cut.messages:
                assert cut.first == self.following, "a message is missing, or there twice"
                self.following += cut.messages
        self.offset = end

    def opened_by(self, count: int) -> int:
        """Waits until this many processes have opened the spout, and two micro-batches of the last one came."""
        eventually(lambda: len(self.pids()) >= count)
        self.next_batch()
        self.next_batch()
        return self.pids()[-1]

    def close(self) -> None:
        self.coordinator.stop()
        self.listener.close()


@pytest.fixture
def running(tmp_path: Path) -> Iterator[Running]:
    running = Running(tmp_path)
    try:
        running.start()
        yield running
    finally:
        running.close()


def test_a_host_calls_in_works_and_closes_its_spouts(running: Running) -> None:
    pid = running.opened_by(1)
    assert running.hosts[0].pid == pid
    sent, received = running.hosts[0].traffic
    assert sent > 0
    assert received > 0
    running.coordinator.stop()
    assert (running.notes / f"closed-{pid}").exists()
    eventually(lambda: started_at(pid) is None)


def test_a_host_that_is_killed_goes_on_where_it_was(running: Running) -> None:
    first = running.opened_by(1)
    os.kill(first, signal.SIGKILL)
    second = running.opened_by(2)
    assert second != first
    (error,) = running.coordinator.metrics.info("x", "ACTIVE", 0.0, None).components["spout"].errors
    # Its keeper says how it ended; a busy one says it after the connection has told that it is gone.
    known = r"killed by SIGKILL on |nothing more was heard of it from "
    assert re.search(rf"the process {first} of spout spout ended unexpectedly \(({known})", error.message)
    assert running.following > 1


def test_the_machine_is_lost(running: Running) -> None:
    first = running.opened_by(1)
    running.keeper.processes[0].kill()
    second = running.opened_by(2)
    eventually(lambda: started_at(first) is None)
    assert second != first


def test_a_frozen_host_that_wakes_up_after_it_was_replaced_changes_nothing_and_ends(running: Running) -> None:
    first = running.opened_by(1)
    os.kill(first, signal.SIGSTOP)
    running.keeper.processes[0].send_signal(signal.SIGSTOP)
    running.keeper.again()  # Spark has given up the executor
    running.opened_by(2)
    running.keeper.processes[0].send_signal(signal.SIGCONT)
    os.kill(first, signal.SIGCONT)
    eventually(lambda: started_at(first) is None)
    running.next_batch()
    running.next_batch()
    # The old task's host calls again, is not wanted, and takes nobody's place.
    assert running.hosts[0].pid == running.pids()[-1]
    assert len(running.pids()) == 2


def test_a_network_that_breaks_and_comes_back(tmp_path: Path) -> None:
    with contextlib.ExitStack() as stack:
        proxies: list[TcpProxy] = []

        def through(port: int) -> str:
            proxies.append(stack.enter_context(TcpProxy(f"127.0.0.1:{port}")))
            return proxies[0].address

        running = Running(tmp_path, through)
        stack.callback(running.close)
        running.start()
        first = running.opened_by(1)
        proxies[0].cut()
        proxies[0].drop()
        eventually(lambda: started_at(first) is None)
        proxies[0].mend()
        running.opened_by(2)
        assert not running.failures


def test_another_directory_of_the_same_name_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from storm_on_spark.runtime.spouts.remote import serving

    running = Running(tmp_path)
    try:
        running.coordinator.launch(Offset())
        eventually(lambda: running.setups)
        setup = running.setups[0]
        assert serving.here(setup, "there").claim == setup.claim
        other = tmp_path / "other" / "spouts"
        with pytest.raises(serving.CheckpointError, match="on there is not the directory that the driver has"):
            serving.here(dataclasses.replace(setup, folder=str(other)), "there")
        (tmp_path / "other" / "writers").mkdir(parents=True)
        monkeypatch.setattr(serving, "SEEN_SECONDS", 0.1)
        with pytest.raises(serving.CheckpointError):
            serving.here(dataclasses.replace(setup, folder=str(other)), "there")
        running.coordinator.wait_until_open()
    finally:
        running.close()


def test_a_process_that_cant_start_is_no_endless_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "/bin/false")
    with pytest.raises(RuntimeError, match="the process of spout host 3 can't be started on"):
        keep_host(Place(3, "127.0.0.1", 1, "00"), 0)


class NoRoom:
    """A keeper that has no place."""

    def ensure(self) -> str:
        return "Spark has no slot"

    def end(self) -> None: ...


def test_no_place_at_the_start_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("storm_on_spark.runtime.spouts.remote.host.ROOM_SECONDS", 0.2)
    told: list[str] = []
    tasks: Sequence[int] = [1]
    host = RemoteHost(
        NoRoom(), tasks, lambda: pytest.fail("nobody is there"), pytest.fail, lambda _, why: told.append(why)
    )
    host.start()
    eventually(lambda: told)
    host.stop()
    assert told == ["Spark has no slot"]


def test_the_secret_is_in_no_text() -> None:
    place = Place(0, "127.0.0.1", 7, "5ec3e7")
    assert "5ec3e7" not in f"{place} {place!r}"
