from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from lengths import PATIENCE_SECS
from waiting import eventually

from storm_on_spark.cluster.errors import ClusterError, NotLeaderError, UnavailableError
from storm_on_spark.cluster.leadership import ZooKeeperLeaderElector
from storm_on_spark.cluster.paths import COUNTER, LEADER_LOCK
from storm_on_spark.cluster.records import NimbusSummary
from storm_on_spark.cluster.state import ClusterState, Fence, Put
from storm_on_spark.cluster.zookeeper import ZooKeeperEnsemble, ZooKeeperServer, ZooKeeperSession
from storm_on_spark.testing.faults.connections import TcpProxy, expire_session

SESSION_SECS = 3.0


class Nimbus:
    """An elector in this process, and what it was told."""

    def __init__(self, session: ZooKeeperSession, port: int, code: dict[str, bool] | None = None) -> None:
        self.session, self.port = session, port
        self.state = ClusterState(session)
        self.code = {} if code is None else code
        self.fetchable = True
        self.fetched: deque[list[str]] = deque()
        self.told: deque[object] = deque()
        self.elector = ZooKeeperLeaderElector(
            session,
            NimbusSummary(host="h", port=port, started_at=0.0, version="1"),
            gate=lambda: [name for name, here in self.code.items() if not here],
            on_gained=self.told.append,
            on_lost=self.told.append,
            fetch=self._fetch,
        )

    def _fetch(self, missing: list[str]) -> None:
        self.fetched.append(missing)
        if not self.fetchable:
            raise OSError("nobody has it")
        self.code.update(dict.fromkeys(missing, True))

    def stand(self) -> Nimbus:
        self.elector.add_to_leader_lock_queue()
        return self

    def leads(self) -> bool:
        return self.elector.is_leader()


@pytest.fixture
def nimbus(connect) -> Iterator[Callable[..., Nimbus]]:
    """Makes Nimbuses `h:1`, `h:2`, ... and closes them."""
    made: list[Nimbus] = []

    def make(hosts: str | None = None, **kwargs: Any) -> Nimbus:
        session = (
            connect(session_timeout_secs=SESSION_SECS)
            if hosts is None
            else connect(hosts, session_timeout_secs=SESSION_SECS)
        )
        made.append(Nimbus(session, len(made) + 1, **kwargs))
        return made[-1]

    yield make
    for each in made:
        each.elector.close()


@pytest.mark.representative
def test_one_leads_and_steps_down(nimbus) -> None:
    first, second = nimbus().stand(), nimbus()
    eventually(first.leads)
    second.stand()
    assert first.elector.get_leader_address() == "h:1"
    eventually(lambda: second.elector.get_all_nimbus_addresses() == ["h:1", "h:2"])
    assert second.elector.get_leader_address() == "h:1"
    eventually(lambda: second.elector.role == "waits for its turn")
    with pytest.raises(NotLeaderError, match="the Nimbus at h:2 doesn't lead: it waits for its turn"):
        second.elector.fence()
    fence = first.elector.fence()
    first.state.commit(fence, Put((COUNTER,), b"1"))
    first.elector.remove_from_leader_lock_queue()
    assert not first.leads()
    assert list(first.told) == [fence, "it was asked to"]
    eventually(second.leads)
    assert second.elector.fence().epoch > fence.epoch
    assert first.elector.get_leader_address() == "h:2"
    # Asked again, it queues behind.
    first.stand().stand()
    eventually(lambda: len(first.state.children(LEADER_LOCK)) == 2)
    second.elector.close()
    eventually(first.leads)
    first.elector.close()
    assert first.state.children(LEADER_LOCK) == []
    assert first.elector.get_leader_address() is None
    assert first.elector.get_all_nimbus_addresses() == []


def test_who_lacks_code_fetches_before_it_leads(nimbus) -> None:
    lacking = nimbus(code={"t1": True, "t2": False}).stand()
    eventually(lacking.leads)
    assert list(lacking.fetched) == [["t2"]]
    assert lacking.elector.missing == ()
    assert len(lacking.told) == 1


def test_nobody_leads_without_all_code_and_who_has_it_does(nimbus) -> None:
    without = nimbus(code={"t1": False})
    without.fetchable = False
    without.stand()
    eventually(lambda: len(without.fetched) >= 2)
    assert without.elector.missing == ("t1",)
    assert without.elector.get_leader_address() is None
    # It has left the queue: it is in nobody's way.
    having = nimbus(code={"t1": True}).stand()
    eventually(having.leads)
    assert not without.told
    # And as soon as it can fetch it stands by.
    without.fetchable = True
    eventually(lambda: without.elector.role == "waits for its turn")
    having.elector.close()
    eventually(without.leads)


def test_a_gate_that_fails_is_asked_again(nimbus) -> None:
    one = nimbus()
    failures = deque([OSError("view is stale")])

    def gate() -> list[str]:
        if failures:
            raise failures.pop()
        return []

    one.elector.gate = gate
    one.stand()
    eventually(one.leads)
    assert not failures


@pytest.mark.representative
def test_an_expired_leader_is_followed_and_queues_again(nimbus) -> None:
    first, second = nimbus().stand(), nimbus()
    eventually(first.leads)
    second.stand()
    eventually(lambda: len(first.state.children(LEADER_LOCK)) == 2)
    fence = first.elector.fence()
    expire_session(first.session)
    eventually(second.leads)
    # It may hear later than the other one; what it still tries is refused by the fence.
    eventually(lambda: not first.leads())
    eventually(lambda: first.session.state == "CONNECTED")
    refused = eventually(lambda: _refused(first.state, fence))
    assert refused == "FencedError"
    eventually(lambda: second.elector.get_all_nimbus_addresses() == ["h:1", "h:2"])
    eventually(lambda: first.elector.role == "waits for its turn")
    expire_session(second.session)
    eventually(first.leads)
    assert [told.epoch for told in first.told if isinstance(told, Fence)] == [
        fence.epoch,
        first.elector.fence().epoch,
    ]


def test_a_short_interruption_changes_no_epoch(zookeeper: ZooKeeperServer, nimbus) -> None:
    with TcpProxy(zookeeper.connect_string) as proxy:
        one = nimbus(proxy.address).stand()
        eventually(one.leads)
        fence = one.elector.fence()
        proxy.drop()
        eventually(lambda: not one.leads())
        eventually(one.leads)
        assert one.elector.fence() == fence
        eventually(lambda: list(one.told) == [fence, "its connection is suspended", fence])
        one.state.commit(fence, Put((COUNTER,), b"1"))
        one.elector.close()
        one.session.close()


def test_a_partition_ends_leadership_before_another_begins(zookeeper: ZooKeeperServer, nimbus) -> None:
    with TcpProxy(zookeeper.connect_string) as proxy:
        cut_off, other = nimbus(proxy.address).stand(), nimbus()
        eventually(cut_off.leads)
        other.stand()
        fence = cut_off.elector.fence()
        both: list[float] = []
        ended: list[float] = []
        stop = threading.Event()

        def watch() -> None:
            while not stop.is_set():
                first, second = cut_off.leads(), other.leads()
                if not first and not ended:
                    ended.append(time.monotonic())
                if first and second:
                    both.append(time.monotonic())

        watcher = threading.Thread(target=watch)
        eventually(lambda: len(other.state.children(LEADER_LOCK)) == 2)
        watcher.start()
        cut_at = time.monotonic()
        proxy.cut()
        eventually(other.leads)
        new_at = time.monotonic()
        stop.set()
        watcher.join()
        assert not both
        assert ended[0] - cut_at < SESSION_SECS
        assert new_at - cut_at < SESSION_SECS + PATIENCE_SECS
        assert cut_off.told[-1] == "its connection is suspended"
        proxy.mend()
        assert eventually(lambda: _refused(cut_off.state, fence)) == "FencedError"
        eventually(lambda: cut_off.elector.role == "waits for its turn")
        cut_off.elector.close()
        cut_off.session.close()


def test_a_deleted_node_ends_leadership(nimbus) -> None:
    one = nimbus().stand()
    eventually(one.leads)
    fence = one.elector.fence()
    one.session.client.delete(fence.lock_path)
    eventually(lambda: one.leads() and one.elector.fence() != fence)
    assert one.told[1] == "its node in the queue has gone"


def test_a_restarted_nimbus_does_not_wait_for_its_old_session(connect, nimbus) -> None:
    old = nimbus().stand()
    eventually(old.leads)
    fence = old.elector.fence()
    new = Nimbus(connect(), old.port).stand()
    eventually(new.leads)
    assert new.elector.fence().epoch > fence.epoch
    assert _refused(old.state, fence) == "FencedError"
    # Should there be two by mistake, they don't throw each other out for ever.
    eventually(lambda: old.elector.role == "waits for its turn")
    assert len(old.state.children(LEADER_LOCK)) == 2
    new.elector.close()


def test_quorum_lost_and_back(nimbus) -> None:
    with ZooKeeperEnsemble(3, tick=0.2) as ensemble:
        first, second = nimbus(ensemble.connect_string).stand(), nimbus(ensemble.connect_string)
        eventually(first.leads)
        second.stand()
        for server in ensemble.servers[:2]:
            server.kill()
        eventually(lambda: not first.leads())
        assert not second.leads()
        for server in ensemble.servers[:2]:
            server.start(wait=False)
        ensemble.wait_ready()
        leader = eventually(lambda: next((each for each in (first, second) if each.leads()), None))
        leader.state.commit(leader.elector.fence(), Put((COUNTER,), b"9"))
        assert [each.leads() for each in (first, second)].count(True) == 1
        for each in (first, second):
            each.elector.close()
            each.session.close()


class Candidate:
    """`candidate.py` in its own process."""

    def __init__(self, hosts: str, root: str, port: int) -> None:
        self.process = subprocess.Popen(
            [sys.executable, str(Path(__file__).with_name("candidate.py")), hosts, root, str(port), str(SESSION_SECS)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        self.said: deque[dict[str, Any]] = deque()
        self.thread = threading.Thread(target=self._listen)
        self.thread.start()

    def _listen(self) -> None:
        assert self.process.stdout is not None
        self.said.extend(map(json.loads, iter(self.process.stdout.readline, "")))

    def write(self, what: str) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(f"{what}\n")
        self.process.stdin.flush()

    def heard(self, *events: str) -> dict[str, Any]:
        """Returns the first of such events that wasn't asked for yet."""

        def next_of() -> dict[str, Any] | None:
            while self.said:
                if (said := self.said.popleft())["event"] in events:
                    return said
            return None

        found = eventually(next_of)
        assert found is not None
        return found

    def end(self) -> None:
        assert self.process.stdin is not None
        self.process.send_signal(signal.SIGCONT)
        self.process.stdin.close()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
        self.thread.join()
        self.process.wait()
        assert self.process.stdout is not None
        self.process.stdout.close()


@pytest.fixture
def candidate(zookeeper: ZooKeeperServer, root: str) -> Iterator[Callable[[int], Candidate]]:
    """Starts candidates at the ports that are given, and ends them."""
    started: list[Candidate] = []

    def start(port: int) -> Candidate:
        started.append(Candidate(zookeeper.connect_string, root, port))
        return started[-1]

    yield start
    for each in started:
        each.end()


def test_a_leader_that_was_stopped_can_do_no_harm_when_it_wakes_up_and_leads_again(candidate, connect) -> None:
    zombie = candidate(1)
    epoch = zombie.heard("gained")["epoch"]
    zombie.write("before")
    assert zombie.heard("written", "refused")["event"] == "written"
    heir = candidate(2)
    state = ClusterState(connect())
    eventually(lambda: len(state.children(LEADER_LOCK)) == 2)

    os.kill(zombie.process.pid, signal.SIGSTOP)
    gained = heir.heard("gained")
    assert gained["epoch"] > epoch
    heir.write("heir")
    assert heir.heard("written", "refused")["event"] == "written"
    # It reads this the moment it wakes up, before it can have heard of anything.
    zombie.write("zombie")
    woken_at = time.time()
    os.kill(zombie.process.pid, signal.SIGCONT)
    answer = zombie.heard("written", "refused")
    assert answer["at"] > woken_at
    assert answer["event"] == "refused"
    assert answer["believes"] is False
    found = state.get_bytes(COUNTER)
    assert found is not None
    assert found[0] == b"heir"
    # Asked again, when it knows, it is refused for what it is.
    eventually(lambda: len(state.children(LEADER_LOCK)) == 2)
    zombie.write("again")
    assert zombie.heard("written", "refused")["error"] == "FencedError"
    assert state.get_bytes(COUNTER) == found
    # A leader that is killed is followed when its session is over.
    killed_at = time.time()
    heir.process.kill()
    again = zombie.heard("gained")
    assert again["epoch"] > gained["epoch"]
    assert again["at"] - killed_at < SESSION_SECS + PATIENCE_SECS


def _refused(state: ClusterState, fence: Fence) -> str | None:
    """Returns the kind of error that a write under a fence ends with; None while there is no connection."""
    try:
        state.commit(fence, Put((COUNTER,), b"zombie"))
    except UnavailableError:
        return None
    except ClusterError as error:
        return type(error).__name__
    return "written"
