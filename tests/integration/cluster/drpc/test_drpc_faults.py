"""Servers and topologies are killed with requests under way, and callers leave: nothing hangs, nothing stays behind."""

from __future__ import annotations

import random
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest
from waiting import eventually

from storm_on_spark.cli.shared.errors import STOPPED
from storm_on_spark.cluster.drpc.server import DRPCServer, Ports
from storm_on_spark.drpc import DRPCClient, DRPCExceptionType, DRPCExecutionException

SECS = 120.0
KEPT = 4


class Process:
    """One that `drpc_process.py` is."""

    def __init__(self, *words: object) -> None:
        command = [sys.executable, str(Path(__file__).with_name("drpc_process.py")), *map(str, words)]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def line(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline().strip()

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout):
            assert pipe is not None
            pipe.close()


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


def lasting_ports(count: int) -> list[int]:
    """Returns free ports to which a server can come back: the system gives them to nobody who asks for any port."""
    found: set[int] = set()
    while len(found) < count:
        port = random.randrange(20_000, 32_000)
        with socket.socket() as every, suppress(OSError):
            every.bind(("", port))
            found.add(port)
    return list(found)


def begun(stack: ExitStack, *words: object) -> Process:
    process = Process(*words)
    stack.callback(process.kill)
    return process


def client(stack: ExitStack, host: str, port: int) -> DRPCClient:
    return stack.enter_context(DRPCClient({"drpc.servers": [host]}, port=port, timeout_secs=SECS))


class Asking(threading.Thread):
    """Asks for what is never answered."""

    def __init__(self, asked: DRPCClient, number: int) -> None:
        super().__init__(daemon=True)
        self.client, self.number = asked, number
        self.error: DRPCExecutionException | None = None
        self.start()

    def run(self) -> None:
        try:
            self.client.execute("f", f"keep {self.number}")
        except DRPCExecutionException as error:
            self.error = error

    def ended(self) -> DRPCExceptionType | None:
        self.join(SECS)
        assert not self.is_alive()
        return None if self.error is None else self.error.type


def kept(stack: ExitStack, topology: Process, host: str, port: int) -> list[Asking]:
    """Returns callers whose requests the topology has."""
    asking = [Asking(client(stack, host, port), number) for number in range(KEPT)]
    assert {topology.line() for _ in asking} == {f"keep {number}" for number in range(KEPT)}
    return asking


@pytest.mark.slow
def test_a_server_that_is_killed_ends_its_requests_and_the_next_one_is_served(stack: ExitStack) -> None:
    calls, invocations = lasting_ports(2)
    server = begun(stack, "server", "127.0.0.1", calls, invocations)
    assert server.line()
    topology = begun(stack, "topology", invocations, "127.0.0.1")
    asking = kept(stack, topology, "127.0.0.1", calls)
    server.process.kill()
    assert [each.ended() for each in asking] == [DRPCExceptionType.INTERNAL_ERROR] * KEPT
    server.process.wait()
    following = begun(stack, "server", "127.0.0.1", calls, invocations)
    assert following.line()
    # The same clients, and the same topology.
    assert [each.client.execute("f", "x") for each in asking] == ["x!"] * KEPT


@pytest.mark.slow
def test_of_two_servers_the_other_one_goes_on(stack: ExitStack) -> None:
    calls, invocations = lasting_ports(2)
    one = begun(stack, "server", "127.0.0.1", calls, invocations)
    assert one.line()
    other = begun(stack, "server", "127.0.0.2", calls, invocations)
    assert other.line()
    topology = begun(stack, "topology", invocations, "127.0.0.1", "127.0.0.2")
    there = client(stack, "127.0.0.2", calls)
    assert there.execute("f", "before") == "before!"
    asking = kept(stack, topology, "127.0.0.1", calls)
    one.process.kill()
    assert [each.ended() for each in asking] == [DRPCExceptionType.INTERNAL_ERROR] * KEPT
    assert [there.execute("f", str(number)) for number in range(20)] == [f"{number}!" for number in range(20)]
    one.process.wait()
    assert begun(stack, "server", "127.0.0.1", calls, invocations).line()
    assert asking[0].client.execute("f", "after") == "after!"
    assert there.execute("f", "after") == "after!"


def test_requests_of_a_topology_that_is_killed_time_out_and_the_next_one_answers(stack: ExitStack) -> None:
    with DRPCServer({"drpc.request.timeout.secs": 3}, Ports(0, 0, 0)) as server:
        host, calls, invocations = server.host, server.calls.port, server.invocations.port
        topology = begun(stack, "topology", invocations, host)
        lines: list[str] = []
        reading = threading.Thread(target=lambda: lines.append(topology.line()), daemon=True)
        reading.start()

        def under_way() -> Asking | None:
            # A topology may take longer to start than a request may take; then another one is asked.
            asking = Asking(client(stack, host, calls), 0)
            eventually(lambda: lines or not asking.is_alive())
            return asking if lines else None

        asking = eventually(under_way)
        topology.process.kill()
        assert lines == ["keep 0"]
        assert asking.ended() is DRPCExceptionType.SERVER_TIMEOUT
        eventually(lambda: len(server.broker.requests) == 0 and server.broker.fetching == 0)
        begun(stack, "topology", invocations, host)
        patient = client(stack, host, calls)
        others: list[DRPCExceptionType] = []

        def answered() -> bool:
            try:
                return patient.execute("f", "x") == "x!"
            except DRPCExecutionException as error:
                others.append(error.type)
                return False

        eventually(answered)
        assert set(others) <= {DRPCExceptionType.SERVER_TIMEOUT}
        reading.join(SECS)


def test_ctrl_c_ends_a_client_at_once_and_its_request_is_forgotten(stack: ExitStack, tmp_path: Path) -> None:
    with DRPCServer({}, Ports(0, 0, 0)) as server:
        options = ["-c", f"drpc.port={server.calls.port}", "-c", f"drpc.servers=[{server.host}]"]
        command = [sys.executable, "-m", "storm_on_spark.cli", "drpc-client", "f", "x", *options]
        asking = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=tmp_path)
        try:
            eventually(lambda: len(server.broker.requests) == 1)
            asking.send_signal(signal.SIGINT)
            out, said = asking.communicate(timeout=SECS)
        finally:
            asking.kill()
            asking.wait()
        assert (out, "Traceback" in said) == ("", False), said
        assert asking.returncode == STOPPED, said
        eventually(lambda: len(server.broker.requests) == 0)
