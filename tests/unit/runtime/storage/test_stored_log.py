"""A spout log in a store: what was written is read, whoever else writes and whatever calls fail."""

from __future__ import annotations

import random
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lengths import examples

from storm_on_spark.api.errors import CheckpointError
from storm_on_spark.runtime.spouts.log import (
    Mark,
    Steps,
    StoredSpoutLog,
    WriterEpoch,
    list_segments,
    open_log,
    read_entries,
)
from storm_on_spark.runtime.storage import LocalStorage, Storage
from storm_on_spark.testing.storage.faulty import Fault, FaultyStorage

TARGET = 7


def append(log: StoredSpoutLog, body: bytes, snapshot: bytes | None = None):
    if snapshot is None and log.wants_snapshot:
        snapshot = b"again"
    return log.append([(TARGET, body)], tuples=1, messages=0, first=1, clock=0, snapshot=snapshot)


def opened(storage: Storage, owner: int, planned: Mark = Mark(), segment_bytes: int = 1 << 20) -> StoredSpoutLog:  # noqa: B008
    log = open_log(storage, segment_bytes, epoch=WriterEpoch(owner, 1), planned=planned)
    assert isinstance(log, StoredSpoutLog)
    return log


def bodies(storage: Storage, start: int, end: Mark) -> list[bytes]:
    return [body for *_, body in read_entries(storage, start, end.position, lambda t: t == TARGET, end.epoch)]


@pytest.fixture
def storage(tmp_path: Path) -> LocalStorage:
    return LocalStorage(tmp_path)


def test_each_record_is_an_object_and_any_range_of_them_can_be_read(storage):
    log = opened(storage, 1)
    cuts = [append(log, b"%d" % number) for number in range(30)]

    assert len(storage.list_folder()) == 30
    assert bodies(storage, 0, log.written) == [b"%d" % number for number in range(30)]
    assert bodies(storage, cuts[9].end, cuts[12].mark) == [b"10", b"11", b"12"]
    assert log.bases() == [cut.position for cut in cuts]
    assert list(log.cuts(cuts[28].position)) == cuts[28:]


def test_a_range_is_read_in_steps_with_one_listing(tmp_path):
    storage = FaultyStorage(LocalStorage(tmp_path), lambda call: None)
    old = opened(storage, 1)
    cuts = [append(old, b"%d" % number) for number in range(4)]
    new = opened(storage, 2, cuts[2].mark)  # it has found what is behind that, too
    cuts += [append(new, b"%d" % number) for number in range(4, 8)]
    late = append(old, b"late")
    storage.calls.clear()

    steps = Steps(storage, cuts[1].mark, new.written)
    assert [steps.reach(cut.mark) for cut in cuts] == [True] * 8
    assert not steps.reach(late.mark), "the next writer had begun"
    assert not steps.reach(Mark(late.end, WriterEpoch(3, 1)))
    found = [[body for target, body in steps.up_to(end) if target == TARGET] for end in (cuts[2].end, cuts[6].end)]
    assert found == [[b"2"], [b"3", b"4", b"5", b"6"]]
    assert list(steps.up_to(cuts[6].end)) == []
    with pytest.raises(CheckpointError, match="has no record that ends at position"):
        list(steps.up_to(new.end - 1))
    steps.close()
    assert sum(call.method == "list_folder" for call in storage.calls) == 1
    assert not Steps(storage, late.mark, new.written).reach(new.written), "it begins with what does not count"


def test_whoever_goes_on_finds_the_last_record_and_the_snapshot_wherever_it_lies(storage):
    first = opened(storage, 1)
    append(first, b"a", b"state")
    for body in (b"b", b"c"):
        last = append(first, body)

    second = opened(storage, 2, last.mark)

    assert (second.last, second.written, second.snapshot()) == (last, last.mark, b"state")
    append(second, b"d", b"newer")
    assert bodies(storage, 0, second.written) == [b"a", b"b", b"c", b"d"]
    assert opened(storage, 3).snapshot() == b"newer"


def test_what_an_owner_writes_after_it_was_replaced_is_never_read(storage):
    old = opened(storage, 1)
    common = append(old, b"common", b"1")
    new = opened(storage, 2, common.mark)
    append(old, b"zombie before", b"x")
    append(new, b"new", b"2")
    append(old, b"zombie after", b"y")

    assert bodies(storage, 0, new.written) == [b"common", b"new"]
    third = opened(storage, 3, new.written)
    assert third.snapshot() == b"2"
    append(third, b"third" * 100, b"3")
    assert bodies(storage, common.end, third.written) == [b"new", b"third" * 100]
    append(third, b"more", b"4")
    third.trim(third.end)
    third.close()
    assert {segment.epoch.owner for segment in list_segments(storage)} == {3}


def test_two_writers_that_believe_to_be_one_are_noticed(storage):
    one, other = opened(storage, 1), opened(storage, 1)
    append(one, b"one")

    with pytest.raises(CheckpointError, match="has another writer with epoch 1"):
        append(other, b"other")


def test_trimming_keeps_the_snapshot_that_a_later_record_needs(storage):
    log = opened(storage, 1)
    cuts = [append(log, b"0", b"state"), *(append(log, b"%d" % number) for number in range(1, 6))]

    log.trim(cuts[3].end)
    log.close()
    assert len(storage.list_folder()) == 6
    assert opened(storage, 2, cuts[-1].mark).snapshot() == b"state"

    changed = append(log, b"6", b"newer")
    log.trim(changed.end)
    log.close()
    assert [segment.base for segment in list_segments(storage)] == [changed.position]


def test_a_snapshot_that_never_changes_is_written_again_so_that_the_log_can_be_trimmed(storage):
    log = opened(storage, 1, segment_bytes=1000)
    for _ in range(100):
        log.trim(append(log, bytes(100)).end)
    log.close()

    assert len(storage.list_folder()) < 15


def test_what_cant_be_deleted_is_deleted_later_and_never_leaves_a_gap(storage):
    broken = True
    faulty = FaultyStorage(storage, lambda call: Fault.REFUSED if broken and call.method == "delete" else None)
    log = opened(faulty, 1)
    cuts = [append(log, b"%d" % number, b"s%d" % number) for number in range(5)]
    log.trim(cuts[2].end)
    log.close()
    assert faulty.injected
    assert len(storage.list_folder()) == 5

    broken = False
    log.trim(cuts[3].end)
    log.close()
    assert [segment.base for segment in list_segments(storage)] == [cut.position for cut in cuts[3:]]


def test_a_record_that_is_missing_is_said_so(storage):
    log = opened(storage, 1)
    cuts = [append(log, b"%d" % number) for number in range(3)]
    storage.delete(str(list_segments(storage)[1]))

    with pytest.raises(CheckpointError, match=f"position {cuts[1].position}"):
        bodies(storage, 0, cuts[2].mark)
    with pytest.raises(CheckpointError):
        opened(storage, 2, cuts[2].mark)


def test_damage_is_noticed(storage):
    log = opened(storage, 1)
    cut = append(log, b"body")
    (name,) = (one.name for one in storage.list_folder())
    whole = storage.read(name)
    for size in (0, 10, len(whole) - 1):
        storage.put(name, whole[:size])
        with pytest.raises(CheckpointError):
            bodies(storage, 0, cut.mark)


@pytest.mark.slow
@given(seed=st.integers(0, 2**32))
@settings(deadline=None, max_examples=examples(60))
def test_what_spark_planned_stays_what_it_was_whoever_writes_and_whatever_fails(seed):
    """Owners come, freeze, wake and go on writing; calls fail with and without effect; the planned bodies are read."""
    rng = random.Random(seed)
    with tempfile.TemporaryDirectory() as folder:
        inner = LocalStorage(Path(folder))
        storage = FaultyStorage(
            inner,
            lambda call: (
                rng.choice(list(Fault)) if call.method == "create" and not opening and rng.random() < 0.1 else None
            ),
        )
        opening = False
        writers, owner, number = [opened(storage, 1)], 1, 0
        planned, trimmed = Mark(), 0
        expected: list[tuple[int, bytes]] = []  # (end, body) up to what is planned
        fresh: list[tuple[Mark, bytes]] = []  # of the present owner, in the order of positions
        for _ in range(60):
            step = rng.random()
            if step < 0.5:
                present = rng.random() < 0.7
                writer = writers[-1] if present else rng.choice(writers)
                number += 1
                try:
                    cut = append(writer, b"%d" % number, b"s%d" % number if rng.random() < 0.5 else None)
                except OSError:
                    if writer is writers[-1]:
                        step = 0.99  # somebody takes over
                    writers.remove(writer)  # it ends: nobody goes on after a write that failed
                else:
                    if writer is writers[-1]:
                        fresh.append((cut.mark, b"%d" % number))
            if 0.5 <= step < 0.8 and fresh:
                count = rng.randint(1, len(fresh))
                expected += [(mark.position, body) for mark, body in fresh[:count]]
                planned, fresh = fresh[count - 1][0], fresh[count:]
            elif 0.8 <= step < 0.9 and expected:
                trimmed = max(trimmed, rng.choice(expected)[0])
                if writers[-1].base is not None:
                    writers[-1].trim(trimmed)
                    writers[-1].close()
            elif step >= 0.9:
                owner += 1
                opening = True
                writers.append(opened(storage, owner, planned))
                opening = False
                begin = planned.position
                fresh = (
                    [
                        (cut.mark, body)
                        for cut, _, body in read_entries(
                            inner, begin, writers[-1].end, lambda t: t == TARGET, writers[-1].written.epoch
                        )
                    ]
                    if writers[-1].end > begin
                    else []
                )
            wanted = [body for end, body in expected if end > trimmed]
            assert bodies(inner, trimmed, planned) == wanted
