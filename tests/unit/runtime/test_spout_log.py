"""The spout log: what is appended can be read, what a crash cut short is dropped, damage is noticed."""

from __future__ import annotations

import errno
import os
import struct
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from storm_on_spark.api.errors import CheckpointError
from storm_on_spark.runtime import spout_log
from storm_on_spark.runtime.spout_log import (
    ACKER,
    MESSAGE_IDS,
    SNAPSHOT,
    Cut,
    SpoutLog,
    iter_cuts,
    list_segments,
    read_entries,
    segment_name,
)

SMALL = 300
"""Bytes of a segment, so that a few records fill it."""


def append(log: SpoutLog, *bodies: bytes, snapshot: bytes | None = None, **counts: int) -> Cut:
    entries = [(target, body) for target, body in enumerate(bodies, 1)]
    fields = {"tuples": len(bodies), "messages": 0, "first": 1, "clock": 0, **counts}
    return log.append(entries, snapshot=b"s" if snapshot is None and log.last is None else snapshot, **fields)


def contents(folder: Path, start: int, end: int) -> list[tuple[int, bytes]]:
    return [(target, body) for _, target, body in read_entries(folder, start, end, lambda target: True)]


# --- appending and reading -------------------------------------------------------------------------------------


def test_positions_are_where_records_begin_and_end(tmp_path: Path) -> None:
    log = SpoutLog(tmp_path)
    assert (log.last, log.end) == (None, 0)
    first = append(log, b"one", b"two", tuples=5, messages=3, first=1, clock=17)
    second = append(log, b"three")
    assert (first.position, first.end, second.position, log.end) == (0, second.position, first.end, second.end)
    assert (first.tuples, first.messages, first.clock, first.snapshot, second.snapshot) == (5, 3, 17, 0, 0)
    assert list(iter_cuts(tmp_path, 0, None)) == list(iter_cuts(tmp_path, 0, log.end)) == [first, second]
    assert list(iter_cuts(tmp_path, first.end, None)) == [second]
    assert contents(tmp_path, 0, first.end) == [(1, b"one"), (2, b"two"), (SNAPSHOT, b"s")]
    assert contents(tmp_path, first.end, log.end) == [(1, b"three")]
    assert contents(tmp_path, log.end, log.end) == []
    log.close()
    again = SpoutLog(tmp_path)
    assert (again.last, again.end) == (second, second.end)
    again.close()


def test_only_wanted_targets_are_read(tmp_path: Path) -> None:
    log = SpoutLog(tmp_path)
    cut = append(log, b"one", b"two", b"three", snapshot=b"state")
    log.close()
    assert [body for _, _, body in read_entries(tmp_path, 0, cut.end, lambda t: t in (1, 3))] == [b"one", b"three"]
    assert [body for _, _, body in read_entries(tmp_path, 0, 1, lambda t: t == SNAPSHOT)] == [b"state"]


def test_a_segment_begins_with_a_snapshot_and_is_named_by_its_position(tmp_path: Path) -> None:
    log = SpoutLog(tmp_path, segment_bytes=SMALL)
    while not log.wants_snapshot:
        append(log, b"x" * 50)
    append(log, b"no snapshot, no new segment")
    assert list_segments(tmp_path) == [0]
    cut = append(log, b"y", snapshot=b"new")
    assert list_segments(tmp_path) == [0, cut.position]
    assert cut.snapshot == cut.position
    assert not log.wants_snapshot
    assert append(log, b"z").snapshot == cut.position
    log.close()


def test_trim_deletes_whole_segments_behind_a_position(tmp_path: Path) -> None:
    log = SpoutLog(tmp_path, segment_bytes=SMALL)
    for _ in range(12):
        append(log, b"x" * 100, snapshot=b"s")
    bases = list_segments(tmp_path)
    assert len(bases) > 3
    log.trim(bases[1] - 1)
    assert list_segments(tmp_path) == bases
    log.trim(bases[2])
    assert list_segments(tmp_path) == bases[2:]
    with pytest.raises(CheckpointError, match="has no segment for position 0; it was trimmed or lost"):
        contents(tmp_path, 0, log.end)
    assert contents(tmp_path, bases[2], log.end)
    log.trim(log.end + 1000)
    assert list_segments(tmp_path) == bases[-1:]
    log.close()


class LogAgainstList(RuleBasedStateMachine):
    """Appends, trims, reopens and crashes at random; the log holds what a list of records holds."""

    @initialize()
    def begin(self) -> None:
        self.folder = TemporaryDirectory()
        self.path = Path(self.folder.name) / "7"
        self.log = SpoutLog(self.path, SMALL)
        #: (cut, entries) of all records.
        self.records: list[tuple[Cut, list[tuple[int, bytes]]]] = []
        self.trimmed = 0

    @rule(bodies=st.lists(st.binary(max_size=120), max_size=4), fresh=st.booleans())
    def append(self, bodies: list[bytes], fresh: bool) -> None:
        fresh |= self.log.last is None or self.log.wants_snapshot
        entries = [(i, body) for i, body in enumerate(bodies)]
        snapshot = b"snapshot %d" % len(self.records) if fresh else None
        cut = self.log.append(
            entries, tuples=len(bodies), messages=1, first=len(self.records), clock=5, snapshot=snapshot
        )
        self.records.append((cut, entries + ([(SNAPSHOT, snapshot)] if snapshot else [])))

    @precondition(lambda self: self.records)
    @rule(data=st.data())
    def trim(self, data: st.DataObject) -> None:
        self.trimmed = max(self.trimmed, data.draw(st.sampled_from(self.records))[0].end)
        self.log.trim(self.trimmed)

    @rule()
    def reopen(self) -> None:
        self.log.close()
        self.log = SpoutLog(self.path, SMALL)

    @rule(bodies=st.lists(st.binary(max_size=120), min_size=1, max_size=4), data=st.data(), fresh=st.booleans())
    def crash_while_appending(self, bodies: list[bytes], data: st.DataObject, fresh: bool) -> None:
        """A record is cut short anywhere, in an old segment or in a new one."""
        known = {base: (self.path / segment_name(base)).stat().st_size for base in list_segments(self.path)}
        fresh |= self.log.last is None or self.log.wants_snapshot
        self.log.append(
            list(enumerate(bodies)), tuples=1, messages=1, first=0, clock=5, snapshot=b"lost" if fresh else None
        )
        self.log.close()
        base = list_segments(self.path)[-1]
        path = self.path / segment_name(base)
        size = known.get(base, 0)
        os.truncate(path, data.draw(st.integers(size, path.stat().st_size - 1)))
        self.log = SpoutLog(self.path, SMALL)

    @invariant()
    def the_same_as_the_list(self) -> None:
        if not hasattr(self, "log"):
            return
        kept = [record for record in self.records if record[0].position >= list_segments(self.path)[0]]
        assert {id(record) for record in kept} >= {id(r) for r in self.records if r[0].position >= self.trimmed}
        assert self.log.last == (self.records[-1][0] if self.records else None)
        assert self.log.end == (self.records[-1][0].end if self.records else 0)
        for start in (kept[0], kept[len(kept) // 2]) if kept else ():
            index = kept.index(start)
            found = contents(self.path, start[0].position, self.log.end)
            assert found == [entry for _, entries in kept[index:] for entry in entries]
        if kept:
            snapshot = kept[-1][0].snapshot
            assert snapshot >= list_segments(self.path)[-1]
            (body,) = [b for _, t, b in read_entries(self.path, snapshot, snapshot + 1, lambda t: t == SNAPSHOT)]
            newest = [body for _, entries in self.records for target, body in entries if target == SNAPSHOT][-1]
            assert body == newest

    def teardown(self) -> None:
        if hasattr(self, "log"):
            self.log.close()
            self.folder.cleanup()


TestLogAgainstList = LogAgainstList.TestCase
TestLogAgainstList.settings = settings(max_examples=60, stateful_step_count=30, deadline=None)


# --- crashes and damage -----------------------------------------------------------------------------------------


def test_a_last_record_cut_short_at_any_byte_is_dropped(tmp_path: Path) -> None:
    log = SpoutLog(tmp_path)
    first = append(log, b"one", snapshot=b"state")
    last = append(log, b"two", b"three")
    log.close()
    path = tmp_path / segment_name(0)
    data = path.read_bytes()
    for size in range(first.end, last.end):
        path.write_bytes(data[:size])
        log = SpoutLog(tmp_path)
        assert (log.last, log.end) == (first, first.end)
        assert path.stat().st_size == first.end
        again = append(log, b"two", b"three")
        assert again == last
        log.close()
        assert path.read_bytes() == data


def test_a_new_segment_cut_short_at_any_byte_leaves_the_old_one(tmp_path: Path) -> None:
    log = SpoutLog(tmp_path, segment_bytes=10)
    first = append(log, b"one", snapshot=b"state")
    last = append(log, b"two", snapshot=b"newer")
    log.close()
    path = tmp_path / segment_name(first.end)
    data = path.read_bytes()
    for size in range(len(data)):
        path.write_bytes(data[:size])
        log = SpoutLog(tmp_path, segment_bytes=10)
        assert (log.last, log.end) == (first, first.end)
        assert list_segments(tmp_path) == [0]
        assert append(log, b"two", snapshot=b"newer") == last
        log.close()


def read_all(folder: Path, end: int) -> list[tuple[int, bytes]]:
    """What a spout's restart and a micro-batch read together."""
    SpoutLog(folder).close()
    return contents(folder, 0, end)


def test_any_flipped_bit_is_noticed(tmp_path: Path) -> None:
    log = SpoutLog(tmp_path)
    append(log, b"one", snapshot=b"state")
    append(log, b"two", b"three")
    log.close()
    path = tmp_path / segment_name(0)
    data = path.read_bytes()
    for position in range(len(data)):
        for bit in range(8):
            path.write_bytes(data[:position] + bytes([data[position] ^ (1 << bit)]) + data[position + 1 :])
            with pytest.raises(CheckpointError, match="spout log"):
                read_all(tmp_path, len(data))
    path.write_bytes(data)
    assert read_all(tmp_path, len(data))


def test_a_flipped_bit_never_cuts_the_log_short(tmp_path: Path) -> None:
    """Opening drops a rest only if a crash left it, not if it is damaged: that would lose what Spark has planned."""
    log = SpoutLog(tmp_path)
    append(log, b"one", snapshot=b"state")
    end = append(log, b"two", b"three").end
    log.close()
    path = tmp_path / segment_name(0)
    data = path.read_bytes()
    for position in range(len(data)):
        path.write_bytes(data[:position] + bytes([data[position] ^ 0xFF]) + data[position + 1 :])
        try:
            log = SpoutLog(tmp_path)
        except CheckpointError:
            continue
        assert log.end == end
        log.close()


def test_an_unknown_version_is_refused_with_a_sentence(tmp_path: Path) -> None:
    log = SpoutLog(tmp_path)
    append(log, b"one")
    log.close()
    path = tmp_path / segment_name(0)
    data = path.read_bytes()
    path.write_bytes(data[:4] + struct.pack("<H", 8) + data[6:])
    with pytest.raises(CheckpointError, match=r"spout log .* has format version 8 at position 0; this release reads 1"):
        SpoutLog(tmp_path)


def test_a_log_that_ends_too_early_or_lacks_a_segment_is_noticed(tmp_path: Path) -> None:
    log = SpoutLog(tmp_path, segment_bytes=10)
    cuts = [append(log, b"x" * 20, snapshot=b"s") for _ in range(3)]
    log.close()
    end = cuts[-1].end
    with pytest.raises(CheckpointError, match=f"no whole record at position {end}; the log must reach to {end + 1}"):
        contents(tmp_path, 0, end + 1)
    os.truncate(tmp_path / segment_name(cuts[1].position), 30)
    with pytest.raises(CheckpointError, match=f"no whole record at position {cuts[1].position}"):
        contents(tmp_path, 0, end)
    (tmp_path / segment_name(cuts[1].position)).unlink()
    with pytest.raises(CheckpointError, match=r"damaged|no whole record"):
        contents(tmp_path, 0, end)


# --- a disk that is full or fails -----------------------------------------------------------------------------------


@pytest.mark.parametrize("roll", [False, True])
@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EIO])
def test_a_failed_append_leaves_nothing_and_can_be_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, roll: bool, code: int
) -> None:
    log = SpoutLog(tmp_path, segment_bytes=10 if roll else 1 << 20)
    first = append(log, b"one", snapshot=b"state")
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    write = os.write
    for room in range(first.end):

        def full(file: int, data: Any, room: int = room) -> int:
            nonlocal left
            if left == 0:
                raise OSError(code, os.strerror(code))
            written = write(file, data[:left])
            left -= written
            return written

        left = room
        monkeypatch.setattr(spout_log.os, "write", full)
        with pytest.raises(OSError, match=os.strerror(code)):
            append(log, b"two", b"three", snapshot=b"newer state")
        monkeypatch.setattr(spout_log.os, "write", write)
        assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before
        assert (log.last, log.end) == (first, first.end)
        reopened = SpoutLog(tmp_path)
        assert (reopened.last, reopened.end) == (first, first.end)
        reopened.close()
    last = append(log, b"two", b"three", snapshot=b"newer state")
    assert last.position == first.end
    assert contents(tmp_path, last.position, last.end)[-1] == (SNAPSHOT, b"newer state")
    log.close()


@settings(max_examples=50, deadline=None)
@given(st.binary(max_size=200))
def test_any_bytes_give_an_empty_log_or_an_error_of_ours(data: bytes) -> None:
    with TemporaryDirectory() as name:
        (Path(name) / segment_name(0)).write_bytes(data)
        try:
            log = SpoutLog(Path(name))
        except CheckpointError:
            return
        assert log.end == 0
        log.close()


def test_the_names_of_targets_that_are_no_tasks_differ() -> None:
    assert len({SNAPSHOT, MESSAGE_IDS, -1}) == 3
    assert ACKER < min(SNAPSHOT, MESSAGE_IDS) < max(SNAPSHOT, MESSAGE_IDS) < 0
