"""An operator's orders: their leader dies while it is asked, and commands are interrupted. All or nothing, and soon."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

import psutil
import pytest
from lengths import PATIENCE_SECS
from waiting import eventually

from storm_on_spark.cluster.client.nimbus_client import NimbusClient
from storm_on_spark.cluster.paths import CREDENTIALS
from storm_on_spark.cluster.zookeeper import ZooKeeperServer
from storm_on_spark.testing.simulated.cluster import SimulatedCluster
from storm_on_spark.testing.simulated.process import DaemonProcess

INTERRUPTED = 130


class Operated:
    """Two Nimbuses in processes, two supervisors, a topology, and an operator."""

    def __init__(self, stack: ExitStack, zookeeper: ZooKeeperServer, root: str, folder: Path) -> None:
        token = folder / "token"
        token.touch(0o600)
        token.write_text("t" * 32)
        conf = {"nimbus.auth.token.file": os.fspath(token), "storm.zookeeper.session.timeout": 2000}
        self.cluster = stack.enter_context(SimulatedCluster(zookeeper.connect_string, folder, root, **conf))
        self._stack = stack
        self._threads = stack.enter_context(ThreadPoolExecutor(4))
        self.nimbuses = [self.cluster.nimbus_process("n1"), self.cluster.nimbus_process("n2")]
        names = ("s1", "s2")
        self.drained, _ = (self.cluster.supervisor(name, ports=(6700,)).supervisor_id for name in names)
        self.topology = self.cluster.submit("words")
        self.client = self.cluster.client()

    def leader(self) -> DaemonProcess:
        """Returns the Nimbus that leads, once one does."""

        def found() -> DaemonProcess | None:
            leads = {f"{each['host']}:{each['port']}" for each in self.client.nimbuses() if each["status"] == "Leader"}
            return next((each for each in self.nimbuses if each.name in leads), None)

        return eventually(found, lambda: self.client.nimbuses())

    def add_nimbus(self, name: str) -> None:
        """Starts one more Nimbus, which is known when this returns."""
        self.nimbuses.append(self.cluster.nimbus_process(name))
        self.client = self.cluster.client(*self.nimbuses)

    def kill(self, nimbus: DaemonProcess) -> None:
        """Kills a Nimbus for good."""
        nimbus.kill()
        self.nimbuses.remove(nimbus)

    def give(self, number: int) -> dict[str, Future[object]]:
        """Gives an order of each kind at once, each over a connection of its own; the number is in it."""
        orders: dict[str, Callable[[NimbusClient], object]] = {
            "rebalance": lambda client: client.rebalance("words", 0, workers=number),
            "drain": lambda client: client.drain(self.drained, undo=bool(number % 2)),
            "log level": lambda client: client.set_log_levels("words", {f"a.logger{number}": ("DEBUG", 0)}),
            "credentials": lambda client: client.push_credentials("words", {"token": f"secret-{number}"}),
        }
        clients = {what: self.cluster.client(*self.nimbuses) for what in orders}
        return {what: self._threads.submit(order, clients[what]) for what, order in orders.items()}

    def command(self, *words: str) -> subprocess.Popen[str]:
        """Starts a command, which asks the leader."""
        seeds = [part for each in self.nimbuses for part in ("--nimbus", each.name)]
        token = str(self.cluster.conf["nimbus.auth.token.file"])
        program = [sys.executable, "-m", "storm_on_spark.cli", *words, *seeds, "--token-file", token]
        process = subprocess.Popen(
            program, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        return self._stack.enter_context(process)

    def done(self, number: int) -> dict[str, bool]:
        """Returns by kind whether the order of that number has been carried out."""
        conf = self.client.topology("words")["configuration"]
        drained = {each["id"]: each["blacklisted"] for each in self.client.supervisors()}
        return {
            "rebalance": conf.get("topology.workers") == number,
            "drain": drained.get(self.drained) is (number % 2 == 0),
            "log level": f"a.logger{number}" in self.client.log_levels("words"),
            "credentials": self.cluster.state.get_bytes(CREDENTIALS, self.topology) is not None
            and self._given() == {"token": f"secret-{number}"},
        }

    def _given(self) -> object:
        for file in self.cluster.folder.glob("*/supervisor/slots/*/credentials.json"):
            try:
                return json.loads(file.read_bytes())
            except FileNotFoundError:  # the driver took it away meanwhile
                continue
        return None

    def all_done(self, number: int) -> bool:
        return all(self.done(number).values())


@pytest.fixture
def operated(zookeeper: ZooKeeperServer, root: str, tmp_path: Path) -> Iterator[Operated]:
    with ExitStack() as stack:
        yield Operated(stack, zookeeper, root, tmp_path)


def lines(process: psutil.Process, nimbus: DaemonProcess) -> int:
    """Returns how many connections a process has to a Nimbus."""
    port = int(nimbus.name.rpartition(":")[2])
    found = process.net_connections("tcp")
    return sum(bool(line.raddr) and line.raddr.port == port and line.status == "ESTABLISHED" for line in found)


def all_right(given: dict[str, Future[object]]) -> None:
    """Waits until all orders have been answered, none with an error."""
    assert {what: found.exception(PATIENCE_SECS) for what, found in given.items()} == dict.fromkeys(given)


def test_a_leader_dies_while_it_is_asked_and_commands_are_interrupted(operated: Operated) -> None:
    # The leader has the orders, and dies before it acts. If they are late, the other one leads by then and answers.
    leader = operated.leader()
    before = lines(psutil.Process(), leader)
    leader.pause()
    given = operated.give(2)
    everything = lambda: all(found.done() for found in given.values())  # noqa: E731
    eventually(lambda: everything() or lines(psutil.Process(), leader) >= before + len(given), "all ask")
    operated.kill(leader)
    all_right(given)
    eventually(lambda: operated.all_done(2), lambda: operated.done(2))
    noted = [change.what for change in operated.cluster.state.changes()]
    assert all(sum(each.startswith(what) for each in noted) == 1 for what in ("drain", "rebalance", "log level")), noted

    # The next leader dies as soon as any of them has been carried out.
    operated.add_nimbus("n3")
    leader = operated.leader()
    given = operated.give(3)
    eventually(lambda: any(operated.done(3).values()) or everything(), "one is carried out")
    operated.kill(leader)
    all_right(given)
    eventually(lambda: operated.all_done(3), lambda: operated.done(3))

    # Ctrl-C while the leader does not answer: the command ends. What was asked may come to pass, or not. A command that
    # starts slowly may find that the other one leads by then, and be done.
    leader = operated.leader()
    leader.pause()
    commands = operated.command("rebalance", "words", "--workers", "4"), operated.command("drain", operated.drained)
    for process in commands:
        eventually(lambda process=process: process.poll() is not None or lines(psutil.Process(process.pid), leader))
        process.send_signal(signal.SIGINT)
    for process in commands:
        said = process.communicate(timeout=PATIENCE_SECS)
        assert process.returncode in (0, INTERRUPTED), said
        assert "Traceback" not in "".join(said)
    leader.resume()
    all_right(operated.give(4))
    eventually(lambda: operated.all_done(4), lambda: operated.done(4))
    operated.cluster.runs(operated.topology)
