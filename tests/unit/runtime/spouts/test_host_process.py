"""Real spout hosts: what they are told first, and how their end is noticed."""

from __future__ import annotations

import contextlib
import ctypes
import dataclasses
import multiprocessing
import os
import pickle
import re
import signal
import socket
import stat
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from stormtest import Nothing, make_worker
from waiting import eventually

from storm_on_spark.api import BaseRichSpout, Fields, TopologyBuilder
from storm_on_spark.runtime.batches.clock import SystemClock
from storm_on_spark.runtime.batches.coordinator import Coordinator
from storm_on_spark.runtime.batches.offsets import Offset
from storm_on_spark.runtime.processes.diagnostics.busy import SIZE
from storm_on_spark.runtime.processes.sessions import started_at
from storm_on_spark.runtime.run.spec import RunSpec
from storm_on_spark.runtime.spouts import host_process, spout_host
from storm_on_spark.runtime.spouts.host_process import HostProcess
from storm_on_spark.runtime.spouts.messages import Setup, Want
from storm_on_spark.runtime.spouts.spout_host import keep_from_children
from storm_on_spark.runtime.spouts.watching.holding import HostWatch


class Forking(BaseRichSpout):
    """Leaves a process behind that has inherited all that this one has open.

    Args:
        how: "multiprocessing", or "c" for a fork that Python's own hooks don't hear of.
        folder: where the process ids go.
    """

    def __init__(self, how: str, folder: str):
        self.how, self.folder = how, folder

    def open(self, conf, context, collector):
        if self.how == "multiprocessing":
            process = multiprocessing.get_context("fork").Process(target=time.sleep, args=(60,), daemon=True)
            process.start()
            child = process.pid
        else:
            import ctypes

            child = ctypes.CDLL(None).fork()
            if child == 0:
                ctypes.CDLL(None).sleep(60)
                os._exit(0)
        Path(self.folder, f"{os.getpid()}").write_text(str(child))

    def next_tuple(self):
        pass

    def declare_output_fields(self, declarer):
        declarer.declare(Fields("n"))


def importable(spec: RunSpec) -> RunSpec:
    return dataclasses.replace(spec, sys_path=tuple(sys.path))


@contextlib.contextmanager
def running(
    spout: BaseRichSpout, folder: Path, conf: dict[str, Any] | None = None, **others: BaseRichSpout
) -> Iterator[tuple[Coordinator, list[str]]]:
    builder = TopologyBuilder()
    for name, each in {"spout": spout, **others}.items():
        builder.set_spout(name, each)
    builder.set_bolt("bolt", Nothing()).shuffle_grouping("spout")
    failures: list[str] = []
    spec = importable(make_worker(builder, conf).spec)
    coordinator = Coordinator(spec, folder, SystemClock(), True, lambda reason, *traces: failures.append(reason))
    coordinator.start(Offset())
    assert not failures
    try:
        yield coordinator, failures
    finally:
        coordinator.stop()


@pytest.mark.skipif(not hasattr(os, "fork") or sys.platform != "linux", reason="reads /proc")
@pytest.mark.parametrize("how", ["multiprocessing", "c"])
def test_a_host_that_is_killed_is_noticed_whatever_its_spout_has_started(tmp_path: Path, how: str) -> None:
    notes = tmp_path / "notes"
    notes.mkdir()
    with running(Forking(how, str(notes)), tmp_path / "checkpoint") as (_, failures):
        (first,) = eventually(lambda: list(notes.iterdir()))
        child = int(eventually(first.read_text))
        assert started_at(child) is not None
        os.kill(int(first.name), signal.SIGKILL)
        second = eventually(lambda: [path for path in notes.iterdir() if path != first])[0]
        eventually(lambda: started_at(child) is None)
        last = int(eventually(second.read_text))
    assert not failures
    assert started_at(int(second.name)) is None
    eventually(lambda: started_at(last) is None)


class Native(BaseRichSpout):
    """Calls a function of C once, which keeps the interpreter.

    Args:
        marker: a file that the other spout makes when it is open. The call writes to it.
        function: which.
        argument: of the function.
    """

    def __init__(self, marker: str, function: str, argument: int):
        self.marker, self.function, self.argument = marker, function, argument

    def next_tuple(self):
        marker = Path(self.marker)
        if marker.exists() and not marker.read_text():
            marker.write_text("called")
            getattr(ctypes.PyDLL(None), self.function)(self.argument)

    def declare_output_fields(self, declarer):
        declarer.declare(Fields("n"))


class Calm(BaseRichSpout):
    """Emits nothing; says when it is called first."""

    def __init__(self, marker: str):
        self.marker = marker

    def next_tuple(self):
        if self.marker:
            Path(self.marker).touch()
            self.marker = ""

    def declare_output_fields(self, declarer):
        declarer.declare(Fields("n"))


@pytest.mark.parametrize(
    ("function", "argument", "told"),
    [
        ("usleep", 600_000_000, "or what it calls, held the Python interpreter for 3 s (topology.task.stall.secs = 1)"),
        ("raise", signal.SIGSEGV, "killed by SIGSEGV in component "),
    ],
)
def test_native_code_that_holds_the_interpreter_of_a_spout_host_or_crashes_is_named(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, function: str, argument: int, told: str
) -> None:
    marker = str(tmp_path / "calls")
    native = Native(marker, function, int(argument))
    conf = {"topology.task.stall.secs": 1}
    with running(native, tmp_path / "checkpoint", conf, calm=Calm(marker)) as (_, failures):
        [said] = eventually(lambda: [record.getMessage() for record in caplog.records])
    _, _, reason = said.partition("ended unexpectedly (")
    assert told in reason
    assert 'component "spout" (task ' in reason
    assert "calm" not in reason
    assert f'File "{__file__}", line ' in reason
    assert reason.endswith("in next_tuple); it is started again")
    assert not failures


RUNTIME, LIBRARY = Path(spout_host.__file__).parent, Path(threading.__file__).parent
SPOUT, INSTALLED = Path(__file__), LIBRARY / "site-packages" / "client.py"


@pytest.mark.parametrize(
    ("called", "named"),
    [
        ([SPOUT], True),
        ([LIBRARY / "queue.py", SPOUT], True),
        ([INSTALLED], True),
        ([LIBRARY / "multiprocessing" / "connection.py"], False),
        ([], False),
    ],
)
def test_an_executor_is_named_only_while_it_is_in_a_spout(called: list[Path], named: bool) -> None:
    frames = [*called, RUNTIME / "task_loop.py", LIBRARY / "threading.py"]
    stack = "".join(f'  File "{path}", line 7 in call\n' for path in frames)
    watch = HostWatch()
    executor = 'executor 7f component "words" (task 3)\n'
    crash = f"Fatal Python error: Aborted\n\nCurrent thread 0x000000000000007f\n{stack}"
    os.pwrite(watch.descriptor, f"{executor}{crash}".encode(), SIZE)
    where = f' in component "words" (task 3): File "{frames[0]}", line 7 in call' if named else ""
    assert watch.how_it_ended(-signal.SIGABRT) == f"killed by SIGABRT{where}"


class Hanging(BaseRichSpout):
    """Says that it is called, and does not return."""

    def __init__(self, file: str):
        self.file = file

    def next_tuple(self):
        Path(self.file).touch()
        time.sleep(600)

    def declare_output_fields(self, declarer):
        declarer.declare(Fields("n"))


def test_a_spout_that_does_not_let_its_process_end_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(host_process, "STOP_SECONDS", 0.2)
    file = tmp_path / "called"
    with running(Hanging(str(file)), tmp_path / "checkpoint"):
        eventually(file.exists)
    [said] = [record.getMessage() for record in caplog.records]
    assert 'the process of spout "spout" (task ' in said
    assert "was ended: next_tuple or close had not returned" in said


@pytest.mark.slow
def test_a_call_that_blocks_is_an_error_of_its_spout_and_the_topology_goes_on(tmp_path: Path) -> None:
    calls = tmp_path / "calls"
    with running(Hanging(str(tmp_path / "called")), tmp_path / "c", calm=Calm(str(calls))) as (coordinator, failures):
        [error] = eventually(lambda: coordinator.metrics.components()["spout"].errors)
        assert not coordinator.metrics.components()["calm"].errors
        assert not failures
    assert re.fullmatch(
        r'next_tuple of component "spout" \(task \d+\) has not returned for 5 s: '
        rf'File "{__file__}", line \d+, in next_tuple\. .* must not block',
        error.message,
    )


def test_setup_is_the_first_message_whoever_else_talks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Other threads send as fast as they can while hosts are started, one after the other."""
    code = (
        "import pickle, sys\n"
        "from multiprocessing.connection import Connection\n"
        "connection = Connection(int(sys.argv[-1]))\n"
        "connection.send_bytes(pickle.dumps(type(pickle.loads(connection.recv_bytes())).__name__))\n"
    )
    launched = subprocess.Popen

    def popen(command: list[str], **options: Any) -> Any:
        assert command[1] == "-m"
        number = next(part for part in command[3:] if part.isdigit())
        return launched([sys.executable, "-c", code, number], **options)

    monkeypatch.setattr(host_process.subprocess, "Popen", popen)
    said: list[Any] = []
    over = threading.Event()
    rounds = 6

    def gone(host: HostProcess, why: str) -> float | None:
        return 0.0 if len(said) < rounds else None

    def setup() -> Setup:
        time.sleep(0.05)  # long enough for the others; the law holds without it
        return Setup(*[None] * 6, active=True, clock_ms=0, clock_at=None)  # type: ignore[arg-type]

    host = HostProcess([1], setup, said.append, gone)

    def talk() -> None:
        while not over.is_set():
            host.send(Want())

    talkers = [threading.Thread(target=talk) for _ in range(2)]
    for thread in talkers:
        thread.start()
    try:
        host.start()
        eventually(lambda: len(said) == rounds)
    finally:
        over.set()
        for thread in talkers:
            thread.join()
        host.stop()
    assert said == ["Setup"] * rounds


def test_a_host_that_is_told_something_else_first_says_so() -> None:
    said: list[Any] = []
    setup: Any = Want()
    with contextlib.ExitStack() as stack:
        ours, theirs = multiprocessing.Pipe()
        stack.callback(ours.close)
        page = stack.enter_context(tempfile.TemporaryFile())
        command = [
            sys.executable,
            "-m",
            "storm_on_spark.runtime.spouts.spout_host",
            *(str(theirs.fileno()), str(os.getpid()), str(page.fileno())),
        ]
        descriptors = [theirs.fileno(), page.fileno()]
        host = subprocess.Popen(command, pass_fds=descriptors, stdin=subprocess.DEVNULL)
        theirs.close()
        ours.send_bytes(pickle.dumps(setup))
        said.append(pickle.loads(ours.recv_bytes()))
        assert host.wait(30) == 0
    assert said[0].message == "the first message to a spout host must be Setup, not Want"


def test_a_child_has_no_copy_of_the_connection_and_all_other_files(tmp_path: Path) -> None:
    ours, theirs = socket.socketpair()
    closed, other_end = socket.socketpair()
    keep_from_children(ours)
    keep_from_children(closed)
    number = closed.fileno()
    closed.close()
    with ours, theirs, other_end, open(tmp_path / "other", "w") as other:
        assert other.fileno() == number, "what a spout opens may get the number of a connection that is closed"
        child = os.fork()
        if child == 0:
            status = 2
            with contextlib.suppress(OSError):
                os.fstat(number)
                status = int(stat.S_ISSOCK(os.fstat(ours.fileno()).st_mode))
            os._exit(status)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
