"""A page is made once for all who ask at about the same time, by one thread, and never from before a change."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import Any

import pytest
from markupsafe import Markup

from storm_on_spark.api.errors import NotAliveError
from storm_on_spark.web.looks import Look, Looks


class Made:
    """Makes looks, each of which waits until it may go on, and counts them."""

    def __init__(self) -> None:
        self.may_end = threading.Event()
        self.made: list[str] = []
        self.at_once = self.most_at_once = 0
        self._lock = threading.Lock()

    def of(self, name: str) -> Callable[[], Look]:
        def make() -> Look:
            with self._lock:
                self.at_once += 1
                self.most_at_once = max(self.most_at_once, self.at_once)
            self.may_end.wait(60)
            with self._lock:
                self.at_once -= 1
                self.made.append(name)
            return Look({"name": name}, Markup(name))

        return make


async def settled(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(60):
        while not condition():
            await asyncio.sleep(0.001)


def test_who_asks_for_the_same_waits_for_one_and_one_page_is_made_at_a_time() -> None:
    made, now = Made(), [0.0]

    async def ask() -> list[tuple[Look, float]]:
        looks = Looks(lambda: now[0], patience_secs=60)
        tasks = [asyncio.create_task(looks.of(name, made.of(name))) for name in "aabbaccc"]
        await settled(lambda: made.at_once == 1)
        tasks[0].cancel()  # that browser is gone; the others get their page
        made.may_end.set()
        found = [
            each for each in await asyncio.gather(*tasks, return_exceptions=True) if not isinstance(each, BaseException)
        ]
        now[0] += 0.4
        found.append(await looks.of("a", made.of("late")))
        now[0] += 0.2
        found.append(await looks.of("a", made.of("again")))
        return found

    found = asyncio.run(ask())
    assert [str(look.live) for look, _ in found] == [*"abbaccc", "a", "again"]
    assert sorted(made.made) == ["a", "again", "b", "c"]
    assert made.most_at_once == 1


def test_pages_that_ask_other_hosts_hold_up_no_other() -> None:
    made, quick = Made(), Made()
    quick.may_end.set()

    async def ask() -> None:
        looks = Looks()
        slow = [asyncio.create_task(looks.of(name, made.of(name), far=True)) for name in "xy"]
        await settled(lambda: made.at_once == 2)
        assert (await looks.of("z", quick.of("z")))[0].values == {"name": "z"}
        made.may_end.set()
        await asyncio.gather(*slow)

    asyncio.run(ask())


def test_a_page_that_does_not_end_holds_up_others_for_a_moment_only() -> None:
    stuck, quick = Made(), Made()
    quick.may_end.set()

    async def ask() -> None:
        looks = Looks(patience_secs=0.01)
        first = asyncio.create_task(looks.of("stuck", stuck.of("stuck")))
        await settled(lambda: stuck.at_once == 1)
        assert (await looks.of("z", quick.of("z")))[0].live == "z"
        stuck.may_end.set()
        await first
        assert (await looks.of("y", quick.of("y")))[0].live == "y"

    asyncio.run(ask())


def test_after_a_change_nobody_is_shown_what_was_before() -> None:
    old, new = Made(), Made()
    new.may_end.set()

    async def ask() -> str:
        looks = Looks()
        before = asyncio.create_task(looks.of("a", old.of("old"), far=True))
        await settled(lambda: old.at_once == 1)
        looks.forget()
        after, _ = await looks.of("a", new.of("new"), far=True)
        old.may_end.set()
        await before
        assert (await looks.of("a", new.of("newer"), far=True))[0].live == "new"
        return str(after.live)

    assert asyncio.run(ask()) == "new"


def test_an_error_is_everybodys_and_is_not_kept() -> None:
    calls = []

    def gone() -> Any:
        calls.append(1)
        raise NotAliveError("gone")

    async def ask() -> None:
        looks = Looks()
        for _ in range(2):
            with pytest.raises(NotAliveError):
                await looks.of("a", gone)

    asyncio.run(ask())
    assert len(calls) == 2
