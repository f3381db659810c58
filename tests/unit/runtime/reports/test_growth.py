"""Growth of backlogs and of state: what remains behind all micro-batches, over ten minutes."""

from __future__ import annotations

from storm_on_spark.api.info import GrowthInfo
from storm_on_spark.runtime.reports.growth import Growth


def looks(growth: Growth, *, until: float, every: float = 3.0, rate: float = 0.0, wave: int = 0) -> GrowthInfo | None:
    """Looks every few seconds; `rate` tuples a second more wait, above a wave of micro-batches of ten seconds."""
    found, now = None, 0.0
    while now < until:
        waiting = int(rate * now) + int(wave * (now % 10.0) / 10.0)
        found = growth.look(now, {1: waiting, 2: 0}, int(1000 * rate * now))
        now += every
    return found


def test_the_first_two_minutes_say_nothing() -> None:
    assert looks(Growth(), until=119.0) is None
    assert looks(Growth(), until=130.0) is not None


def test_a_backlog_that_rises_and_falls_with_micro_batches_does_not_grow() -> None:
    found = looks(Growth(), until=650.0, wave=1_000_000)
    assert found is not None
    assert max(found.backlog[1], found.backlog_before[1]) < 300_000, (
        "the least of a minute, not what is there at a look"
    )
    assert found.backlog[2] == 0


def test_a_spout_that_falls_behind_grows_by_its_rate() -> None:
    found = looks(Growth(), until=650.0, rate=100.0)
    assert found is not None
    assert 500.0 <= found.secs <= 600.0
    assert found.backlog[1] - found.backlog_before[1] == 100 * found.secs
    assert found.state_bytes - found.state_bytes_before == 100_000 * found.secs


def test_only_ten_minutes_are_compared_and_a_pause_in_looking_starts_afresh() -> None:
    growth = Growth()
    found = looks(growth, until=7200.0, rate=1.0)
    assert found is not None
    assert found.secs <= 600.0
    assert found.backlog_before[1] > 6000
    assert growth.look(9000.0, {1: 0}, 0) is None


def test_a_spout_without_a_log_yet_has_no_backlog() -> None:
    growth = Growth()
    for at in range(5):
        found = growth.look(60.0 * at, {1: 5} if at < 3 else {}, 0)
    assert found == GrowthInfo(180.0, {}, {1: 5})
