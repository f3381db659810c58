"""The state machine of a slot: what follows from what is seen, and laws that hold whatever happens."""

from __future__ import annotations

from dataclasses import replace

from cluster_records import assignment
from hypothesis import example, given
from hypothesis import strategies as st

from storm_on_spark.cluster.supervisor.slots import (
    PAUSES,
    Clean,
    Fetch,
    Kill,
    Launch,
    Phase,
    Report,
    Seen,
    Slot,
    Stop,
    Timeouts,
    Wanted,
    pause,
    step,
)

TIMES = Timeouts(start=120, beat=30, shutdown=3)


def wanted(number: int = 1, version: int = 0) -> Wanted:
    return Wanted(assignment(f"t-{number}-1", supervisor_id="s"), version)


A, B = wanted(1), wanted(2)
RUNS = Seen(10.0, wanted=A, process="alive", beat_at=10.0, running=True)


def after(slot: Slot, *sights: Seen) -> tuple[Slot, list[object]]:
    done: list[object] = []
    for seen in sights:
        slot, instructions = step(slot, seen, TIMES)
        done += instructions
    return slot, done


def test_an_assignment_is_fetched_launched_and_runs() -> None:
    slot, done = after(
        Slot(),
        Seen(1.0, wanted=A),
        Seen(2.0, wanted=A),
        Seen(3.0, wanted=A, code=A),
        Seen(4.0, wanted=A, process="alive"),
        Seen(5.0, wanted=A, process="alive", beat_at=5.0),
        Seen(6.0, wanted=A, process="alive", beat_at=6.0, running=True),
    )
    assert done == [Fetch(A), Launch(A)]
    assert slot.phase is Phase.RUNNING


def test_nothing_is_begun_or_ended_before_it_is_known_what_is_assigned() -> None:
    assert after(Slot(), Seen(1.0, known=False)) == (Slot(), [])
    running = Slot(Phase.RUNNING, A)
    assert after(running, replace(RUNS, known=False, wanted=None)) == (running, [])


def test_what_is_no_longer_wanted_is_asked_to_end_and_killed_when_it_does_not() -> None:
    slot, done = after(Slot(Phase.RUNNING, A), replace(RUNS, wanted=None), replace(RUNS, wanted=None, now=12.9))
    assert (slot.phase, done) == (Phase.KILL, [Stop()])
    slot, done = after(slot, replace(RUNS, wanted=None, now=13.0), replace(RUNS, wanted=None, now=13.5))
    assert (slot.phase, done) == (Phase.KILL, [Kill()])
    slot, done = after(slot, Seen(14.0))
    assert (slot.phase, done) == (Phase.EMPTY, [Clean(A)])


def test_another_launch_waits_for_the_end_of_the_old_one() -> None:
    newer = wanted(1, version=1)
    slot, done = after(Slot(Phase.RUNNING, A), replace(RUNS, wanted=newer), replace(RUNS, wanted=newer, now=11.0))
    assert done == [Stop()]
    slot, done = after(slot, Seen(12.0, wanted=newer), Seen(12.1, wanted=newer), Seen(12.2, wanted=newer, code=newer))
    assert done == [Clean(A), Fetch(newer), Launch(newer)]
    assert slot == Slot(Phase.WAITING_FOR_START, newer, 12.2)


def test_a_driver_that_died_is_started_again_at_once_and_then_after_longer_and_longer_pauses() -> None:
    slot = Slot(Phase.RUNNING, A)
    now, starts = 0.0, []
    for _ in range(8):
        slot, done = after(slot, Seen(now, wanted=A))
        assert (slot.phase, done) == (Phase.BACKING_OFF, [Clean(A)])
        died = now
        while slot.phase is Phase.BACKING_OFF:
            slot, done = after(slot, Seen(now, wanted=A))
            now += 0.0 if done else 0.5
        assert done == [Fetch(A)]
        starts.append(now - died)
        slot, done = after(slot, Seen(now, wanted=A, code=A))
        assert done == [Launch(A)]
    assert starts == [*PAUSES, 60.0, 60.0]
    slot, _ = after(slot, *(replace(RUNS, now=now + secs, beat_at=now + secs) for secs in (0, 59)))
    assert slot.failures == 8
    slot, _ = after(slot, replace(RUNS, now=now + 61, beat_at=now + 61))
    assert slot.failures == 0


def test_what_a_dead_driver_left_is_killed_before_anything_else() -> None:
    slot, done = after(Slot(Phase.RUNNING, A), replace(RUNS, process="orphans"))
    assert (slot.phase, done) == (Phase.KILL, [Kill()])
    slot, done = after(slot, replace(RUNS, process="orphans", now=10.5), replace(RUNS, process="orphans", now=11.1))
    assert (slot.phase, done) == (Phase.KILL, [Kill()])
    slot, done = after(slot, replace(RUNS, process="gone", now=11.2))
    assert (slot.phase, done) == (Phase.BACKING_OFF, [Clean(A)])


def test_silence_is_death() -> None:
    slot, done = after(Slot(Phase.RUNNING, A), replace(RUNS, now=40.5))
    assert slot.phase is Phase.KILL
    assert isinstance(done[0], Report)
    assert "no heartbeat for 30 s" in done[0].message
    assert done[1] == Kill()


def test_a_start_that_takes_too_long_is_ended_though_it_beats() -> None:
    starting = Slot(Phase.WAITING_FOR_START, A, 10.0)
    slot, done = after(starting, Seen(130.0, wanted=A, process="alive", beat_at=129.5))
    assert done == []
    slot, done = after(slot, Seen(130.5, wanted=A, process="alive", beat_at=129.5))
    assert isinstance(done[0], Report)
    assert "has not begun to process for 120 s" in done[0].message


def test_a_topology_that_is_complete_is_not_started_again() -> None:
    ended = Seen(20.0, wanted=A, beat_at=19.0, finished=True)
    for sights in ([ended], [replace(ended, process="orphans"), replace(ended, now=20.5)]):
        slot, done = after(Slot(Phase.RUNNING, A), *sights)
        assert slot.phase is Phase.FINISHED
        assert done[-1] == Clean(A)
        assert after(slot, replace(ended, now=500.0)) == (slot, [])
        assert after(slot, replace(ended, wanted=None))[0].phase is Phase.EMPTY
        assert after(slot, replace(ended, wanted=B))[1] == [Fetch(B)]


def test_a_complete_topology_may_take_its_time_to_say_so() -> None:
    waiting = replace(RUNS, now=500.0, running=False, finished=True)
    assert after(Slot(Phase.RUNNING, A), waiting) == (Slot(Phase.RUNNING, A), [])
    assert after(Slot(Phase.RUNNING, A), replace(waiting, wanted=None))[1] == [Stop()]


def test_code_that_can_not_be_had_is_reported_and_asked_for_again() -> None:
    slot, done = after(Slot(Phase.WAITING_FOR_CODE, A), Seen(1.0, wanted=A, code_error="damaged"))
    assert (slot.phase, done) == (Phase.BACKING_OFF, [Report(A, "damaged")])
    slot, done = after(slot, Seen(1.1, wanted=A, code_error="damaged"))
    assert done == [Fetch(A)]
    slot, done = after(slot, Seen(1.2, wanted=A, code_error="damaged"), Seen(2.0, wanted=A))
    assert (slot.phase, slot.failures, pause(slot.failures), done) == (
        Phase.BACKING_OFF,
        2,
        2.0,
        [Report(A, "damaged")],
    )


def test_an_assignment_that_changes_during_a_pause_or_a_download_starts_afresh() -> None:
    for phase in (Phase.BACKING_OFF, Phase.WAITING_FOR_CODE):
        slot, done = after(Slot(phase, A, due=99.0, failures=5), Seen(1.0, wanted=B))
        assert (slot, done) == (Slot(Phase.WAITING_FOR_CODE, B, 1.0), [Fetch(B)])
        assert after(Slot(phase, A, due=99.0), Seen(1.0))[0].phase is Phase.EMPTY


SIGHTS = st.lists(
    st.fixed_dictionaries(
        {
            "wait": st.sampled_from([0.1, 1.0, 5.0, 40.0, 130.0]),
            "wanted": st.sampled_from([None, A, B, wanted(1, 1)]),
            "known": st.sampled_from([True, True, True, False]),
            "dies": st.sampled_from(["no", "no", "no", "leaving orphans", "whole"]),
            "obeys": st.booleans(),
            "beats": st.sampled_from([True, True, False]),
            "completes": st.sampled_from([False, False, False, True]),
            "code": st.sampled_from(["here", "here", "under way", "broken"]),
        }
    ),
    max_size=60,
)


def sight(wanted: Wanted | None, **more: object) -> dict:
    calm = {"wait": 0.1, "known": True, "dies": "no", "obeys": False, "beats": True, "completes": False, "code": "here"}
    return {**calm, "wanted": wanted, **more}


@given(SIGHTS)
# It is asked again for what was complete before something newer ran.
@example([sight(A), sight(A), sight(None, completes=True), sight(wanted(1, 1)), sight(wanted(1, 1))])
def test_whatever_happens_there_is_one_driver_and_it_is_left_alone_while_it_is_well(story: list[dict]) -> None:
    """Plays a world of one driver against the slot."""
    slot, now = Slot(), 0.0
    process, launched, beat_at, running, finished, asked = "gone", None, None, False, False, False
    fetched, completed = None, []
    for chapter in story:
        now += chapter["wait"]
        if process == "alive":
            if chapter["completes"]:
                process, finished = "gone", True
                completed.append(launched)
            elif chapter["dies"] != "no" or (asked and chapter["obeys"]):
                process = "orphans" if chapter["dies"] == "leaving orphans" else "gone"
            elif chapter["beats"]:
                beat_at, running = now, True
        code, error = None, None
        if fetched is not None and chapter["code"] != "under way":
            code, error = (fetched, None) if chapter["code"] == "here" else (None, "broken")
        seen = Seen(now, chapter["known"], chapter["wanted"], code, error, process, beat_at, running, finished)
        before = slot
        slot, done = step(slot, seen, TIMES)
        well = process == "alive" and beat_at is not None and now - beat_at <= TIMES.beat and running
        if before.phase is Phase.RUNNING and well and (not seen.known or seen.wanted == before.current):
            assert done == (), "a healthy driver that is wanted is left alone"
        for instruction in done:
            if isinstance(instruction, Launch):
                assert process == "gone", "never two at once"
                assert instruction.wanted == seen.wanted == fetched
                assert seen.known
                assert not (finished and launched == instruction.wanted), "what is complete is not run again"
                process, launched, beat_at = "alive", instruction.wanted, None
                running = finished = asked = False
            elif isinstance(instruction, Fetch):
                fetched = instruction.wanted
            elif isinstance(instruction, Stop):
                asked = True
            elif isinstance(instruction, Kill):
                process = "gone"
            elif isinstance(instruction, Clean):
                assert process == "gone"
        busy = slot.phase in (Phase.WAITING_FOR_START, Phase.RUNNING, Phase.KILL)
        assert process == "gone" or busy, "what runs is looked after"
        assert (slot.current is None) == (slot.phase is Phase.EMPTY)
    # Left in peace, the slot comes to run what it should, or is empty.
    goal = A
    for _ in range(400):
        now += 1.0
        if process == "alive":
            if asked:
                process = "gone"
            else:
                beat_at, running = now, True
        seen = Seen(now, True, goal, fetched, None, process, beat_at, running, finished)
        slot, done = step(slot, seen, TIMES)
        for instruction in done:
            if isinstance(instruction, Launch):
                assert process == "gone"
                process, launched, beat_at = "alive", instruction.wanted, None
                running = finished = asked = False
            elif isinstance(instruction, Fetch):
                fetched = instruction.wanted
            elif isinstance(instruction, Stop):
                asked = True
            elif isinstance(instruction, Kill):
                process = "gone"
    assert slot.current == goal
    assert slot.phase is Phase.RUNNING or (slot.phase is Phase.FINISHED and goal in completed)
