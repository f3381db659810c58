"""The rules of leadership: what happens goes in, what is to be done comes out. No I/O, no clock, no threads.

A Nimbus that wants to lead puts a node into a queue. Whose node is first has the lock, is asked whether it has the code
of all active topologies (the gate), and then claims leadership in one transaction. One that lacks code gives the lock
up, fetches, and queues again; meanwhile another may lead.

    IDLE --Want--> QUEUEING --Queued--> QUEUED --first--> CHECKING --gate open--> CLAIMING --Claimed--> LEADING
                      ^                                       |
                      |                                       +--gate shut--> FETCHING <--> WAITING
                      +---------------gate open--------------------------------'

A connection that is suspended takes nothing but the right to act: the node may still be there when it comes back. A
lost session has taken the node with it. Answers that come late, to what was asked before things changed, are told by
their `attempt`.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Final

from storm_on_spark.cluster.zookeeper.changes import Fence

ASKED: Final = "it was asked to"
"""Why a leader ends that is no longer wanted."""
RETRY_SECS: Final = 1.0
"""Until something that failed though the connection holds is tried again; first of the back-off while code lacks."""
MAX_WAIT_SECS: Final = 30.0


class Role(Enum):
    """The state of a Nimbus in the election."""

    IDLE = "doesn't want to lead"
    AWAY = "wants to queue, and can't at the moment"
    QUEUEING = "is about to queue"
    QUEUED = "waits for its turn"
    CHECKING = "is first, and looks whether it has all code"
    CLAIMING = "is first, has all code, and says so"
    LEADING = "leads"
    FETCHING = "gave its turn up and fetches code"
    WAITING = "could not fetch all code and waits before it tries again"


@dataclass(frozen=True)
class QueueNode:
    """A node in the queue."""

    name: str
    """Names sort as the nodes were made."""
    epoch: int
    """Id of the transaction that made it."""


# What happens.


@dataclass(frozen=True)
class Wanted:
    """This Nimbus is to lead when its turn comes."""


@dataclass(frozen=True)
class Unwanted:
    """It is no longer to."""


@dataclass(frozen=True)
class Connected:
    """There is a connection, of this session."""

    session: int


@dataclass(frozen=True)
class Suspended:
    """There is no connection, and it is unknown whether the session still lives."""


@dataclass(frozen=True)
class Lost:
    """The session has ended."""


@dataclass(frozen=True)
class Queued:
    """Our node is in the queue."""

    node: QueueNode


@dataclass(frozen=True)
class QueueChanged:
    """Something happened in the queue."""


@dataclass(frozen=True)
class QueueSeen:
    """Names of all nodes in the queue."""

    names: tuple[str, ...]


@dataclass(frozen=True)
class GateAnswered:
    """Ids of active topologies whose code isn't here; None if that couldn't be found out."""

    attempt: int
    missing: tuple[str, ...] | None


@dataclass(frozen=True)
class Fetched:
    """Fetching has ended, with whatever success."""

    attempt: int


@dataclass(frozen=True)
class Claimed:
    """Leadership is ours."""

    fence: Fence


@dataclass(frozen=True)
class ClaimRefused:
    """Our node in the queue has gone."""


@dataclass(frozen=True)
class Dequeued:
    """One of our nodes is out of the queue."""

    node: QueueNode


@dataclass(frozen=True)
class Failed:
    """An instruction failed; it is unknown which of its steps took effect."""

    what: Instruction


@dataclass(frozen=True)
class WaitOver:
    """The time to wait is over."""


Event = (
    Wanted
    | Unwanted
    | Connected
    | Suspended
    | Lost
    | Queued
    | QueueChanged
    | QueueSeen
    | GateAnswered
    | Fetched
    | Claimed
    | ClaimRefused
    | Dequeued
    | Failed
    | WaitOver
)


# What is to be done.


@dataclass(frozen=True)
class Enqueue:
    """Put a node into the queue; answered by `Queued`, with a node of this session that is there already."""


@dataclass(frozen=True)
class Dequeue:
    """Take a node out of the queue; answered by `Dequeued`, also if it isn't there."""

    node: QueueNode


@dataclass(frozen=True)
class Look:
    """Read the queue and watch it; answered by `QueueSeen`, later by `QueueChanged`."""


@dataclass(frozen=True)
class AskGate:
    """Find out which code is missing; answered by `GateAnswered`."""

    attempt: int


@dataclass(frozen=True)
class Fetch:
    """Fetch code; answered by `Fetched`."""

    attempt: int
    missing: tuple[str, ...]


@dataclass(frozen=True)
class Claim:
    """Claim leadership; answered by `Claimed` or `ClaimRefused`."""

    node: QueueNode


@dataclass(frozen=True)
class Lead:
    """Act as the leader from now on."""

    fence: Fence


@dataclass(frozen=True)
class StopLeading:
    """Don't act as the leader any more."""

    reason: str


@dataclass(frozen=True)
class Wait:
    """Send `WaitOver` after this many seconds; a later `Wait` takes the place of this one."""

    seconds: float


Instruction = Enqueue | Dequeue | Look | AskGate | Fetch | Claim | Lead | StopLeading | Wait

_WITH_NODE: Final = (Role.QUEUED, Role.CHECKING, Role.CLAIMING, Role.LEADING)


class ElectionRules:
    """One Nimbus in the election.

    Example:
        >>> rules = ElectionRules()
        >>> rules.step(Connected(session=1)), rules.step(Wanted())
        ([], [Enqueue()])
        >>> rules.step(Queued(QueueNode("n-0000000001", epoch=17)))
        [Look()]
        >>> rules.step(QueueSeen(("n-0000000000", "n-0000000001")))
        []
        >>> rules.step(QueueSeen(("n-0000000001",)))
        [AskGate(attempt=3)]
        >>> rules.step(GateAnswered(3, missing=("words-1-1700000000",)))
        [Dequeue(node=QueueNode(name='n-0000000001', epoch=17)), Fetch(attempt=4, missing=('words-1-1700000000',))]
    """

    def __init__(self) -> None:
        self.role = Role.IDLE
        self.acting = False
        """Whether it leads, and may act; a leader whose connection is suspended may not."""
        self.missing: tuple[str, ...] = ()
        """Whose code it lacked when it was asked last."""
        self._wanted = False
        self.session: int | None = None
        """The session that our nodes belong to; it may be suspended."""
        self._connected = False
        self._node: QueueNode | None = None
        self._leaving: set[QueueNode] = set()
        """Our nodes that must go and may not have gone yet; first in the queue they'd keep all others out."""
        self._unsure = False
        """Whether there may be a node of ours that we don't know of, because the answer to `Enqueue` got lost. That can
        happen even after the session has ended: the request may already have been sent in the next one."""
        self._fence: Fence | None = None
        self._attempt = 0
        self._refusals = 0

    def step(self, event: Event) -> list[Instruction]:
        """Takes in what happened.

        Returns:
            What to do, in this order.
        """
        if isinstance(event, (Connected, Suspended, Lost)):
            return self._connection(event)
        if isinstance(event, Wanted):
            if self._wanted:
                return []
            self._wanted = True
            return self._queue()
        if isinstance(event, Unwanted):
            self._wanted = False
            return [*self._stop_leading(ASKED), *(self._leave(Role.IDLE) or self._sweep())]
        if isinstance(event, (GateAnswered, Fetched)):
            return self._code(event) if event.attempt == self._attempt else []
        if isinstance(event, WaitOver):
            return self._wait_over()
        return self._queue_event(event)

    def _connection(self, event: Connected | Suspended | Lost) -> list[Instruction]:
        done: list[Instruction] = []
        if isinstance(event, Connected):
            if self.session is not None and self.session != event.session:
                done += self._connection(Lost())
            self.session, self._connected = event.session, True
            done += self._sweep()
            if self.role is Role.AWAY:
                done += self._queue()
            elif self.role in _WITH_NODE:
                done.append(Look())
            return done
        lost = isinstance(event, Lost)
        done += self._stop_leading("its session has ended" if lost else "its connection is suspended")
        self._connected = False
        if lost:
            self.session = self._node = self._fence = None
            self._leaving.clear()
            if self.role in (*_WITH_NODE, Role.QUEUEING):
                self._become(Role.AWAY)
        elif self.role is Role.QUEUEING:
            self._unsure = True
            self._become(Role.AWAY)
        elif self.role in (Role.CHECKING, Role.CLAIMING):
            self._become(Role.QUEUED)
        return done

    def _queue_event(self, event: Event) -> list[Instruction]:
        if isinstance(event, Queued):
            self._unsure = False
            if self.role is not Role.QUEUEING:
                self._leaving.add(event.node)
                return [Dequeue(event.node)]
            self._leaving.discard(event.node)
            self._node = event.node
            self._become(Role.QUEUED)
            return [Look()]
        if isinstance(event, Dequeued):
            self._leaving.discard(event.node)
            return []
        if isinstance(event, QueueChanged):
            return [Look()] if self._connected and self.role in _WITH_NODE else []
        if isinstance(event, QueueSeen):
            return self._seen(event.names)
        if isinstance(event, Claimed):
            if self.role is not Role.CLAIMING:
                return []
            self._become(Role.LEADING)
            self._fence, self.acting, self._refusals, self.missing = event.fence, True, 0, ()
            return [Lead(event.fence)]
        if isinstance(event, ClaimRefused):
            return self._leave_and_queue() if self.role is Role.CLAIMING else []
        assert isinstance(event, Failed)
        if isinstance(event.what, Enqueue):
            self._unsure = True
            if self.role is Role.QUEUEING:
                self._become(Role.AWAY)
        elif isinstance(event.what, Claim) and self.role is Role.CLAIMING:
            self._become(Role.QUEUED)
        return [Wait(RETRY_SECS)] if self._connected else []

    def _seen(self, names: tuple[str, ...]) -> list[Instruction]:
        if self.role not in _WITH_NODE or not self._connected:
            return []
        assert self._node is not None
        if self._node.name not in names:
            return [*self._stop_leading("its node in the queue has gone"), *self._leave_and_queue()]
        if min(names) != self._node.name:
            return []
        if self.role is Role.QUEUED:
            self._become(Role.CHECKING)
            return [AskGate(self._attempt)]
        if self.role is Role.LEADING and not self.acting:
            assert self._fence is not None
            self.acting = True
            return [Lead(self._fence)]
        return []

    def _code(self, event: GateAnswered | Fetched) -> list[Instruction]:
        if isinstance(event, Fetched):
            return [AskGate(self._attempt)] if self.role is Role.FETCHING else []
        if self.role not in (Role.CHECKING, Role.FETCHING):
            return []
        self.missing = event.missing or ()
        if event.missing is not None and not event.missing:
            self._refusals = 0
            if self.role is Role.FETCHING:
                return self._queue()
            assert self._node is not None
            self.role = Role.CLAIMING
            return [Claim(self._node)]
        if self.role is Role.CHECKING and event.missing:
            return [*self._leave(Role.FETCHING), Fetch(self._attempt, event.missing)]
        seconds = min(MAX_WAIT_SECS, RETRY_SECS * 2**self._refusals)
        self._refusals = min(self._refusals + 1, 10)
        return [*self._leave(Role.WAITING), Wait(seconds)]

    def _wait_over(self) -> list[Instruction]:
        done = self._sweep()
        if self.role is Role.WAITING:
            self._become(Role.FETCHING)
            done.append(Fetch(self._attempt, self.missing) if self.missing else AskGate(self._attempt))
        elif self._connected and self.role is Role.AWAY:
            done += self._queue()
        elif self._connected and (self.role is Role.QUEUED or (self.role is Role.LEADING and not self.acting)):
            done.append(Look())
        return done

    def _queue(self) -> list[Instruction]:
        self._become(Role.QUEUEING if self._connected else Role.AWAY)
        return [Enqueue()] if self._connected else []

    def _sweep(self) -> list[Instruction]:
        """Takes nodes out of the queue that should have gone, and those that we would have to know of first."""
        if not self._connected:
            return []
        dequeue: list[Instruction] = [Dequeue(node) for node in sorted(self._leaving, key=lambda node: node.name)]
        return [*dequeue, Enqueue()] if self._unsure and self.role is Role.IDLE else dequeue

    def _leave_and_queue(self) -> list[Instruction]:
        return [*self._leave(Role.AWAY), *self._queue()]

    def _leave(self, role: Role) -> list[Instruction]:
        """Takes our node out of the queue."""
        node, self._node, self._fence = self._node, None, None
        self._become(role)
        if node is None:
            return []
        self._leaving.add(node)
        return [Dequeue(node)] if self._connected else []

    def _stop_leading(self, reason: str) -> list[Instruction]:
        if not self.acting:
            return []
        self.acting = False
        return [StopLeading(reason)]

    def _become(self, role: Role) -> None:
        """Answers to what was asked in another role don't count any more."""
        if role is not self.role:
            self._attempt += 1
        self.role = role
