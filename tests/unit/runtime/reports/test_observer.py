"""What is said of a topology that somebody watches."""

from __future__ import annotations

import pytest

from storm_on_spark.api.info import ComponentInfo, TopologyInfo
from storm_on_spark.runtime.reports.observer import Lines, Observer


def info(emitted: int = 0, acked: int = 0, pending: int = 0, executed: int = 0, status: str = "ACTIVE") -> TopologyInfo:
    components = {
        "words": ComponentInfo("words", "spout", 1, emitted=emitted),
        "count": ComponentInfo("count", "basic_bolt", 2, executed=executed),
    }
    return TopologyInfo("test", status, 0.0, emitted, acked=acked, pending=pending, components=components)  # type: ignore[arg-type]


def seen(observer: Observer, *looks: tuple[float, TopologyInfo]) -> Observer:
    for now, what in looks:
        observer.look(now, what)
    return observer


def test_until_the_first_micro_batch_is_done_spark_compiles() -> None:
    observer = seen(Observer(30), (100.0, info()))
    assert observer.waits_for() is None
    seen(observer, (101.5, info(emitted=10, pending=10)))
    assert observer.waits_for() == "first micro-batch: Spark compiles, some seconds"
    seen(observer, (106.0, info(emitted=10, acked=10, executed=10)))
    assert observer.waits_for() is None


def test_a_spout_with_nothing_to_emit_is_not_taken_for_a_compiler() -> None:
    assert seen(Observer(30), (0.0, info()), (13.0, info())).waits_for() == "spouts have nothing to emit"


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
    assert again.begins() == "went on from state, micro-batch 12"
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


def test_rates_of_what_starts_anew_are_never_below_zero() -> None:
    rates = seen(Observer(30), (0.0, info(acked=10, executed=10)), (1.0, info())).rates()
    assert (rates.acked, rates.components["count"]) == (0, 0)


def test_a_line_comes_now_and_then_and_at_once_when_something_else_is_waited_for() -> None:
    observer, lines = Observer(30), Lines(every_secs=5)
    printed = []
    for second in range(12):
        running = second >= 3
        now = info(emitted=10, acked=second * running, pending=10 - second * running, executed=second * running)
        observer.look(float(second), now)
        printed.append(lines.next(float(second), now, observer))
    assert [second for second, line in enumerate(printed) if line is not None] == [0, 1, 3, 8]
    first, compiles, works = (printed[second] or "" for second in (0, 1, 3))
    assert first == "test  0 s  emitted 10  acked 0  failed 0  pending 10  0 acked/s"
    assert compiles.endswith("  first micro-batch: Spark compiles, some seconds")
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
