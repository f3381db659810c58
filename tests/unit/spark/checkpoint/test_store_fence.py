"""Owners of a checkpoint in a store: one at a time, found out without locks or clocks."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from waiting import SleptTime

from storm_on_spark.api.errors import CheckpointError
from storm_on_spark.runtime.processes.sessions import started_at, this_kernel
from storm_on_spark.runtime.storage import LocalStorage
from storm_on_spark.runtime.storage.claims import claims_in
from storm_on_spark.spark.checkpoint.owner import Owner
from storm_on_spark.spark.checkpoint.store_fence import StoreFence
from storm_on_spark.testing.storage.faulty import Fault, FaultyStorage

WHERE = "s3a://bucket/count"


def fence(storage, token: str, *, scope: str = "", epoch: int = 0, kernel: str = "elsewhere", time=None, **more):
    time = time or SleptTime()
    owner = Owner(scope or f"start {token}", epoch, token * 8, kernel, **more)
    return StoreFence(storage, WHERE, owner, time.now, time.sleep)


@pytest.fixture
def storage(tmp_path: Path) -> LocalStorage:
    return LocalStorage(tmp_path)


def test_an_owner_that_gave_it_back_is_followed_at_once(storage):
    time = SleptTime()
    first = fence(storage, "a")
    first.release()
    second = fence(storage, "b", time=time)

    assert (time.secs, second.former, second.lost()) == (0.0, None, None)
    assert second.number > first.number


def test_an_owner_elsewhere_that_is_alive_keeps_the_checkpoint(storage):
    first = fence(storage, "a")

    with pytest.raises(CheckpointError, match=r"is in use by a running topology \(a driver on another machine"):
        fence(storage, "b", time=SleptTime(then=first.beat))

    assert first.look() is None


def test_an_owner_elsewhere_that_is_silent_is_replaced_and_notices_when_it_wakes(storage):
    first, time = fence(storage, "a"), SleptTime()
    second = fence(storage, "b", time=time)
    assert time.secs > 10
    assert second.former == first.owner

    first.beat()  # it was only frozen, and has not looked yet
    assert second.look() is None
    assert first.look() == f"checkpoint {WHERE} was taken over by another driver"
    assert first.lost() == first.look()

    first.release()
    first.beat()
    assert second.look() is None
    third = fence(storage, "c")
    assert third.former == second.owner, "what the first wrote made nobody believe that the second is gone"


def test_on_one_machine_one_sees_whether_the_owners_process_lives(storage):
    alive = fence(storage, "a", kernel=this_kernel(), session=os.getpid(), started=started_at(os.getpid()))
    with pytest.raises(CheckpointError, match=f"process {os.getpid()} on this machine"):
        fence(storage, "b")
    alive.release()

    fence(storage, "c", kernel=this_kernel(), session=os.getpid(), started="of another process")
    time = SleptTime()
    fence(storage, "d", time=time)
    assert time.secs == 0.0


def test_somebody_who_was_told_to_run_replaces_a_living_owner_of_an_earlier_epoch(storage):
    old = fence(storage, "a", scope="count-1", epoch=3)
    new = fence(storage, "b", scope="count-1", epoch=5, time=SleptTime(then=old.beat))

    assert old.look() == f"checkpoint {WHERE} was taken over by a driver of count-1 with epoch 5"
    assert new.look() is None
    with pytest.raises(CheckpointError, match="was taken over"):
        old.renew(9)


def test_one_who_comes_too_late_is_sent_away(storage):
    new = fence(storage, "b", scope="count-1", epoch=5)

    with pytest.raises(CheckpointError, match="has a newer owner: epoch 5 of count-1, this driver has 3"):
        fence(storage, "a", scope="count-1", epoch=3)

    assert new.look() is None, "nobody took it away from the newer one"


def test_an_owner_that_renews_keeps_late_ones_out(storage):
    owner = fence(storage, "a", scope="count-1", epoch=3)
    owner.renew(8)
    owner.release()

    assert owner.look() is None
    with pytest.raises(CheckpointError, match="epoch 8 of count-1"):
        fence(storage, "b", scope="count-1", epoch=5)


def test_that_the_store_cant_be_reached_is_no_reason_to_stop(storage):
    failing = False
    faulty = FaultyStorage(storage, lambda _: Fault.REFUSED if failing else None)
    owner = fence(faulty, "a")
    failing = True
    owner.beat()

    assert owner.look() is None
    assert {call.method for call in faulty.injected} == {"put", "list_folder"}


def test_a_store_that_cant_be_written_is_no_checkpoint(storage):
    with pytest.raises(CheckpointError, match="can't be written"):
        fence(FaultyStorage(storage, lambda call: Fault.REFUSED if call.method == "put" else None), "a")


def test_old_claims_go(storage):
    for token in "abcdef":
        fence(storage, token).release()

    assert [claim.token for claim in claims_in(storage.list_folder())] == ["f" * 8]


def test_an_owner_that_was_frozen_looks_before_it_goes_on(storage):
    clock = SleptTime()
    first = fence(storage, "a", time=clock)
    second = fence(storage, "b")
    assert first.lost() is None, "it has looked a moment ago"

    clock.secs += 60

    assert "was taken over by another driver" in first.lost()
    assert second.lost() is None


def test_an_owner_that_cant_look_tries_again(storage):
    clock, refused = SleptTime(), [False]
    faulty = FaultyStorage(storage, lambda _: Fault.REFUSED if refused[0] else None)
    first = fence(faulty, "a", time=clock)
    fence(storage, "b")
    clock.secs += 60
    refused[0] = True
    assert first.lost() is None
    refused[0] = False
    assert "was taken over by another driver" in first.lost()
