"""The local message bus: journals, and who reads them from where."""

from __future__ import annotations

import os
import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from storm_on_spark.api.errors import CheckpointError
from storm_on_spark.xd.bus.files import make_once
from storm_on_spark.xd.bus.inputs import Inputs, Share, beginning, numbered
from storm_on_spark.xd.bus.journal import Journal, Message, Record, TakenError


def _record(*payloads: object, **more: object) -> Record:
    return Record(tuple(Message(payload, {}) for payload in payloads), **more)  # type: ignore[arg-type]


def test_a_number_is_given_once(tmp_path: Path) -> None:
    ours, theirs = Journal(tmp_path), Journal(tmp_path)
    ours.append(1, _record("a"))
    with pytest.raises(TakenError):
        theirs.append(1, _record("b"))
    assert [message.payload for message in ours.read(1).messages] == ["a"]  # type: ignore[union-attr]
    assert [path.name for path in tmp_path.iterdir()] == ["000000000001"]


def test_of_several_that_make_a_file_at_once_one_does(tmp_path: Path) -> None:
    bodies = [str(number).encode() for number in range(16)]
    with ThreadPoolExecutor(len(bodies)) as pool:
        made = list(pool.map(lambda body: make_once(tmp_path / "claims" / "1.0", body), bodies))
    assert [body for body, ours in zip(bodies, made, strict=True) if ours] == [
        (tmp_path / "claims" / "1.0").read_bytes()
    ]
    assert [path.name for path in (tmp_path / "claims").iterdir()] == ["1.0"]


def test_a_number_whose_record_was_removed_is_not_given_again(tmp_path: Path) -> None:
    journal = Journal(tmp_path)
    for number in range(1, 6):
        journal.append(number, _record(number))
    for number in range(1, 5):
        journal.remove(number)
    with pytest.raises(TakenError):
        # Of one that was paused before record 3.
        Journal(tmp_path).append(3, _record("late"))
    assert (journal.first(), journal.last()) == (5, 5)


def test_a_damaged_record_is_noticed(tmp_path: Path) -> None:
    journal = Journal(tmp_path)
    journal.append(1, _record("a"))
    path = tmp_path / "000000000001"
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(CheckpointError, match="damaged"):
        journal.read(1)


def test_inputs_are_read_from_all_journals_and_from_a_position(tmp_path: Path) -> None:
    for name, payloads in (("1", "ab"), ("2", "cd")):
        Journal(tmp_path / name).append(1, _record(*payloads))
    inputs = Inputs(lambda: numbered(tmp_path), "log", {"2": (1, 1)})
    found = list(inputs.next(10))
    assert [(each.journal, each.message.payload, each.following) for each in sorted(found)] == [
        ("1", "a", (1, 1)),
        ("1", "b", (2, 0)),
        ("2", "d", (2, 0)),
    ]
    assert len(list(inputs.next(2))) == 2


def test_an_instance_goes_on_where_it_was(tmp_path: Path) -> None:
    own = Record(positions={"1": (7, 2)}, generation="5x1")
    assert beginning(tmp_path, (5, 1), own, dict) == {"1": (7, 2)}


def test_an_instance_goes_on_where_it_was_after_a_redeployment_with_as_many_instances(tmp_path: Path) -> None:
    for era, ends in (((1, 2), {}), ((2, 2), {"1": (4, 0)})):
        beginning(tmp_path, era, None, lambda ends=ends: ends)
    own = Record(positions={"1": (9, 0)}, generation="2x2")
    assert beginning(tmp_path, (3, 2), own, dict) == {"1": (9, 0)}


def test_a_module_that_never_ran_begins_where_its_kind_does(tmp_path: Path) -> None:
    assert beginning(tmp_path, (5, 2), None, lambda: {"1": (3, 0)}) == {"1": (3, 0)}
    # The second instance begins there too, whatever the end is by now.
    assert beginning(tmp_path, (5, 2), None, lambda: {"1": (9, 0)}) == {"1": (3, 0)}


def test_with_another_number_of_instances_all_begin_where_the_slowest_was(tmp_path: Path) -> None:
    beginning(tmp_path, (1, 2), None, dict)
    Journal(tmp_path / "1").append(1, Record(positions={"1": (9, 0)}, generation="1x2"))
    Journal(tmp_path / "2").append(1, Record(positions={"1": (4, 3)}, generation="1x2"))
    assert beginning(tmp_path, (2, 3), None, dict) == {"1": (4, 3)}
    # The first one is ahead before the third one begins.
    Journal(tmp_path / "1").append(2, Record(positions={"1": (30, 0)}, generation="2x3"))
    assert beginning(tmp_path, (2, 3), Journal(tmp_path / "2").read(1), dict) == {"1": (4, 3)}
    # The second one has not written anything since: its position is still the common one.
    assert beginning(tmp_path, (3, 1), None, dict) == {"1": (4, 3)}


def test_every_message_belongs_to_one_instance() -> None:
    shares = [Share(sequence, 3) for sequence in (1, 2, 3)]
    for key in (None, 0, 7):
        for place in range(10):
            assert sum(share.takes(4, place, key) for share in shares) == 1
    assert len({share.sequence for share in shares for place in range(9) if share.takes(2, place, 5)}) == 1


@pytest.mark.parametrize("sync", [False, True])
def test_a_record_is_on_the_disk_before_others_see_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sync: bool
) -> None:
    done: list[str] = []
    fsync, link = os.fsync, os.link

    def forced(descriptor: int) -> None:
        done.append("folder" if stat.S_ISDIR(os.fstat(descriptor).st_mode) else "file")
        fsync(descriptor)

    def linked(source: Path, target: Path) -> None:
        done.append("link")
        link(source, target)

    Journal(tmp_path).append(1, _record("a"))
    monkeypatch.setattr(os, "fsync", forced)
    monkeypatch.setattr(os, "link", linked)
    Journal(tmp_path, sync=sync).append(2, _record("b"))
    assert done == (["file", "link", "folder"] if sync else ["link"])
