"""Leader election in ZooKeeper: the rules' instructions carried out.

One thread takes events to the rules and carries out what they say; a second one asks the gate and fetches code, which
may take long. Neither is kazoo's, and nothing here blocks kazoo's.
"""

from __future__ import annotations

import contextlib
import logging
import queue
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any, Final

from kazoo.exceptions import BadVersionError, KazooException, NoNodeError

from storm_on_spark.cluster.errors import ClusterError, NotLeaderError, UnavailableError
from storm_on_spark.cluster.leadership import rules
from storm_on_spark.cluster.leadership.clock import ClusterClock
from storm_on_spark.cluster.leadership.elector import LeaderElector
from storm_on_spark.cluster.paths import NIMBUSES
from storm_on_spark.cluster.records import LeaderInfo, NimbusSummary, Record
from storm_on_spark.cluster.zookeeper.changes import Fence
from storm_on_spark.cluster.zookeeper.kept_nodes import KeptNodes
from storm_on_spark.cluster.zookeeper.session import SessionState, ZooKeeperSession
from storm_on_spark.cluster.zookeeper.tree import Tree

logger = logging.getLogger(__name__)

_NODE: Final = "n-"
_CLOSE_SECS: Final = 10.0

Gate = Callable[[], Sequence[str]]


class ZooKeeperLeaderElector(LeaderElector):
    """Elects the leader in ZooKeeper.

    `is_leader` and `fence` can be asked at any time from any thread; they are ahead of `on_gained` and `on_lost`, which
    are called one after the other on the elector's thread and should return soon. A leader whose connection is
    suspended loses leadership, and gains it again, under the same fence, if its session has survived.

    From the first `add_to_leader_lock_queue` until `close`, the Nimbus is registered below `nimbuses`.

    Args:
        session: a session that has been started.
        summary: of this Nimbus.
        gate: returns the ids of active topologies whose code isn't here; it must return none. Called when
            the lock is held, so no other Nimbus writes; it has to look at ZooKeeper's state as it is by then
            (`ClusterView.refresh`).
        on_gained: called with the fence for all writes of this leadership.
        on_lost: called with the reason.
        fetch: fetches the code of topologies; called again and again while the gate names any.
        clock: seconds, for intervals.
        now: seconds since the epoch.
        cluster_clock: told what time it is for ZooKeeper when leadership is gained.
        title: what is elected, in the log.
        registered: whether there is a node below `nimbuses`; else only the queue says who is there.
        queued: value of a node in the queue, the same for every process at this address; the address for None.
        leading: returns what a new leader with this epoch writes; `LeaderInfo` for None.

    Example:
        >>> elector = ZooKeeperLeaderElector(                                   # doctest: +SKIP
        ...     session, summary, gate=code.missing, on_gained=nimbus.lead, on_lost=nimbus.follow, fetch=code.fetch
        ... )
        >>> elector.add_to_leader_lock_queue()                                  # doctest: +SKIP
    """

    def __init__(
        self,
        session: ZooKeeperSession,
        summary: NimbusSummary,
        gate: Gate,
        on_gained: Callable[[Fence], None],
        on_lost: Callable[[str], None],
        fetch: Callable[[list[str]], None],
        *,
        clock: Callable[[], float] = time.monotonic,
        now: Callable[[], float] = time.time,
        cluster_clock: ClusterClock | None = None,
        title: str = "Nimbus",
        registered: bool = True,
        queued: bytes | None = None,
        leading: Callable[[int], Record] | None = None,
    ) -> None:
        self._session = session
        self._lock, self._info = session.paths.layout.lock, session.paths.layout.info
        self._title, self._registered = title, registered
        self._cluster_clock = cluster_clock or ClusterClock(now)
        self._tree = Tree(session)
        self._summary = summary
        self._queued = summary.address.encode() if queued is None else queued
        self._leading = self._leader_info if leading is None else leading
        self.gate, self._fetch = gate, fetch
        self._on_gained, self._on_lost = on_gained, on_lost
        self._clock, self._now = clock, now
        self._rules = rules.ElectionRules()
        self._events: queue.SimpleQueue[rules.Event | threading.Event | None] = queue.SimpleQueue()
        self._errands: queue.SimpleQueue[rules.AskGate | rules.Fetch | None] = queue.SimpleQueue()
        self._threads: list[threading.Thread] = []
        self._kept: KeptNodes | None = None
        self._remove_listener: Callable[[], None] = lambda: None
        #: The fence, and the session that it belongs to; None while this Nimbus may not act as the leader.
        self._leadership: tuple[Fence, int] | None = None
        self._wait_until: float | None = None
        self._swept = False
        """Whether what an earlier process left in the queue has been removed."""
        self._closed = False

    @property
    def missing(self) -> tuple[str, ...]:
        """Ids of the topologies whose code keeps this Nimbus from leading."""
        return self._rules.missing

    @property
    def role(self) -> str:
        """The state of this Nimbus in the election, as text."""
        return self._rules.role.value

    def add_to_leader_lock_queue(self) -> None:
        """Asks to lead. Returns at once; leading comes later, and may come and go until the queue is left."""
        if self._closed:
            raise ClusterError("this elector has been closed")
        if not self._threads:
            self._start()
        self._events.put(rules.Wanted())

    def register(self) -> None:
        """Writes that this Nimbus is up once more: with another signature, say."""
        if self._kept is not None:
            self._kept.keep(self._summary, NIMBUSES, self._summary.address)

    def remove_from_leader_lock_queue(self) -> None:
        """Asks no longer; a leader steps down first. Returns when that has been done, as far as ZooKeeper is there."""
        if not self._threads:
            return
        done = threading.Event()
        self._events.put(rules.Unwanted())
        self._events.put(done)
        if threading.current_thread() not in self._threads:
            done.wait(_CLOSE_SECS)

    def is_leader(self) -> bool:
        """Whether this Nimbus leads, as far as can be known here: connected, and its session lives for sure."""
        return self._valid_fence() is not None

    def fence(self) -> Fence:
        """Returns what has to hold for every write of this leadership.

        Raises:
            NotLeaderError: this Nimbus doesn't lead.
        """
        fence = self._valid_fence()
        if fence is None:
            raise NotLeaderError(f"the Nimbus at {self._summary.address} doesn't lead: it {self.role}")
        return fence

    def get_leader_address(self) -> str | None:
        """Returns `host:port` of the leader, read from ZooKeeper; None while there is none.

        Raises:
            UnavailableError: ZooKeeper can't be reached.
        """
        queued = self._tree.children(self._lock)
        info = self._tree.get(LeaderInfo, self._info)
        if not queued or info is None:
            return None
        first = self._tree.stat(self._lock, queued[0])
        return info[0].address if first is not None and first.czxid == info[0].epoch else None

    def get_all_nimbus_addresses(self) -> list[str]:
        """Returns `host:port` of every Nimbus that is up, sorted.

        Raises:
            UnavailableError: ZooKeeper can't be reached.
        """
        return self._tree.children(NIMBUSES)

    def close(self) -> None:
        """Steps down, leaves the queue, and ends the threads; a gate or a fetch under way isn't waited for for long."""
        if self._closed:
            return
        self.remove_from_leader_lock_queue()
        self._closed = True
        self._remove_listener()
        self._events.put(None)
        self._errands.put(None)
        for thread in self._threads:
            if thread is not threading.current_thread():
                thread.join(_CLOSE_SECS)
        if self._kept is not None:
            self._kept.close()

    def _start(self) -> None:
        if self._registered:
            self._kept = KeptNodes(self._tree)
            self.register()
        self._remove_listener = self._session.add_listener(self._on_state)
        if self._session.state == "CONNECTED":
            self._on_state("CONNECTED")
        self._threads = [
            threading.Thread(target=self._run, name="leader-elector", daemon=True),
            threading.Thread(target=self._run_errands, name="leader-elector-code", daemon=True),
        ]
        for thread in self._threads:
            thread.start()

    def _leader_info(self, epoch: int) -> Record:
        return LeaderInfo(address=self._summary.address, epoch=epoch, since=self._now())

    def _valid_fence(self) -> Fence | None:
        leadership = self._leadership
        if leadership is None:
            return None
        fence, session = leadership
        return fence if self._session.lives(session) else None

    # Events.

    def _on_state(self, state: SessionState) -> None:
        if state == "CONNECTED":
            session = self._session.session_id
            # None if the connection has broken again; another event follows for that.
            if session is not None:
                self._events.put(rules.Connected(session))
        else:
            self._events.put(rules.Suspended() if state == "SUSPENDED" else rules.Lost())

    def _on_queue(self, event: Any) -> None:
        """Called by kazoo with the one event of a watch."""
        if event.path is not None:
            self._events.put(rules.QueueChanged())

    def _run(self) -> None:
        while True:
            due = self._wait_until
            try:
                event = self._events.get(timeout=None if due is None else max(0.0, due - self._clock()))
            except queue.Empty:
                pass
            else:
                if event is None:
                    return
                if isinstance(event, threading.Event):
                    event.set()
                else:
                    self._handle(event)
            if self._wait_until is not None and self._clock() >= self._wait_until:
                self._wait_until = None
                self._handle(rules.WaitOver())

    def _handle(self, event: rules.Event) -> None:
        """Takes an event to the rules, and the answers to what they say then, before any other event."""
        events: list[rules.Event] = [event]
        while events:
            before = self._rules.role
            instructions = self._rules.step(events.pop(0))
            if self._rules.role is not before:
                logger.info("%s %s %s", self._title, self._summary.address, self.role)
            for instruction in instructions:
                answer = self._carry_out(instruction)
                if answer is not None:
                    events.append(answer)

    # Instructions.

    def _carry_out(self, instruction: rules.Instruction) -> rules.Event | None:
        if isinstance(instruction, (rules.AskGate, rules.Fetch)):
            self._errands.put(instruction)
        elif isinstance(instruction, rules.Wait):
            self._wait_until = self._clock() + instruction.seconds
        elif isinstance(instruction, rules.Lead):
            self._lead(instruction.fence)
        elif isinstance(instruction, rules.StopLeading):
            self._stop_leading(instruction.reason)
        else:
            try:
                return self._ask_zookeeper(instruction)
            except (UnavailableError, KazooException) as error:
                what = type(instruction).__name__
                logger.warning("%s %s: %s failed: %r", self._title, self._summary.address, what, error)
                return rules.Failed(instruction)
        return None

    def _ask_zookeeper(self, instruction: rules.Instruction) -> rules.Event:
        client, path = self._session.client, self._session.paths.of
        if isinstance(instruction, rules.Look):
            names = self._wait(client.get_children_async(path(self._lock), watch=self._on_queue))
            if self._rules.role is rules.Role.LEADING:
                # A leader that reconnects must be sure that it still leads, and reads prove nothing.
                transaction = client.transaction()
                transaction.check(path(self._lock), -1)
                self._prove(transaction)
            return rules.QueueSeen(tuple(names))
        if isinstance(instruction, rules.Dequeue):
            with contextlib.suppress(NoNodeError):
                self._wait(client.delete_async(path(self._lock, instruction.node.name)))
            return rules.Dequeued(instruction.node)
        if isinstance(instruction, rules.Enqueue):
            return rules.Queued(self._enqueue())
        assert isinstance(instruction, rules.Claim)
        return self._claim(instruction.node)

    def _enqueue(self) -> rules.QueueNode:
        client, path = self._session.client, self._session.paths.of
        self._session.ensure_folders()
        mine: tuple[str, Any] | None = None
        for name in sorted(self._wait(client.get_children_async(path(self._lock)))):
            with contextlib.suppress(NoNodeError):
                data, stat = self._wait(client.get_async(path(self._lock, name)))
                if stat.ephemeralOwner == self._session.session_id:
                    # Made by an attempt whose answer got lost.
                    mine = name, stat
                elif data == self._queued and not self._swept:
                    # Left by an earlier process at this address; no Nimbus could lead until it expires.
                    self._wait(client.delete_async(path(self._lock, name)))
        self._swept = True
        if mine is None:
            made, stat = self._wait(
                client.create_async(
                    path(self._lock, _NODE),
                    self._queued,
                    acl=self._session.acl,
                    ephemeral=True,
                    sequence=True,
                    include_data=True,
                )
            )
            mine = made.rpartition("/")[2], stat
        if mine[1].ephemeralOwner != self._rules.session:
            raise UnavailableError("the ZooKeeper session ended while this Nimbus joined the queue of leaders")
        return rules.QueueNode(mine[0], mine[1].czxid)

    def _claim(self, node: rules.QueueNode) -> rules.Event:
        client, path = self._session.client, self._session.paths.of
        transaction = client.transaction()
        transaction.check(path(self._lock, node.name), 0)
        said = self._session.keyring.encode(self._leading(node.epoch), path(self._info), (node.epoch, 0))
        transaction.set_data(path(self._info), said)
        checked, written = self._prove(transaction)
        if isinstance(checked, (NoNodeError, BadVersionError)):
            return rules.ClaimRefused()
        for result in (checked, written):
            if isinstance(result, Exception):
                raise result
        self._cluster_clock.set(written.mtime / 1000)
        return rules.Claimed(Fence(node.epoch, path(self._lock, node.name), written.version))

    def _prove(self, transaction: Any) -> Any:
        """Returns the results of a transaction, from which also follows that the session lives."""
        with self._session.proof():
            return self._wait(transaction.commit_async())

    def _wait(self, result: Any) -> Any:
        return self._session.wait(result, self._session.settings.session_timeout_secs)

    def _lead(self, fence: Fence) -> None:
        session = self._rules.session
        assert session is not None
        self._leadership = (fence, session)
        self._session.proving = True
        logger.info("%s %s leads from now on, epoch %d", self._title, self._summary.address, fence.epoch)
        self._call(self._on_gained, fence)

    def _stop_leading(self, reason: str) -> None:
        self._leadership = None
        self._session.proving = False
        level = logging.INFO if reason == rules.ASKED else logging.WARNING
        logger.log(level, "%s %s doesn't lead any more: %s", self._title, self._summary.address, reason)
        self._call(self._on_lost, reason)

    def _call(self, function: Callable[[Any], None], argument: object) -> None:
        try:
            function(argument)
        except Exception:
            logger.exception(
                "%s %s: a callback after a change of leadership failed", self._title, self._summary.address
            )

    # Errands.

    def _run_errands(self) -> None:
        while (errand := self._errands.get()) is not None:
            if self._closed:
                continue
            try:
                if isinstance(errand, rules.AskGate):
                    missing = tuple(sorted(self.gate()))
                    if missing:
                        logger.warning(
                            "%s %s can't lead: it lacks the code of %s",
                            self._title,
                            self._summary.address,
                            ", ".join(missing),
                        )
                    answer: rules.Event = rules.GateAnswered(errand.attempt, missing)
                else:
                    answer = rules.Fetched(errand.attempt)
                    self._fetch(list(errand.missing))
            except Exception:
                logger.exception("%s %s: %s failed", self._title, self._summary.address, type(errand).__name__)
                if isinstance(errand, rules.AskGate):
                    answer = rules.GateAnswered(errand.attempt, None)
            self._events.put(answer)
