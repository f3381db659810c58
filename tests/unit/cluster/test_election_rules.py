"""The rules of leadership, against a ZooKeeper of a few lines and everything that can happen in any order."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from itertools import count

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule
from lengths import examples

from storm_on_spark.cluster.leadership import rules as r
from storm_on_spark.cluster.zookeeper.changes import Fence

MEMBERS = 3
WHICH = st.integers(0, MEMBERS - 1)


@dataclass
class QueueEntry:
    session: int
    epoch: int


class Zoo:
    """What a ZooKeeper ensemble has to do for an election."""

    def __init__(self) -> None:
        self.zxid = count(1)
        self.sessions: set[int] = set()
        self.queue: dict[str, QueueEntry] = {}
        self.info_version = 0
        self.epochs: list[int] = []

    def new_session(self) -> int:
        session = next(self.zxid)
        self.sessions.add(session)
        return session

    def expire(self, session: int) -> None:
        self.sessions.discard(session)
        self.queue = {name: entry for name, entry in self.queue.items() if entry.session != session}

    def holds(self, fence: Fence) -> bool:
        entry = self.queue.get(fence.lock_path)
        return entry is not None and entry.epoch == fence.epoch and self.info_version == fence.info_version


@dataclass
class Member:
    """A Nimbus: the rules, and what a shell around them has to remember."""

    rules: r.ElectionRules = field(default_factory=r.ElectionRules)
    inbox: deque[r.Event] = field(default_factory=deque)
    errands: deque[r.AskGate | r.Fetch] = field(default_factory=deque)
    answers: deque[r.Event] = field(default_factory=deque)
    session: int | None = None
    up: bool = False
    watching: bool = False
    waiting: bool = False
    wanted: bool = False
    has_code: bool = True
    fence: Fence | None = None


class Election(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.zoo = Zoo()
        self.members = [Member() for _ in range(MEMBERS)]

    # What may happen.

    @rule(i=WHICH)
    def wants_to_lead(self, i: int) -> None:
        self.members[i].wanted = True
        self.members[i].inbox.append(r.Wanted())

    @rule(i=WHICH)
    def steps_down(self, i: int) -> None:
        self.members[i].wanted = False
        self.members[i].inbox.append(r.Unwanted())

    @rule(i=WHICH)
    def connects(self, i: int) -> None:
        member = self.members[i]
        if member.up:
            return
        if member.session is not None and member.session not in self.zoo.sessions:
            member.inbox.append(r.Lost())
            member.session = None
        if member.session is None:
            member.session = self.zoo.new_session()
        member.up = True
        member.inbox.append(r.Connected(member.session))

    @rule(i=WHICH)
    def loses_the_connection(self, i: int) -> None:
        self._down(self.members[i])

    @rule(i=WHICH)
    def session_expires(self, i: int) -> None:
        member = self.members[i]
        if member.session in self.zoo.sessions:
            self.zoo.expire(member.session)
            self._queue_changed()
            self._down(member)

    @rule(i=WHICH)
    def somebody_deletes_its_node(self, i: int) -> None:
        member = self.members[i]
        for name in [name for name, entry in self.zoo.queue.items() if entry.session == member.session]:
            del self.zoo.queue[name]
            self._queue_changed()

    @rule(i=WHICH)
    def lacks_code(self, i: int) -> None:
        # New topologies come only from a leader, and it has them.
        if self._leader() != i:
            self.members[i].has_code = False

    @rule(i=WHICH, lost=st.integers(0, 4), breaks=st.booleans())
    def takes_note(self, i: int, lost: int, breaks: bool) -> None:
        """A member that is paused takes no note for a long time, and then of everything."""
        member = self.members[i]
        if member.inbox:
            self._handle(member, member.inbox.popleft(), lost, breaks)

    @rule(i=WHICH, succeeds=st.booleans())
    def runs_an_errand(self, i: int, succeeds: bool) -> None:
        self._errand(self.members[i], succeeds)

    @rule(i=WHICH)
    def hears_of_an_errand(self, i: int) -> None:
        self._answer(self.members[i])

    @precondition(lambda self: any(member.waiting for member in self.members))
    @rule(i=WHICH)
    def waited(self, i: int) -> None:
        self._wait_over(self.members[i])

    # What must never be.

    @invariant()
    def at_most_one_leader_can_write(self) -> None:
        assert len(self._can_write()) <= 1

    @invariant()
    def who_can_write_has_all_code(self) -> None:
        assert all(self.members[i].has_code for i in self._can_write())

    @invariant()
    def epochs_grow(self) -> None:
        assert self.zoo.epochs == sorted(set(self.zoo.epochs))

    @invariant()
    def what_the_rules_say_is_what_the_shell_was_told(self) -> None:
        for member in self.members:
            assert member.rules.acting == (member.fence is not None)

    def teardown(self) -> None:
        """Once everything works again, one of those that want to leads, and nobody else stands in the way."""
        for _ in range(300):
            for i, member in enumerate(self.members):
                self.connects(i)
                while member.inbox:
                    self._handle(member, member.inbox.popleft())
                self._errand(member, succeeds=True)
                self._answer(member)
                self._wait_over(member)
        wanted = [i for i, member in enumerate(self.members) if member.wanted]
        leaders = self._can_write()
        assert len(leaders) == min(1, len(wanted))
        assert set(leaders) <= set(wanted)
        assert [i for i, member in enumerate(self.members) if member.fence is not None] == leaders
        sessions = sorted(entry.session for entry in self.zoo.queue.values())
        assert sessions == sorted(self.members[i].session or 0 for i in wanted)

    # How.

    def _can_write(self) -> list[int]:
        return [i for i, member in enumerate(self.members) if member.fence is not None and self.zoo.holds(member.fence)]

    def _leader(self) -> int | None:
        """Whose node is first, whether or not it leads yet: nobody else has added a topology since."""
        if not self.zoo.queue:
            return None
        first = self.zoo.queue[min(self.zoo.queue)].session
        return next((i for i, member in enumerate(self.members) if member.session == first), None)

    def _down(self, member: Member) -> None:
        if member.up:
            member.up = member.watching = False
            member.inbox.append(r.Suspended())

    def _queue_changed(self) -> None:
        for member in self.members:
            if member.watching and member.up:
                member.watching = False
                member.inbox.append(r.QueueChanged())

    def _handle(self, member: Member, event: r.Event, lost: int = 0, breaks: bool = False) -> None:
        """Handles an event.

        Args:
            lost: which of ZooKeeper's answers gets lost, from 1.
            breaks: whether the connection breaks with it; else the answer only takes too long.
        """
        events = [event]
        while events:
            for instruction in member.rules.step(events.pop(0)):
                answer = self._carry_out(member, instruction)
                if answer is None:
                    continue
                lost -= 1
                if lost == 0 and not isinstance(answer, r.Failed):
                    answer = r.Failed(instruction)
                    if breaks:
                        self._down(member)
                events.append(answer)

    def _carry_out(self, member: Member, instruction: r.Instruction) -> r.Event | None:
        if isinstance(instruction, (r.AskGate, r.Fetch)):
            member.errands.append(instruction)
            return None
        if isinstance(instruction, r.Wait):
            member.waiting = True
            return None
        if isinstance(instruction, r.Lead):
            assert member.fence is None
            member.fence = instruction.fence
            return None
        if isinstance(instruction, r.StopLeading):
            assert member.fence is not None
            member.fence = None
            return None
        if not member.up or member.session not in self.zoo.sessions:
            return r.Failed(instruction)
        return self._ask(member, instruction)

    def _ask(self, member: Member, instruction: r.Instruction) -> r.Event:
        assert member.session is not None
        queue = self.zoo.queue
        if isinstance(instruction, r.Enqueue):
            mine = [name for name, entry in sorted(queue.items()) if entry.session == member.session]
            if not mine:
                epoch = next(self.zoo.zxid)
                mine = [f"n-{epoch:010}"]
                queue[mine[0]] = QueueEntry(member.session, epoch)
                self._queue_changed()
            if member.session != member.rules.session:
                return r.Failed(instruction)
            return r.Queued(r.QueueNode(mine[0], queue[mine[0]].epoch))
        if isinstance(instruction, r.Dequeue):
            if queue.pop(instruction.node.name, None) is not None:
                self._queue_changed()
            return r.Dequeued(instruction.node)
        if isinstance(instruction, r.Look):
            member.watching = True
            return r.QueueSeen(tuple(queue))
        assert isinstance(instruction, r.Claim)
        node = instruction.node
        if node.name not in queue:
            return r.ClaimRefused()
        self.zoo.info_version += 1
        if not self.zoo.epochs or self.zoo.epochs[-1] != node.epoch:
            self.zoo.epochs.append(node.epoch)
        return r.Claimed(Fence(node.epoch, node.name, self.zoo.info_version))

    def _errand(self, member: Member, succeeds: bool) -> None:
        if not member.errands:
            return
        errand = member.errands.popleft()
        if isinstance(errand, r.Fetch):
            member.has_code = member.has_code or succeeds
            member.answers.append(r.Fetched(errand.attempt))
        elif succeeds:
            member.answers.append(r.GateAnswered(errand.attempt, () if member.has_code else ("words-1-1700000000",)))
        else:
            member.answers.append(r.GateAnswered(errand.attempt, None))

    def _answer(self, member: Member) -> None:
        if member.answers:
            member.inbox.append(member.answers.popleft())

    def _wait_over(self, member: Member) -> None:
        if member.waiting:
            member.waiting = False
            self._handle(member, r.WaitOver())


TestElection = Election.TestCase
TestElection.settings = settings(max_examples=examples(150), stateful_step_count=60, deadline=None)


NODE = r.QueueNode("n-0000000007", epoch=21)


def asked() -> tuple[r.ElectionRules, r.AskGate]:
    """Returns the rules of a server that is first in the queue, and its question whether it has all code."""
    rules = r.ElectionRules()
    rules.step(r.Connected(1))
    rules.step(r.Wanted())
    rules.step(r.Queued(NODE))
    (ask,) = rules.step(r.QueueSeen((NODE.name,)))
    assert isinstance(ask, r.AskGate)
    return rules, ask


def leading() -> r.ElectionRules:
    rules, ask = asked()
    assert rules.step(r.GateAnswered(ask.attempt, ())) == [r.Claim(NODE)]
    fence = Fence(NODE.epoch, NODE.name, 3)
    assert rules.step(r.Claimed(fence)) == [r.Lead(fence)]
    return rules


def test_a_leader_goes_on_when_its_session_has_survived() -> None:
    rules = leading()
    assert rules.step(r.Suspended()) == [r.StopLeading("its connection is suspended")]
    assert not rules.acting
    assert rules.step(r.Connected(1)) == [r.Look()]
    assert rules.step(r.QueueSeen((NODE.name,))) == [r.Lead(Fence(NODE.epoch, NODE.name, 3))]


def test_a_leader_starts_over_when_its_session_has_ended() -> None:
    rules = leading()
    rules.step(r.Suspended())
    assert rules.step(r.Lost()) == []
    assert rules.step(r.Connected(2)) == [r.Enqueue()]


def test_a_new_session_without_a_word_about_the_old_one_is_a_lost_one() -> None:
    rules = leading()
    assert rules.step(r.Connected(2)) == [r.StopLeading("its session has ended"), r.Enqueue()]


def test_a_late_answer_of_the_gate_does_not_count() -> None:
    rules, ask = asked()
    rules.step(r.Suspended())
    rules.step(r.Connected(1))
    assert rules.step(r.GateAnswered(ask.attempt, ())) == []
    (again,) = rules.step(r.QueueSeen((NODE.name,)))
    assert isinstance(again, r.AskGate)
    assert again.attempt > ask.attempt
    # It may have been true before another led and took topologies in.
    assert rules.step(r.GateAnswered(ask.attempt, ())) == []
    assert rules.step(r.GateAnswered(again.attempt, ())) == [r.Claim(NODE)]


def test_who_lacks_code_gives_way_and_comes_back_with_it() -> None:
    rules, ask = asked()
    dequeue, fetch = rules.step(r.GateAnswered(ask.attempt, ("t1",)))
    assert dequeue == r.Dequeue(NODE)
    assert isinstance(fetch, r.Fetch)
    assert fetch.missing == rules.missing == ("t1",)
    (ask,) = rules.step(r.Fetched(fetch.attempt))
    assert isinstance(ask, r.AskGate)
    assert rules.step(r.GateAnswered(ask.attempt, ())) == [r.Enqueue()]
    assert rules.missing == ()


def test_fetching_in_vain_backs_off() -> None:
    rules, ask = asked()
    _, fetch = rules.step(r.GateAnswered(ask.attempt, ("t1",)))
    rules.step(r.Dequeued(NODE))
    waits = []
    for _ in range(8):
        assert isinstance(fetch, r.Fetch)
        (ask,) = rules.step(r.Fetched(fetch.attempt))
        assert isinstance(ask, r.AskGate)
        (wait,) = rules.step(r.GateAnswered(ask.attempt, ("t1", "t2")))
        assert isinstance(wait, r.Wait)
        waits.append(wait.seconds)
        (fetch,) = rules.step(r.WaitOver())
    assert waits == [1, 2, 4, 8, 16, 30, 30, 30]
    assert rules.missing == ("t1", "t2")


def test_a_node_of_an_attempt_that_nobody_heard_of_is_removed() -> None:
    rules = r.ElectionRules()
    rules.step(r.Connected(1))
    rules.step(r.Wanted())
    assert rules.step(r.Failed(r.Enqueue())) == [r.Wait(r.RETRY_SECS)]
    assert rules.step(r.Unwanted()) == [r.Enqueue()]
    assert rules.step(r.Queued(NODE)) == [r.Dequeue(NODE)]
    assert rules.step(r.Failed(r.Dequeue(NODE))) == [r.Wait(r.RETRY_SECS)]
    assert rules.step(r.WaitOver()) == [r.Dequeue(NODE)]


@pytest.mark.parametrize("connected", [True, False])
def test_stepping_down_leaves_no_node_behind(connected: bool) -> None:
    rules = leading()
    if connected:
        assert rules.step(r.Unwanted()) == [r.StopLeading("it was asked to"), r.Dequeue(NODE)]
        assert rules.step(r.Failed(r.Dequeue(NODE))) == [r.Wait(r.RETRY_SECS)]
        assert rules.step(r.WaitOver()) == [r.Dequeue(NODE)]
    else:
        rules.step(r.Suspended())
        assert rules.step(r.Unwanted()) == []
        assert rules.step(r.Connected(1)) == [r.Dequeue(NODE)]
    assert rules.step(r.Dequeued(NODE)) == []
    assert rules.step(r.WaitOver()) == []
