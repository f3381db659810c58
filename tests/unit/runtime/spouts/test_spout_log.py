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
from lengths import examples

from storm_on_spark.api.errors import CheckpointError
from storm_on_spark.runtime.spouts.log import (
    ACKER,
    MESSAGE_IDS,
    SNAPSHOT,
    Cut,
    Mark,
    Segment,
    SpoutLog,
    WriterEpoch,
    iter_cuts,
    list_segments,
    read_entries,
)
from storm_on_spark.runtime.spouts.log.writer import MOST_WITH_A_KEY
from storm_on_spark.runtime.storage import durable

SMALL = 300
"""Bytes of a segment, so that a few records fill it."""


def append(log: SpoutLog, *bodies: bytes, snapshot: bytes | None = None, **counts: int) -> Cut:
    entries = [(target, body) for target, body in enumerate(bodies, 1)]
    fields = {"tuples": len(bodies), "messages": 0, "first": 1, "clock": 0, **counts}
    return log.append(entries, snapshot=b"s" if snapshot is None and log.base is None else snapshot, **fields)


def only_file(folder: Path) -> Path:
    """Returns the file of a log that has one segment."""
    (segment,) = list_segments(folder)
    return folder / str(segment)


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
    assert list(log.cuts(0)) == list(iter_cuts(tmp_path, 0, log.end)) == [first, second]
    assert list(log.cuts(first.end)) == [second]
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
    assert SpoutLog(tmp_path).snapshot() == b"state"


def test_a_segment_begins_with_a_snapshot_and_is_named_by_its_position(tmp_path: Path) -> None:
    log = SpoutLog(tmp_path, segment_bytes=SMALL)
    append(log)
    while not log.wants_snapshot:
        append(log, b"x" * 50)
    append(log, b"no snapshot, no new segment")
    assert log.bases() == [0]
    cut = append(log, b"y", snapshot=b"new")
    assert log.bases() == [segment.base for segment in list_segments(tmp_path)] == [0, cut.position]
    assert cut.snapshot == cut.position
    assert not log.wants_snapshot
    assert append(log, b"z").snapshot == cut.position
    log.close()


def test_trim_deletes_whole_segments_behind_a_position(tmp_path: Path) -> None:
    log = SpoutLog(tmp_path, segment_bytes=SMALL)
    for _ in range(12):
        append(log, os.urandom(100), snapshot=b"s")
    bases = log.bases()
    assert len(bases) > 3
    log.trim(bases[1] - 1)
    assert log.bases() == bases
    log.trim(bases[2])
    assert log.bases() == bases[2:]
    with pytest.raises(CheckpointError, match="has no segment for position 0; it was trimmed or lost"):
        contents(tmp_path, 0, log.end)
    assert contents(tmp_path, bases[2], log.end)
    log.trim(log.end + 1000)
    assert log.bases() == bases[-1:]
    log.close()


def test_a_record_that_is_like_those_before_it_is_brief(tmp_path: Path) -> None:
    log = SpoutLog(tmp_path)
    state = bytes(range(200))
    key = append(log, b"a sentence", snapshot=state, messages=1, clock=1000)
    few = append(log, b"another sentence", snapshot=state[:50] + b"few" + state[50:], messages=1, first=2, clock=1005)
    same = append(log, b"a third sentence", messages=1, first=3, clock=1010)
    assert (few.snapshot, same.snapshot) == (few.position, few.position)
    assert few.end - few.position < (key.end - key.position) // 3
    other = append(log, os.urandom(300), snapshot=os.urandom(300))
    last = append(log, b"like none of them, but short", snapshot=state)
    log.close()
    again = SpoutLog(tmp_path)
    assert (list(again.cuts(0)), again.snapshot()) == ([key, few, same, other, last], state)
    assert list(again.cuts(same.position)) == [same, other, last], "the key is found from anywhere"
    assert [body for number, body in contents(tmp_path, few.position, same.end) if number == 1] == [
        b"another sentence",
        b"a third sentence",
    ]
    # Another writer has its own key.
    assert again.wants_snapshot
    again.close()


def test_a_key_is_followed_by_a_new_one_before_numbers_have_grown_away_from_it(tmp_path: Path) -> None:
    log = SpoutLog(tmp_path)
    state = bytes(range(200))
    cuts = [
        append(log, b"sentence %d" % n, snapshot=state + n.to_bytes(8, "little"), messages=1, first=n, clock=5 * n)
        for n in range(3 * MOST_WITH_A_KEY)
    ]
    sizes = [cut.end - cut.position for cut in cuts]
    assert [n for n, size in enumerate(sizes) if size > 200] == [0, MOST_WITH_A_KEY + 1, 2 * (MOST_WITH_A_KEY + 1)]
    log.close()
    for n in (1, 2, 9, 40, MOST_WITH_A_KEY, MOST_WITH_A_KEY + 1, len(cuts) - 1):
        found = contents(tmp_path, cuts[n].position, log.end)
        assert [body for number, body in found if number == 1] == [b"sentence %d" % n for n in range(n, len(cuts))]


def test_a_brief_record_in_which_anything_is_damaged_is_not_read(tmp_path: Path) -> None:
    log = SpoutLog(tmp_path)
    key = append(log, b"a sentence", snapshot=bytes(range(200)))
    brief = append(log, b"another sentence", snapshot=bytes(range(199)))
    log.close()
    path = only_file(tmp_path)
    sound = path.read_bytes()
    for at in range(brief.position, brief.end):
        path.write_bytes(sound[:at] + bytes([sound[at] ^ 1]) + sound[at + 1 :])
        with pytest.raises(CheckpointError, match=r"damaged|format version|no whole record"):
            contents(tmp_path, brief.position, brief.end)
    # Its key, too: that one's header, and what is taken from it.
    path.write_bytes(sound[: key.position] + b"?" + sound[key.position + 1 :])
    with pytest.raises(CheckpointError, match="damaged"):
        contents(tmp_path, brief.position, brief.end)
    path.write_bytes(sound[: key.end - 100] + b"?" + sound[key.end - 99 :])
    with pytest.raises(CheckpointError, match="damaged"):
        contents(tmp_path, brief.position, brief.end)


def test_a_brief_record_is_not_read_if_one_between_it_and_its_key_is_damaged(tmp_path: Path) -> None:
    log = SpoutLog(tmp_path)
    _, between, brief = (append(log, b"sentence %d" % n, snapshot=bytes(range(200 - n))) for n in range(3))
    log.close()
    path = only_file(tmp_path)
    sound = path.read_bytes()
    for at in range(between.position, between.end):
        path.write_bytes(sound[:at] + bytes([sound[at] ^ 1]) + sound[at + 1 :])
        with pytest.raises(CheckpointError, match="damaged"):
            contents(tmp_path, brief.position, brief.end)
    path.write_bytes(sound)
    assert contents(tmp_path, brief.position, brief.end)[0] == (1, b"sentence 2")


def test_a_long_record_is_never_brief_but_may_be_a_key(tmp_path: Path) -> None:
    log = SpoutLog(tmp_path)
    append(log, bytes(10_000), snapshot=bytes(range(200)))
    long = append(log, bytes(10_000), snapshot=bytes(range(199)))
    assert long.end - long.position > 10_000
    short = append(log, b"short", snapshot=bytes(range(199)) + b"!")
    assert short.end - short.position < 100
    log.close()
    log = SpoutLog(tmp_path)
    assert (log.last, log.snapshot()) == (short, bytes(range(199)) + b"!")
    log.close()


class LogAgainstList(RuleBasedStateMachine):
    """Appends, trims, reopens and crashes at random; the log holds what a list of records holds."""

    @initialize()
    def begin(self) -> None:
        self.folder = TemporaryDirectory()
        self.path = Path(self.folder.name) / "7"
        self.log = SpoutLog(self.path, SMALL)
        #: (cut, entries) of all records, and the snapshot as of each.
        self.records: list[tuple[Cut, list[tuple[int, bytes]]]] = []
        self.snapshots: list[bytes] = []
        self.trimmed = 0

    @rule(bodies=st.lists(st.binary(max_size=120), max_size=4), fresh=st.booleans(), other=st.sampled_from(b"abc"))
    def append(self, bodies: list[bytes], fresh: bool, other: int) -> None:
        fresh |= self.log.wants_snapshot
        entries = [(i, body) for i, body in enumerate(bodies)]
        # Little of it is new, or much.
        snapshot = bytes(range(other, other + 80)) + b"snapshot %d" % len(self.records) if fresh else None
        cut = self.log.append(
            entries, tuples=len(bodies), messages=1, first=len(self.records), clock=5, snapshot=snapshot
        )
        self.records.append((cut, entries))
        self.snapshots.append(snapshot or self.snapshots[-1])

    @precondition(lambda self: self.records)
    @rule(data=st.data())
    def trim(self, data: st.DataObject) -> None:
        position = data.draw(st.sampled_from(self.records))[0].end
        if self.log.base is not None:  # a writer that wrote nothing deletes nothing
            self.trimmed = max(self.trimmed, position)
        self.log.trim(position)

    @rule()
    def reopen(self) -> None:
        self.log.close()
        self.log = SpoutLog(self.path, SMALL)

    @rule(bodies=st.lists(st.binary(max_size=120), min_size=1, max_size=4), data=st.data(), fresh=st.booleans())
    def crash_while_appending(self, bodies: list[bytes], data: st.DataObject, fresh: bool) -> None:
        """A record is cut short anywhere, in an old segment or in a new one."""
        known = {segment: (self.path / str(segment)).stat().st_size for segment in list_segments(self.path)}
        fresh |= self.log.wants_snapshot
        self.log.append(
            list(enumerate(bodies)), tuples=1, messages=1, first=0, clock=5, snapshot=b"lost" if fresh else None
        )
        self.log.close()
        last = list_segments(self.path)[-1]
        size = known.get(last, 0)
        os.truncate(self.path / str(last), data.draw(st.integers(size, (self.path / str(last)).stat().st_size - 1)))
        self.log = SpoutLog(self.path, SMALL)

    @invariant()
    def the_same_as_the_list(self) -> None:
        if not hasattr(self, "log"):
            return
        first = min(self.log.bases(), default=0)
        kept = [record for record in self.records if record[0].position >= first]
        assert {id(record) for record in kept} >= {id(r) for r in self.records if r[0].position >= self.trimmed}
        assert self.log.last == (self.records[-1][0] if self.records else None)
        assert self.log.end == (self.records[-1][0].end if self.records else 0)
        for start in (kept[0], kept[len(kept) // 2]) if kept else ():
            index = kept.index(start)
            found = contents(self.path, start[0].position, self.log.end)
            emitted = [entry for entry in found if entry[0] != SNAPSHOT]
            assert emitted == [entry for _, entries in kept[index:] for entry in entries]
        if kept:
            assert kept[-1][0].snapshot >= self.log.bases()[-1]
            assert self.log.snapshot() == self.snapshots[-1]

    def teardown(self) -> None:
        if hasattr(self, "log"):
            self.log.close()
            self.folder.cleanup()


TestLogAgainstList = LogAgainstList.TestCase
TestLogAgainstList.settings = settings(max_examples=examples(60), stateful_step_count=30, deadline=None)


# --- two writers --------------------------------------------------------------------------------------------------


def test_what_a_writer_appends_after_it_was_replaced_is_never_read(tmp_path: Path) -> None:
    old = SpoutLog(tmp_path, SMALL, epoch=WriterEpoch(1, 1))
    common = append(old, b"common")
    new = SpoutLog(tmp_path, SMALL, epoch=WriterEpoch(2, 1), planned=common.mark)
    zombies = [append(old, b"zombie!", os.urandom(100), snapshot=b"zombie's") for _ in range(6)]
    assert len(old.bases()) > 1, "the old writer has begun a segment behind the new one's back"
    cut = append(new, b"genuine", b"g" * 100, snapshot=b"genuine")
    append(old, b"zombie?")
    assert cut.position == common.end == zombies[0].position
    # A reader that looks for what was planned, and a writer that takes over.
    for planned in (cut.mark, Mark()):
        third = SpoutLog(tmp_path, SMALL, epoch=WriterEpoch(3, 1), planned=planned)
        assert (third.last, third.snapshot()) == (cut, b"genuine")
        third.close()
    found = [body for _, _, body in read_entries(tmp_path, 0, cut.end, lambda t: t == 1, cut.epoch)]
    assert found == [b"common", b"genuine"]


def test_what_spark_has_planned_counts_though_a_later_writer_knew_nothing_of_it(tmp_path: Path) -> None:
    """The former driver planned its last micro-batch after the next one had opened the log."""
    old = SpoutLog(tmp_path, epoch=WriterEpoch(1, 1))
    append(old, b"common")
    new = SpoutLog(tmp_path, epoch=WriterEpoch(2, 1))
    planned = append(old, b"planned")
    append(new, b"in vain")
    third = SpoutLog(tmp_path, epoch=WriterEpoch(3, 1), planned=planned.mark)
    assert third.written == planned.mark
    last = append(third, b"third")
    found = [body for _, _, body in read_entries(tmp_path, 0, last.end, lambda t: t == 1, last.epoch)]
    assert found == [b"common", b"planned", b"third"]
    third.trim(planned.end)
    assert {segment.epoch.owner for segment in list_segments(tmp_path)} == {3}, "what is on no line goes, too"


def test_two_writers_with_one_epoch_are_noticed(tmp_path: Path) -> None:
    one, other = SpoutLog(tmp_path, epoch=WriterEpoch(1, 1)), SpoutLog(tmp_path, epoch=WriterEpoch(1, 1))
    append(one, b"one")
    with pytest.raises(CheckpointError, match=r"has another writer with epoch 1\.1"):
        append(other, b"other")


class ManyWriters(RuleBasedStateMachine):
    """Writers that don't know of each other write, roll and trim; drivers plan what the latest one wrote.

    Also the former driver plans now and then when the next one has begun. Spark lets only one have its way: the other
    finds that out, and is of no account from then on.
    """

    @initialize()
    def begin(self) -> None:
        self.folder = TemporaryDirectory()
        self.path = Path(self.folder.name)
        self.writers: list[SpoutLog] = []
        #: Of each writer: what it has cut that nobody planned.
        self.cuts: dict[WriterEpoch, list[Cut]] = {}
        #: What Spark has planned: the ends of micro-batches, and all records.
        self.planned = Mark()
        self.records: list[tuple[Cut, bytes]] = []
        self.bodies: dict[Cut, bytes] = {}
        self.committed = 0
        self.count = 0
        self.take_over()

    @rule()
    def take_over(self) -> None:
        epoch = WriterEpoch(len(self.writers) + 1, 1)
        log = SpoutLog(self.path, SMALL, epoch=epoch, planned=self.planned)
        self.writers.append(log)
        self.cuts[epoch] = list(log.cuts(self.planned.position))
        for cut in self.cuts[epoch]:
            (body,) = [b for c, t, b in log.entries(cut.position, lambda t: t == 7) if c == cut]
            assert self.bodies[cut] == body

    @rule(which=st.integers(0, 100), size=st.integers(0, 200), fresh=st.booleans())
    def write(self, which: int, size: int, fresh: bool) -> None:
        log = self.writers[-1 - which % min(3, len(self.writers))]
        self.count += 1
        body = b"%d" % self.count + b"x" * size
        snapshot = b"s%d" % self.count if fresh or log.wants_snapshot else None
        cut = log.append([(7, body)], tuples=1, messages=0, first=1, clock=0, snapshot=snapshot)
        self.bodies[cut] = body
        self.cuts[log.epoch].append(cut)

    @rule(which=st.sampled_from([0, 0, 0, 1]))
    def plan(self, which: int) -> None:
        log = self.writers[-1 - min(which, len(self.writers) - 1)]
        cuts = self.cuts[log.epoch]
        if not cuts or cuts[0].position != self.planned.position:
            return
        self.records += [(cut, self.bodies[cut]) for cut in cuts]
        self.planned = cuts[-1].mark
        for epoch in self.cuts:
            # Whose offset doesn't continue from what Spark has can't plan any more.
            self.cuts[epoch] = []
        if log is not self.writers[-1] or log.written != self.planned:
            self.take_over()

    @rule()
    def commit(self) -> None:
        if self.writers[-1].base is not None and self.writers[-1].written == self.planned:
            self.committed = self.planned.position
            self.writers[-1].trim(self.committed)

    @rule()
    def trimmed_by_a_former_writer(self) -> None:
        self.writers[-1 - min(1, len(self.writers) - 1)].trim(self.committed)

    @invariant()
    def what_was_planned_is_read(self) -> None:
        if not hasattr(self, "planned"):
            return
        kept = [(cut, body) for cut, body in self.records if cut.position >= self.committed]
        position, epoch = self.planned
        found = read_entries(self.path, self.committed, position, lambda t: t == 7, epoch)
        assert [(cut, body) for cut, _, body in found] == kept

    def teardown(self) -> None:
        if hasattr(self, "writers"):
            for log in self.writers:
                log.close()
            self.folder.cleanup()


TestManyWriters = ManyWriters.TestCase
TestManyWriters.settings = settings(max_examples=examples(80), stateful_step_count=40, deadline=None)


# --- crashes, lost caches and damage -------------------------------------------------------------------------------


def written(folder: Path) -> tuple[Cut, Cut, Path]:
    """Returns a log's two records, and its file."""
    log = SpoutLog(folder)
    first = append(log, b"one", snapshot=b"state")
    last = append(log, b"two", b"three")
    log.close()
    return first, last, only_file(folder)


def test_a_last_record_cut_short_at_any_byte_is_dropped(tmp_path: Path) -> None:
    first, last, path = written(tmp_path)
    data = path.read_bytes()
    for size in range(first.end, last.end):
        path.write_bytes(data[:size])
        log = SpoutLog(tmp_path, planned=first.mark)
        assert (log.last, log.end) == (first, first.end)
        again = append(log, b"again", b"and again")
        assert contents(tmp_path, first.end, again.end) == [(1, b"again"), (2, b"and again"), (SNAPSHOT, b"s")]
        log.close()
        (tmp_path / str(list_segments(tmp_path)[-1])).unlink()


@pytest.mark.parametrize("rest", [bytes(1), bytes(300), bytes(10_000), b"\0\0garbage" * 40])
def test_what_a_lost_cache_leaves_behind_all_that_was_planned_is_no_damage(tmp_path: Path, rest: bytes) -> None:
    first, last, path = written(tmp_path)
    data = path.read_bytes()
    for whole, end in ((data, last), (data[: first.end], first)):
        path.write_bytes(whole + rest)
        log = SpoutLog(tmp_path, planned=first.mark)
        assert log.last == end
        log.close()


def test_pages_that_never_reached_the_disk_end_the_log_behind_what_was_planned(tmp_path: Path) -> None:
    """The kernel writes pages in any order: a hole of zeros anywhere in what nobody synced."""
    first, last, path = written(tmp_path)
    data = path.read_bytes()
    for start in range(first.end, last.end):
        for end in {start + 1, last.end}:
            path.write_bytes(data[:start] + bytes(end - start) + data[end:])
            log = SpoutLog(tmp_path, planned=first.mark)
            assert log.last == (first if path.read_bytes() != data else last)
            log.close()


def test_a_writer_whose_first_segment_was_lost_half_is_gone_on_without(tmp_path: Path) -> None:
    old = SpoutLog(tmp_path, epoch=WriterEpoch(1, 1))
    first = append(old, b"one")
    new = SpoutLog(tmp_path, epoch=WriterEpoch(2, 1))
    append(new, b"two")
    (path,) = [tmp_path / str(segment) for segment in list_segments(tmp_path) if segment.epoch == new.epoch]
    data = path.read_bytes()
    for size in range(len(data)):
        path.write_bytes(data[:size])
        log = SpoutLog(tmp_path, epoch=WriterEpoch(3, size), planned=first.mark)
        assert (log.last, log.snapshot()) == (first, b"s")
        last = append(log, b"three")
        assert contents(tmp_path, first.end, last.end)[0] == (1, b"three")
        log.close()
        (tmp_path / str(list_segments(tmp_path)[-1])).unlink()


def test_the_tail_of_an_earlier_writer_may_be_lost_with_the_later_one_still_there(tmp_path: Path) -> None:
    old = SpoutLog(tmp_path, epoch=WriterEpoch(1, 1))
    planned = append(old, b"planned")
    lost = append(old, b"lost")
    append(SpoutLog(tmp_path, epoch=WriterEpoch(2, 1), planned=planned.mark), b"needs what was lost")
    os.truncate(tmp_path / str(list_segments(tmp_path)[0]), lost.position + 3)
    log = SpoutLog(tmp_path, epoch=WriterEpoch(3, 1), planned=planned.mark)
    assert log.last == planned
    last = append(log, b"again")
    assert [body for _, _, body in read_entries(tmp_path, 0, last.end, lambda t: t == 1, last.epoch)] == [
        b"planned",
        b"again",
    ]


def test_any_flipped_bit_in_what_was_planned_is_noticed(tmp_path: Path) -> None:
    _, last, path = written(tmp_path)
    data = path.read_bytes()
    for position in range(len(data)):
        for bit in range(8):
            path.write_bytes(data[:position] + bytes([data[position] ^ (1 << bit)]) + data[position + 1 :])
            with pytest.raises(CheckpointError, match="spout log"):  # noqa: PT012 # one of the two
                SpoutLog(tmp_path, planned=last.mark).close()
                contents(tmp_path, 0, last.end)
    path.write_bytes(data)
    assert contents(tmp_path, 0, last.end)


@pytest.mark.parametrize("version", [3, 8])
def test_another_version_is_refused_with_a_sentence(version: int, tmp_path: Path) -> None:
    _, last, path = written(tmp_path)
    data = path.read_bytes()
    path.write_bytes(data[:4] + struct.pack("<H", version) + data[6:])
    expected = f"spout log .* at position 0 has format version {version}; this release reads 4"
    for planned in (Mark(), last.mark):
        with pytest.raises(CheckpointError, match=expected):
            SpoutLog(tmp_path, planned=planned)


def test_a_log_that_ends_too_early_or_lacks_a_segment_is_noticed(tmp_path: Path) -> None:
    log = SpoutLog(tmp_path, segment_bytes=10)
    cuts = [append(log, b"x" * 20, snapshot=b"s") for _ in range(3)]
    log.close()
    end = cuts[-1].end
    with pytest.raises(CheckpointError, match=f"no whole record at position {end}; the log must reach to {end + 1}"):
        contents(tmp_path, 0, end + 1)
    with pytest.raises(CheckpointError, match="part of the checkpoint is missing"):
        SpoutLog(tmp_path, planned=Mark(end + 1, log.epoch))
    with pytest.raises(CheckpointError, match=r"no record of writer 9\.9 .*part of the checkpoint is missing"):
        SpoutLog(tmp_path, planned=Mark(end, WriterEpoch(9, 9)))
    path = tmp_path / str(list_segments(tmp_path)[1])
    os.truncate(path, 30)
    with pytest.raises(CheckpointError, match=f"no whole record at position {cuts[1].position}"):
        contents(tmp_path, 0, end)
    path.unlink()
    with pytest.raises(CheckpointError, match=r"damaged|no whole record"):
        contents(tmp_path, 0, end)
    for path in tmp_path.glob("*.log"):
        path.unlink()
    with pytest.raises(CheckpointError, match="part of the checkpoint is missing"):
        SpoutLog(tmp_path, planned=cuts[-1].mark)


def test_a_position_inside_a_record_is_no_end(tmp_path: Path) -> None:
    _, last, _ = written(tmp_path)
    with pytest.raises(CheckpointError, match="no whole record at position"):
        contents(tmp_path, 0, last.end - 1)


# --- a disk that is full or fails -----------------------------------------------------------------------------------


@pytest.mark.parametrize("roll", [False, True])
@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EIO])
def test_a_failed_append_leaves_nothing_and_can_be_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, roll: bool, code: int
) -> None:
    log = SpoutLog(tmp_path, segment_bytes=10 if roll else 1 << 20)
    first = append(log, b"one", snapshot=b"state")
    least = 40  # bytes of the next record
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    write = os.write
    for room in range(least):

        def full(file: int, data: Any, room: int = room) -> int:
            nonlocal left
            if left == 0:
                raise OSError(code, os.strerror(code))
            written = write(file, data[:left])
            left -= written
            return written

        left = room
        monkeypatch.setattr(durable.os, "write", full)
        with pytest.raises(OSError, match=os.strerror(code)):
            append(log, b"two", b"three", snapshot=b"newer state")
        monkeypatch.setattr(durable.os, "write", write)
        assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before
        assert (log.last, log.end) == (first, first.end)
    last = append(log, b"two", b"three", snapshot=b"newer state")
    assert last.position == first.end
    assert last.end - last.position > least
    assert contents(tmp_path, last.position, last.end)[-1] == (SNAPSHOT, b"newer state")
    log.close()


def test_a_record_that_the_disk_does_not_take_is_not_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = SpoutLog(tmp_path, sync=True)
    first = append(log, b"one")

    def broken(file: int) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(os, "fdatasync", broken)
    with pytest.raises(OSError, match="Input/output error"):
        append(log, b"two")
    assert SpoutLog(tmp_path).last == first
    log.close()


@settings(max_examples=examples(50), deadline=None)
@given(st.binary(max_size=200))
def test_any_bytes_give_an_empty_log_or_an_error_of_ours(data: bytes) -> None:
    with TemporaryDirectory() as name:
        (Path(name) / str(Segment(0, WriterEpoch(1, 0)))).write_bytes(data)
        try:
            log = SpoutLog(Path(name))
        except CheckpointError:
            return
        assert log.end == 0
        log.close()


def test_the_names_of_targets_that_are_no_tasks_differ() -> None:
    assert len({SNAPSHOT, MESSAGE_IDS, -1}) == 3
    assert ACKER < min(SNAPSHOT, MESSAGE_IDS) < max(SNAPSHOT, MESSAGE_IDS) < 0
