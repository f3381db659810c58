"""The signals that a run is told to end by."""

from __future__ import annotations

import signal
from collections.abc import Callable

import pytest

from storm_on_spark.runtime.processes.ending.stop_signals import Stopper

INT, TERM, HUP = signal.SIGINT, signal.SIGTERM, signal.SIGHUP


@pytest.mark.parametrize(
    ("sent", "count"),
    [
        ([(0.0, INT)], 1),
        ([(0.0, INT), (0.1, INT)], 2),  # a person
        ([(0.0, TERM), (0.1, TERM)], 1),  # `make` and `timeout` signal the process and its group
        ([(0.0, HUP), (0.0, TERM), (0.9, HUP)], 1),  # a terminal that closes
        ([(0.0, TERM), (1.5, TERM)], 2),
        ([(0.0, INT), (0.1, TERM)], 2),
        ([(0.0, TERM), (0.1, INT)], 2),
    ],
)
def test_what_counts_as_another_signal(sent: list[tuple[float, signal.Signals]], count: int) -> None:
    now, killed = [0.0], list[int]()
    stopper = Stopper(lambda: now[0], killed.append)
    for now[0], number in sent:
        stopper.on_signal(number)
    assert (stopper.count, killed) == (count, [])


def test_the_third_ends_the_process() -> None:
    killed = list[int]()
    stopper = Stopper(kill=killed.append)
    for _ in range(3):
        stopper.on_signal(INT)
    assert killed == [INT]


@pytest.mark.parametrize("told", [lambda stopper: stopper.on_signal(INT), Stopper.drain])
def test_whoever_waits_hears_of_it_at_once(told: Callable[[Stopper], object]) -> None:
    stopper = Stopper()
    assert not stopper.stirred.is_set()
    told(stopper)
    assert stopper.stirred.wait(60)
