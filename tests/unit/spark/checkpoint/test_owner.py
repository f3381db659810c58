"""Owners of a checkpoint: the one with the highest epoch wins, in whichever order they come."""

from __future__ import annotations

import fcntl
import json
import os
import tempfile
import threading
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from waiting import SleptTime

from storm_on_spark.api.errors import CheckpointError
from storm_on_spark.runtime.batches.offsets import Offset
from storm_on_spark.runtime.processes.lock_file import locked
from storm_on_spark.runtime.processes.sessions import this_kernel
from storm_on_spark.spark.checkpoint.owner import Owner, OwnerFence
from storm_on_spark.spark.running.fenced import fenced_poll

SCOPE = "word-count-1-1700000000"


def fence(folder: Path, epoch: int, token: str = "", *, scope: str = SCOPE, kernel: str = "", time=None) -> OwnerFence:
    time = time or SleptTime()
    return OwnerFence(folder, Owner(scope, epoch, token or f"t{epoch}", kernel), time.now, time.sleep)


@given(st.permutations(range(1, 7)))
def test_whatever_the_order_only_the_latest_of_all_goes_on(epochs: list[int]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        taken: list[OwnerFence] = []
        for epoch in epochs:
            if epoch < max((other.owner.epoch for other in taken), default=0):
                with pytest.raises(CheckpointError, match="has a newer owner"):
                    fence(Path(folder), epoch)
            else:
                taken.append(fence(Path(folder), epoch))
            assert [other.lost() is None for other in taken] == [other is taken[-1] for other in taken]
        assert taken[-1].owner.epoch == 6


def test_the_loser_is_told_by_whom(tmp_path: Path) -> None:
    old = fence(tmp_path, 3)
    assert old.former is None
    new = fence(tmp_path, 5)
    assert new.former == old.owner
    assert old.lost() == f"checkpoint {tmp_path} was taken over by a driver of {SCOPE} with epoch 5"
    old.release()
    assert new.lost() is None
    with pytest.raises(CheckpointError, match="was taken over"):
        old.renew(9)


def test_another_topology_on_the_same_checkpoint_counts_anew(tmp_path: Path) -> None:
    fence(tmp_path, 700)
    assert fence(tmp_path, 2, scope="word-count-2-1800000000").lost() is None


def test_an_owner_that_renews_keeps_late_ones_out_and_goes_on(tmp_path: Path) -> None:
    owner = fence(tmp_path, 3)
    owner.renew(8)
    assert (owner.lost(), owner.owner.epoch) == (None, 8)
    with pytest.raises(CheckpointError, match="epoch 8 of"):
        fence(tmp_path, 5, "late")


def test_a_checkpoint_given_back_needs_no_wait(tmp_path: Path) -> None:
    fence(tmp_path, 3).release()
    time = SleptTime()
    new = fence(tmp_path, 4, time=time)
    assert new.former is None
    new.await_former(grace_secs=3, patience_secs=1)
    assert time.secs == 0
    new.release()
    assert new.lost() == f"checkpoint {tmp_path} has no owner any more: owner.json was removed"


def test_a_former_owner_elsewhere_is_given_time_from_the_claim_on(tmp_path: Path) -> None:
    fence(tmp_path, 3, kernel="another machine")
    time = SleptTime()
    new = fence(tmp_path, 4, time=time, kernel=this_kernel())
    time.secs = 2.0  # Spark was started meanwhile
    new.await_former(grace_secs=3, patience_secs=1)
    assert time.secs == pytest.approx(3.0)


@pytest.mark.skipif(not this_kernel(), reason="the system does not tell one boot from another")
def test_a_former_owner_here_that_is_gone_needs_no_wait(tmp_path: Path) -> None:
    fence(tmp_path, 3, kernel=this_kernel())
    time = SleptTime()
    fence(tmp_path, 4, time=time, kernel=this_kernel()).await_former(grace_secs=3, patience_secs=1)
    assert time.secs == 0


@pytest.mark.skipif(not this_kernel(), reason="the system does not tell one boot from another")
@pytest.mark.parametrize("ends_after", [0.5, 99.0])
def test_a_former_owner_here_that_runs_is_waited_for(tmp_path: Path, ends_after: float) -> None:
    fence(tmp_path, 3, kernel=this_kernel())
    with (tmp_path / "storm" / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        time = SleptTime(ends_after, lock.close)
        new = fence(tmp_path, 4, time=time, kernel=this_kernel())
        if ends_after < 5:
            new.await_former(grace_secs=3, patience_secs=5)
            assert time.secs == pytest.approx(ends_after, abs=0.1)
        else:
            with pytest.raises(CheckpointError, match="former driver did not end within 5 s"):
                new.await_former(grace_secs=3, patience_secs=5)


@pytest.mark.parametrize(
    "content", [b"", b"\xff", b"[]", b'{"version": 2}', b'{"version": 1, "scope": 1, "epoch": "x", "token": []}']
)
def test_what_is_no_owner_is_written_over_after_a_wait(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "storm").mkdir()
    file = tmp_path / "storm" / "owner.json"
    file.write_bytes(content)
    time = SleptTime()
    new = fence(tmp_path, 1, time=time)
    assert json.loads(file.read_text())["epoch"] == 1
    new.await_former(grace_secs=3, patience_secs=1)
    assert time.secs == pytest.approx(3.0)
    file.write_bytes(content)
    assert new.lost() == f"checkpoint {tmp_path} was taken over by another driver"


def test_a_checkpoint_that_can_not_be_written_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(CheckpointError, match="can't be written"):
        fence(tmp_path / "file", 1)


def test_without_ownership_nothing_is_planned(tmp_path: Path) -> None:
    asked: list[Offset] = []
    failures: list[str] = []
    mine, start, end = fence(tmp_path, 1), Offset(), Offset({1: 5})
    taking: list[OwnerFence] = []

    def poll(offset: Offset) -> Offset:
        asked.append(offset)
        if len(asked) == 2:
            taking.append(fence(tmp_path, 2))
        return end

    fenced = fenced_poll(poll, mine, lambda failure: failures.append(failure.message))
    assert fenced(start) == end
    assert failures == []
    # It is taken while the coordinator waits for news, and again it is not asked at all.
    assert fenced(start) == start
    assert fenced(start) == start
    assert len(asked) == 2
    assert all("was taken over" in failure for failure in failures)


def test_a_claim_waits_for_one_that_made_the_lock_file_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, flock = tmp_path / "storm" / "owner.lock", fcntl.flock
    fence(tmp_path, 9)
    newer = (tmp_path / "storm" / "owner.json").read_bytes()
    (tmp_path / "storm" / "owner.json").unlink()

    def late(descriptor: int, how: int) -> None:
        monkeypatch.setattr(fcntl, "flock", flock)
        path.unlink()
        other = locked(path)

        def claim() -> None:
            (tmp_path / "storm" / "owner.json").write_bytes(newer)
            os.close(other)

        threading.Timer(0.2, claim).start()
        flock(descriptor, how)

    monkeypatch.setattr(fcntl, "flock", late)
    with pytest.raises(CheckpointError, match="has a newer owner: epoch 9"):
        fence(tmp_path, 8)
