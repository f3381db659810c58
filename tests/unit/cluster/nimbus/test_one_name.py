"""One name is one topology's, whoever submits it when and where: exhaustively, at every step of a submission."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from memory_state import MemoryCode, MemoryState

from storm_on_spark.api.errors import AlreadyAliveError
from storm_on_spark.cluster.code.checksums import artifacts_of
from storm_on_spark.cluster.code.packing.bundle import pack
from storm_on_spark.cluster.errors import ConflictError, FencedError
from storm_on_spark.cluster.nimbus.accepting.submission import Submissions, SubmitRequest
from storm_on_spark.cluster.nimbus.settings import NimbusSettings
from storm_on_spark.cluster.paths import COUNTER, NAMES, STORMS, SUBMISSIONS
from storm_on_spark.cluster.records import NameClaim, StormBase, decode
from storm_on_spark.cluster.state import Fence

NAME = "same"
MOST_STEPS = 60


class Nimbus:
    """What takes topologies in, on one of the Nimbuses."""

    def __init__(self, state: MemoryState, folder: Path) -> None:
        self.state, self.folder = state, folder
        self.submissions = Submissions(
            state, MemoryCode(), "n:1", NimbusSettings.of({}), {}, Path("checkpoints"), lambda: None, now=lambda: 1.0
        )

    def submit(self, fence: Fence, key: str) -> str:
        request = SubmitRequest(key=key * 32, name=NAME, artifacts=artifacts_of(self.folder))
        return self.submissions.accept(fence, request, self.folder)

    def advance(self, fence: Fence) -> None:
        self.submissions.advance(fence, self.state.snapshot())


@pytest.fixture(scope="module")
def packed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    source = tmp_path_factory.mktemp("source") / "job.py"
    source.write_text("topology = None\n")
    folder = tmp_path_factory.mktemp("packed") / "packed"
    pack(str(source), folder, conf={})
    return folder


def interrupt(state: MemoryState, step: int, what: Callable[[], object]) -> list[int]:
    """Has `what` happen before the operation of that number; returns where to find whether it did."""
    seen = [0]

    def before() -> None:
        seen[0] += 1
        if seen[0] == step:
            # Its own operations are no steps of the one that it interrupts.
            state.before = lambda: None
            what()
            state.before = before

    state.before = before
    return seen


def judge(state: MemoryState) -> None:
    """The law: at most one topology or submission of the name, and the claim is its."""
    names = Counter(base.name for base in state.snapshot().storms.values())
    names.update(submission.name for submission in state.snapshot().submissions.values())
    assert names[NAME] <= 1
    claim = state.nodes.get((NAMES, NAME))
    if names[NAME]:
        assert claim is not None
        owner = decode(NameClaim, claim.data, "claim").topology_id
        assert owner in {
            *state.snapshot().storms,
            *(submission.topology_id for submission in state.snapshot().submissions.values()),
        }


def test_another_thread_submits_and_activates_at_any_moment(packed: Path) -> None:
    won = Counter()
    for step in range(1, MOST_STEPS):
        state = MemoryState()
        fence = state.lead()
        mine, other = Nimbus(state, packed), Nimbus(state, packed)

        def meanwhile(other: Nimbus = other, fence: Fence = fence) -> None:
            try:
                other.submit(fence, "b")
            except AlreadyAliveError:
                won["refused"] += 1
            other.advance(fence)

        seen = interrupt(state, step, meanwhile)
        try:
            mine.submit(fence, "a")
            won["a"] += 1
        except AlreadyAliveError:
            won["b"] += 1
        except ConflictError:
            # Its submission was taken for one that its leader left behind: the client sends it again.
            won["again"] += 1
        state.before = lambda: None
        judge(state)
        mine.advance(fence)
        judge(state)
        if seen[0] < step:
            break
    else:
        pytest.fail("a submission takes more steps than were tried")
    assert won["a"] > 0, won
    assert won["b"] > 0, won


def test_a_submission_that_becomes_a_topology_is_never_missed(packed: Path) -> None:
    for step in range(1, MOST_STEPS):
        state = MemoryState()
        fence = state.lead()
        first, second = Nimbus(state, packed), Nimbus(state, packed)
        first.submit(fence, "a")
        seen = interrupt(state, step, lambda first=first, fence=fence: first.advance(fence))
        with pytest.raises(AlreadyAliveError, match=NAME):
            second.submit(fence, "b")
        state.before = lambda: None
        second.advance(fence)
        assert [base.submission_key[0] for base in state.snapshot().storms.values()] == ["a"]
        if seen[0] < step:
            return
    pytest.fail("a submission takes more steps than were tried")


def test_a_new_leader_takes_the_name_at_any_moment(packed: Path) -> None:
    outcomes = Counter()
    for step in range(1, MOST_STEPS):
        state = MemoryState()
        old_fence = state.lead()
        old, new = Nimbus(state, packed), Nimbus(state, packed)
        fences = [old_fence]

        def meanwhile(new: Nimbus = new, state: MemoryState = state, fences: list[Fence] = fences) -> None:
            fences[0] = state.lead()
            new.advance(fences[0])
            try:
                new.submit(fences[0], "b")
                outcomes["b"] += 1
            except AlreadyAliveError:
                outcomes["a"] += 1
            judge(state)

        seen = interrupt(state, step, meanwhile)
        try:
            old.submit(old_fence, "a")
        except (FencedError, AlreadyAliveError, ConflictError):
            # The client asks the new one.
            try:
                new.submit(fences[0], "a")
            except AlreadyAliveError:
                assert outcomes["b"]
        state.before = lambda: None
        judge(state)
        new.advance(fences[0])
        judge(state)
        assert len(state.snapshot().storms) == 1
        if seen[0] < step:
            break
    else:
        pytest.fail("a submission takes more steps than were tried")
    assert outcomes["a"] > 0, outcomes
    assert outcomes["b"] > 0, outcomes


def test_a_submission_that_is_sent_again_to_a_leader_without_its_code_is_not_refused(packed: Path) -> None:
    for step in range(1, MOST_STEPS):
        state = MemoryState()
        fence, nimbus = state.lead(), Nimbus(state, packed)

        class DeadError(Exception):
            pass

        def die() -> None:
            raise DeadError

        seen = interrupt(state, step, die)
        with contextlib.suppress(DeadError):
            nimbus.submit(fence, "a")
        state.before = lambda: None
        # Its disk is gone with it; the client knows of no answer.
        successor = Nimbus(state, packed)
        held: set[str] = set()
        code = successor.submissions.distributor
        upload = code.upload
        code.holds = lambda topology_id, metafile, held=held: topology_id in held
        code.upload = lambda folder, topology_id, upload=upload, held=held: (
            held.add(topology_id),
            upload(folder, topology_id),
        )[1]
        fence = state.lead()
        topology_id = successor.submit(fence, "a")
        judge(state)
        successor.advance(fence)
        judge(state)
        assert list(state.snapshot().storms) == [topology_id]
        with pytest.raises(AlreadyAliveError):
            successor.submit(fence, "b")
        if seen[0] < step:
            return
    pytest.fail("a submission takes more steps than were tried")


def test_a_claim_that_outlived_its_topology_is_no_obstacle(packed: Path) -> None:
    # Somebody removed the topology's node by hand.
    state = MemoryState()
    state.put(NameClaim(topology_id="same-7-7"), NAMES, NAME)
    fence, nimbus = state.lead(), Nimbus(state, packed)
    topology_id = nimbus.submit(fence, "a")
    judge(state)
    assert decode(NameClaim, state.nodes[NAMES, NAME].data, "claim").topology_id == topology_id


def test_a_submission_whose_code_never_came_gives_the_name_back(packed: Path) -> None:
    state = MemoryState()
    fence, nimbus = state.lead(), Nimbus(state, packed)
    stopped = RuntimeError("the leader dies here")

    def die(folder: Path, topology_id: str) -> str:
        raise stopped

    nimbus.submissions.distributor.upload = die
    with pytest.raises(RuntimeError):
        nimbus.submit(fence, "a")
    assert (NAMES, NAME) in state.nodes
    successor = Nimbus(state, packed)
    successor.advance(state.lead())
    assert {parts[0] for parts in state.nodes} == {COUNTER}


def test_the_name_of_one_that_cant_be_read_is_taken(packed: Path) -> None:
    state = MemoryState()
    fence, nimbus = state.lead(), Nimbus(state, packed)
    topology_id = nimbus.submit(fence, "a")
    nimbus.advance(fence)
    assert isinstance(state.get(StormBase, STORMS, topology_id), tuple)
    state.put(b'{"format":99}', STORMS, topology_id)
    with pytest.raises(AlreadyAliveError, match="version 99"):
        nimbus.submit(fence, "b")
    state.put(b'{"format":99}', SUBMISSIONS, "c" * 32)
    assert nimbus.submissions.is_gone("other-1-1") is False
