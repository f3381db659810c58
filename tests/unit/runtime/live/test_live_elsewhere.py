"""Live processes that call from other machines: who is let in, and what is given up when one is gone or silent."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import pickle
import signal
import socket
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

import psutil
import pytest
import stormtest
from endless import Endless
from stormtest import Spouts
from waiting import eventually

from storm_on_spark.runtime.batches.offsets import Offset
from storm_on_spark.runtime.live.client import LiveClient, socket_of
from storm_on_spark.runtime.live.messages import Adopt, Adopted, Done, GoBack, MayAdopt, Save
from storm_on_spark.runtime.live.processes.live_processes import GivenUpError
from storm_on_spark.runtime.live.remote import member as remote_member
from storm_on_spark.runtime.live.remote.asking import ask
from storm_on_spark.runtime.live.remote.leader import KeptLeader
from storm_on_spark.runtime.live.remote.member import RemoteMember
from storm_on_spark.runtime.live.remote.process import Beats
from storm_on_spark.runtime.live.remote.reception import Reception
from storm_on_spark.runtime.processes.lines import line as lines
from storm_on_spark.runtime.processes.lines.calls import Address, call
from storm_on_spark.runtime.processes.lines.line import Line, LineError
from storm_on_spark.runtime.processes.lines.listener import Hello, listen_at
from storm_on_spark.runtime.processes.run_folder import remove_run_folder
from storm_on_spark.runtime.spouts.remote.keeper import Place, keep_host
from storm_on_spark.runtime.spouts.watching.holding import HostWatch

SECRET = b"s" * 32
MODULE = "storm_on_spark.runtime.live.remote.process"


class Called:
    """A first live process's reception, and processes that call it."""

    def __init__(self, folder: Path) -> None:
        listener = listen_at("127.0.0.1")
        self.address = Address("127.0.0.1", listener.getsockname()[1], SECRET)
        self.reception = Reception(listener, SECRET, folder / "live", 2)
        self.lines: list[Line] = []

    def call(self, number: int, attempt: int = 0) -> Line:
        line = self.address.call(Hello(number, attempt, 4711, "there", ""))
        self.lines.append(line)
        return line

    def member(self, number: int = 1) -> tuple[RemoteMember, Line]:
        """A member that has called, and the process's side."""
        line = self.call(number)
        member = RemoteMember(self.reception, number)
        eventually(member.ready)
        return member, line

    def close(self) -> None:
        self.reception.close()
        for line in self.lines:
            line.close()


@pytest.fixture
def called(tmp_path: Path) -> Iterator[Called]:
    called = Called(tmp_path)
    yield called
    called.close()


def test_a_member_is_ready_once_it_has_called_and_answers(called: Called) -> None:
    waiting = RemoteMember(called.reception, 2)
    assert not waiting.ready()
    with pytest.raises(GivenUpError, match="number 2 has not called"):
        waiting.ask(GoBack())
    member, line = called.member()
    assert not member.over
    member.ask(GoBack())
    assert pickle.loads(line.recv_bytes()) == GoBack()
    line.send_bytes(pickle.dumps(Done()))
    assert member.answer() == Done()
    member.end()


def test_a_member_whose_connection_has_ended_is_over_without_being_asked(called: Called) -> None:
    member, line = called.member()
    line.close()
    eventually(lambda: member.over)
    with pytest.raises(GivenUpError, match="the live process 4711 on there is gone"):
        member.answer()
    member.end()


def test_a_member_that_calls_again_takes_the_place_of_the_former_one(called: Called) -> None:
    member, _ = called.member()
    called.call(1, attempt=1)
    eventually(lambda: member.over)
    member.end()
    late = called.call(1)
    with pytest.raises((EOFError, OSError)):
        late.recv_bytes()  # of the earlier attempt
    following = RemoteMember(called.reception, 1)
    assert following.ready()
    following.end()


def test_a_process_may_call_however_much_is_told_of_the_one_before(called: Called) -> None:
    arguments = {**asdict(Place(1, "127.0.0.1", called.address.port, SECRET.hex())), "attempt": 0, "machine": "there"}
    came: list[Line] = []

    def call_in() -> None:
        with contextlib.suppress(OSError, EOFError):
            came.append(call({**arguments, "previous": "held by a library of a long name " * 100})[0])

    thread = threading.Thread(target=call_in)
    thread.start()
    line, hello = eventually(lambda: called.reception.take(1))
    assert hello.previous.startswith("held by")
    line.send_bytes(b"first")
    thread.join()
    for end in (line, *came):
        end.close()


def test_nobody_has_a_number_that_there_is_not(called: Called) -> None:
    with pytest.raises((EOFError, OSError)):
        called.call(3).recv_bytes()


def test_a_member_that_says_nothing_is_given_up_and_one_that_is_busy_is_not(
    called: Called, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(remote_member, "SILENT_SECS", 0.3)
    monkeypatch.setattr(remote_member, "BEAT_SECS", 0.05)
    member, line = called.member()
    member.stall_secs = 0.3
    beats, ended = Beats(line), threading.Event()

    def work() -> None:
        with beats:
            ended.wait(1.0)  # three times as long as it may be silent
        line.send_bytes(pickle.dumps(Done()))

    worker = threading.Thread(target=work)
    worker.start()
    assert member.answer() == Done()
    worker.join()
    with pytest.raises(GivenUpError, match="the live process 4711 on there has said nothing for"):
        member.answer()
    member.end()


def test_a_worker_without_the_secret_or_without_a_live_process_hears_nothing(called: Called) -> None:
    assert ask(dataclasses.replace(called.address, secret=b"t" * 32), MayAdopt()) is None
    assert ask(called.address, MayAdopt()) is None, "nobody listens at the Unix socket"
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))
        assert ask(dataclasses.replace(called.address, port=nobody.getsockname()[1]), MayAdopt()) is None


def test_an_address_does_not_show_its_secret(called: Called) -> None:
    assert "ssss" not in repr(called.address)


def test_a_message_that_is_too_long_is_not_sent(called: Called, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lines, "MAX_BYTES", 100)
    member, line = called.member()
    with pytest.raises(LineError, match="a message has 101 bytes; allowed are 100"):
        line.send_bytes(b"x" * 101)
    monkeypatch.setattr(lines, "MAX_BYTES", 20)
    with pytest.raises(GivenUpError, match="allowed are 20"):
        member.ask(Save(1, take=True))
    member.end()


def test_a_process_that_stays_stopped_is_ended() -> None:
    with subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"]) as process:
        watch = HostWatch(stopped_secs=1)
        watch.start(process)
        process.send_signal(signal.SIGSTOP)
        assert process.wait(60) == -signal.SIGKILL
        assert watch.how_it_ended(-signal.SIGKILL) == "it was ended, as it had been stopped for 1 s"


class Elsewhere:
    """The first live process with one more, which a keeper keeps, and a worker that asks from another machine."""

    def __init__(self, folder: Path) -> None:
        self.start_id = uuid.uuid4().hex
        spouts = Spouts(Endless(), folder, {"topology.profile": "realtime", "topology.workers": 2}, partitions=1)
        spec = dataclasses.replace(spouts.worker.spec, folder=str(folder), start_id=self.start_id)
        self.adopt = Adopt(self.start_id, spec.dumps(), b"token", Offset(), {}, ())
        listener = listen_at("127.0.0.1")
        port = listener.getsockname()[1]
        self.listener = listener
        self.address = Address("127.0.0.1", port, SECRET)
        self.beside = LiveClient(self.start_id)
        self.worker = LiveClient(self.start_id, address=self.address)
        self.leader = KeptLeader(self.beside, 2, (listener, SECRET))
        self.place = Place(1, "127.0.0.1", port, SECRET.hex(), module=MODULE, what="live process")

    def pid(self) -> int:
        """The first live process, once it can be asked."""
        return eventually(lambda: self.beside.look(0, time.monotonic())).pid

    @property
    def is_live(self) -> bool:
        status = self.beside.look(0, time.monotonic())
        return status is not None and status.live


@pytest.fixture
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Elsewhere]:
    monkeypatch.setenv("PYTHONPATH", str(Path(stormtest.__file__).parent))  # the bolts' module
    found = Elsewhere(tmp_path)
    with found.leader:
        yield found
    found.listener.close()
    remove_run_folder(found.start_id)


def kept(place: Place) -> subprocess.Popen[bytes]:
    """A keeper in a process of its own, as in a Spark task."""
    code = f"from {keep_host.__module__} import Place, keep_host; keep_host(Place(**{place.__dict__!r}), 1)"
    return subprocess.Popen([sys.executable, "-c", code])


def children(of: int, module: str) -> list[int]:
    return [child.pid for child in psutil.Process(of).children(recursive=True) if module in child.cmdline()]


def test_tasks_are_taken_when_all_have_called_and_given_up_when_one_is_lost(elsewhere: Elsewhere) -> None:
    elsewhere.pid()
    assert not elsewhere.worker.listens(), "the other one has not called"
    assert not elsewhere.worker.adopt(elsewhere.adopt)
    with kept(elsewhere.place) as keeper:
        try:
            eventually(elsewhere.worker.listens)
            assert elsewhere.worker.adopt(elsewhere.adopt)
            assert elsewhere.is_live
            [other] = children(keeper.pid, MODULE)
            os.kill(other, signal.SIGKILL)
            eventually(lambda: not elsewhere.is_live, "nobody has to ask for it")
            # The keeper has started another one, and the tasks may be handed over again.
            eventually(elsewhere.worker.listens)
            assert elsewhere.worker.adopt(elsewhere.adopt)
            # So has the driver, when it is the first one that is lost: the other one calls at the same port.
            former = elsewhere.pid()
            os.kill(former, signal.SIGKILL)
            eventually(lambda: elsewhere.pid() != former)
            eventually(elsewhere.worker.listens)
            assert elsewhere.worker.adopt(elsewhere.adopt)
        finally:
            keeper.terminate()


def test_a_first_process_that_ends_by_itself_leaves_the_port_to_the_next_one(elsewhere: Elsewhere) -> None:
    former = elsewhere.pid()
    assert ask(elsewhere.address, MayAdopt()) == Adopted(live=False)
    socket_of(elsewhere.start_id).unlink()  # nobody can ask it any more, so it ends
    eventually(lambda: elsewhere.pid() != former)
    eventually(lambda: ask(elsewhere.address, MayAdopt()) == Adopted(live=False))


def test_a_process_that_gets_no_whole_secret_does_not_listen(tmp_path: Path) -> None:
    with listen_at("127.0.0.1") as listener:
        words = [sys.executable, "-m", "storm_on_spark.runtime.live.processes.process", "1", "ab", str(os.getpid())]
        process = subprocess.run(
            [*words, str(listener.fileno())], input=b"half", pass_fds=[listener.fileno()], capture_output=True
        )
    assert process.returncode == 1
    assert b"the driver has sent 4 bytes of a secret of 32" in process.stderr


def test_a_worker_elsewhere_starts_nothing(elsewhere: Elsewhere) -> None:
    assert elsewhere.worker.start(2) is None


def test_a_leader_ends_with_the_block(elsewhere: Elsewhere) -> None:
    pid = elsewhere.pid()
    elsewhere.leader.__exit__()
    assert not socket_of(elsewhere.start_id).exists()
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)
