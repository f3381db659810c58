"""What is said of a topology that somebody watches."""

from __future__ import annotations

import dataclasses

import pytest

from storm_on_spark.api.info import ComponentAtWork, ComponentInfo, MicroBatchInfo, RepetitionInfo, TopologyInfo
from storm_on_spark.runtime.reports.observer import Lines, Observer


def info(
    emitted: int = 0,
    acked: int = 0,
    pending: int = 0,
    executed: int = 0,
    status: str = "ACTIVE",
    batch: MicroBatchInfo | None = None,
    uptime: float = 0.0,
    at_work: tuple[ComponentAtWork, ...] = (),
) -> TopologyInfo:
    components = {
        "words": ComponentInfo("words", "spout", 1, emitted=emitted),
        "count": ComponentInfo("count", "basic_bolt", 2, executed=executed),
    }
    return TopologyInfo(
        "test",
        status,  # type: ignore[arg-type]
        uptime,
        emitted,
        acked=acked,
        pending=pending,
        components=components,
        micro_batch=batch,
        at_work=at_work,
    )


def seen(observer: Observer, *looks: tuple[float, TopologyInfo]) -> Observer:
    for now, what in looks:
        observer.look(now, what)
    return observer


def test_it_says_how_far_the_first_micro_batch_is_also_while_spouts_emit() -> None:
    observer = seen(Observer(30), (100.0, info(batch=MicroBatchInfo(0.5, None, True))))
    assert observer.waits_for() is None
    seen(observer, (101.5, info(batch=MicroBatchInfo(2.0, None, True))))
    assert observer.waits_for() == "Spark prepares the first micro-batch, 2 s"
    seen(observer, (104.5, info(emitted=10, pending=10, batch=MicroBatchInfo(3.0, 0, True))))
    assert observer.waits_for() == "first micro-batch runs, 3 s"
    seen(observer, (108.0, info(emitted=10, pending=10, batch=MicroBatchInfo(0.1, 0, True))))
    assert observer.waits_for() == "first micro-batch runs, 0 s"
    at_work = (ComponentAtWork("split", 9000, 9000), ComponentAtWork("count", 3000, 8716))
    seen(observer, (113.5, info(emitted=20, pending=20, batch=MicroBatchInfo(12.0, 0, True), at_work=at_work[1:])))
    assert observer.waits_for() == "first micro-batch runs, 12 s: `count` has executed 3,000 of 8,716"
    seen(observer, (114.5, info(emitted=20, pending=20, batch=MicroBatchInfo(13.0, 0, True), at_work=at_work)))
    assert (observer.waits_for() or "").endswith(
        " 13 s: `count` has executed 3,000 of 8,716, `split` has executed 9,000 of 9,000"
    )
    seen(observer, (115.0, info(emitted=20, acked=10, executed=10)))
    assert observer.waits_for() is None


def test_a_native_source_that_has_read_nothing_yet_is_not_taken_for_an_empty_one() -> None:
    runs = info(batch=MicroBatchInfo(40.0, 0, True))
    assert seen(Observer(30), (0.0, info()), (40.0, runs)).waits_for() == "first micro-batch runs, 40 s"
    assert seen(Observer(30), (0.0, info()), (13.0, info())).waits_for() == "spouts have nothing to emit"


def test_it_says_how_many_rounds_of_a_lost_live_process_have_been_executed_again() -> None:
    before = info(emitted=900, acked=800, pending=100, executed=800)
    repeats = dataclasses.replace(before, micro_batch=MicroBatchInfo(12.0, 7), repetition=RepetitionInfo(1500, 20000))
    observer = seen(Observer(30.0), (0.0, before), (20.0, repeats))
    assert observer.waits_for() == (
        "micro-batch 7 runs, 12 s: 1,500 of 20,000 rounds since the last checkpoint have been executed again"
    )


def test_nobody_waits_for_a_timeout_while_a_micro_batch_runs() -> None:
    def still(batch: MicroBatchInfo | None) -> TopologyInfo:
        return info(emitted=100, acked=50, pending=50, executed=100, batch=batch)

    observer = seen(Observer(15.0), (0.0, still(None)), (9.0, still(MicroBatchInfo(8.0, 7))))
    assert observer.waits_for() == "micro-batch 7 runs, 8 s"
    assert (seen(observer, (20.0, still(None))).waits_for() or "").startswith("50 messages wait for their timeout")
    # Nor between micro-batches, in real time.
    round_ = info(emitted=100, acked=50, pending=50, executed=100, at_work=(ComponentAtWork("count", 0, 1),))
    assert seen(observer, (15.0, round_)).waits_for() == "`count` has executed 0 of 1"
    # One that is as short as those of ticks tells nothing; nor does one beside which messages are acked, in real time.
    ticks = MicroBatchInfo(0.1, 8)
    assert (seen(observer, (20.1, still(ticks))).waits_for() or "").startswith("50 messages wait for their timeout")
    more = info(emitted=110, acked=60, pending=50, executed=110, batch=MicroBatchInfo(4.0, 9))
    assert seen(observer, (25.0, more)).waits_for() is None


@pytest.mark.parametrize(
    ("pending", "timeout", "after", "words"),
    [
        (50, 15.0, 3.0, "50 messages wait for their timeout (at most 27 s)"),
        (1, 15.0, 10.0, "1 message waits for its timeout (at most 20 s)"),
        (50, 15.0, 100.0, "50 messages wait for their timeout (at most 0 s)"),
        (1500, None, 5.0, "1,500 messages wait for an ack or a fail"),
        (50, 15.0, 2.0, None),
        (0, 15.0, 5.0, "spouts have nothing to emit"),
    ],
)
def test_what_is_quiet_says_what_it_waits_for(
    pending: int, timeout: float | None, after: float, words: str | None
) -> None:
    still = info(emitted=100, acked=100 - pending, pending=pending, executed=100)
    assert seen(Observer(timeout), (0.0, still), (after, still)).waits_for() == words


def test_where_it_goes_on_and_that_it_was_finished_before() -> None:
    done = info(status="COMPLETED")
    assert Observer(30).begins() is None
    assert Observer(30).ends(done) is None
    again = seen(Observer(30, 11, "state"), (0.0, info()))
    assert again.begins() == "continued from state, micro-batch 12"
    assert again.ends(done) == "finished before: nothing to do"
    worked = seen(Observer(30, 11, "state"), (0.0, info()), (1.0, info(acked=1, executed=1)))
    assert worked.ends(info(acked=1, executed=1, status="COMPLETED")) is None


def test_rates_are_those_of_the_last_seconds() -> None:
    observer = Observer(30)
    for second in range(20):
        executed = 100 * min(second, 10) + 500 * max(0, second - 10)
        observer.look(float(second), info(emitted=10 * second, acked=executed, executed=executed))
    rates = observer.rates()
    assert rates.acked == 500
    assert rates.components == {"words": 10, "count": 500}


@pytest.mark.parametrize(
    ("acked", "uptime", "rate"),
    [(0, 0.0, "0"), (0, 9.0, "0"), (3000, 2.0, "1,500"), (7, 2.0, "3.5"), (9, 900.0, "0.01")],
)
def test_what_was_acked_long_ago_counts_since_the_start(acked: int, uptime: float, rate: str) -> None:
    then = info(acked=acked, uptime=uptime)
    assert seen(Observer(), (0.0, then)).acked_rate() == rate
    assert seen(Observer(), (0.0, then), (5.0, then)).acked_rate() == rate
    # Better is what is acked now.
    now = info(acked=acked + 100, uptime=uptime)
    assert seen(Observer(), (0.0, then), (2.0, now)).acked_rate() == "50"


def test_rates_of_what_starts_anew_are_never_below_zero() -> None:
    rates = seen(Observer(30), (0.0, info(acked=10, executed=10)), (1.0, info())).rates()
    assert (rates.acked, rates.components["count"]) == (0, 0)


def test_a_line_comes_now_and_then_and_at_once_when_something_else_is_waited_for() -> None:
    observer, lines = Observer(30), Lines(every_secs=5)
    printed = []
    for second in range(12):
        running = second >= 3
        batch = None if running else MicroBatchInfo(float(second), 0, True)
        now = info(10, second * running, 10 - second * running, second * running, batch=batch)
        observer.look(float(second), now)
        printed.append(lines.next(float(second), now, observer))
    assert [second for second, line in enumerate(printed) if line is not None] == [0, 1, 3, 8]
    first, runs, works = (printed[second] or "" for second in (0, 1, 3))
    assert first == "test  0 s  emitted 10  acked 0  failed 0  pending 10  0 acked/s"
    assert runs.endswith("  first micro-batch runs, 1 s")
    assert works == "test  0 s  emitted 10  acked 3  failed 0  pending 7  1 acked/s"


def test_a_note_is_put_first_and_a_number_that_changes_is_no_news() -> None:
    still = info(emitted=100, pending=50, executed=100)
    observer, lines = Observer(30), Lines(every_secs=100)
    printed = []
    for second in range(10):
        observer.look(float(second), still)
        printed.append(lines.next(float(second), still, observer, f"draining, at most {60 - second} s more"))
    assert [second for second, line in enumerate(printed) if line is not None] == [0, 3]
    assert (printed[3] or "").endswith(
        "  draining, at most 57 s more; 50 messages wait for their timeout (at most 57 s)"
    )


def test_a_topology_that_does_nothing_is_looked_at_less_often() -> None:
    observer = Observer(30)
    often = observer.pause()
    assert seen(observer, (100.0, info(emitted=1)), (104.0, info(emitted=1))).pause() == often
    seldom = seen(observer, (106.5, info(emitted=1))).pause()
    assert often < seldom <= 1.0
    assert seen(observer, (107.5, info(emitted=1, batch=MicroBatchInfo(0.5, 3)))).pause() == often, "it works"
    assert seen(observer, (108.5, info(emitted=1))).pause() == seldom
    assert seen(observer, (109.5, info(emitted=2))).pause() == often
