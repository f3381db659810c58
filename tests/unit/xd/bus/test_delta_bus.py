"""The bus of Delta: what is exact, what is fenced, and what a table has. `test_bus_channels` has channels and taps."""

from __future__ import annotations

import datetime
import decimal
import io
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable
from hypothesis import given, settings
from hypothesis import strategies as st
from lengths import examples

from storm_on_spark.api.errors import CheckpointError, ConfigError, SetupError
from storm_on_spark.xd.bus import BusSettings, check_bus
from storm_on_spark.xd.bus.delta.bus import DeltaBus
from storm_on_spark.xd.bus.delta.log import TableLog
from storm_on_spark.xd.bus.delta.rows import columns, of_parquet, to_parquet
from storm_on_spark.xd.bus.files import make_once, read_once, remove_once
from storm_on_spark.xd.bus.journal import AnyJournal, Message, Record, TakenError
from storm_on_spark.xd.bus.port import Letter, ModuleFeed, Place
from storm_on_spark.xd.bus.seals import Seals
from storm_on_spark.xd.bus.store import Store, StoreFolder

SEALS = Seals(bytes(32))
_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)
_OTHER = st.sampled_from([b"\0\xff", (1, "a"), {1: 2}, float("inf"), "\ud800", decimal.Decimal("1.20"), {"a": (1,)}])


class _Time:
    def __init__(self) -> None:
        self.seconds = 1_000_000.0

    def __call__(self) -> float:
        return self.seconds


@pytest.fixture
def now() -> _Time:
    return _Time()


@pytest.fixture
def bus(tmp_path: Path, now: _Time) -> Iterator[DeltaBus]:
    found = DeltaBus(Store(str(tmp_path)), SEALS, most_bytes=1 << 30, keep_secs=60, batch=3, clock=now, now=now)
    yield found
    found.close()


def _record(*payloads: object, **more: Any) -> Record:
    return Record(tuple(Message(payload, {}) for payload in payloads), **more)


def _journal(bus: DeltaBus, sequence: int = 1, label: str = "rate") -> AnyJournal:
    return bus.journal(bus.folder / "s-1-1" / label / str(sequence))


def _table(bus: DeltaBus, tmp_path: Path) -> DeltaTable:
    return DeltaTable(str(tmp_path / "tables" / "s-1-1" / "rate"))


def _payloads(journal: AnyJournal) -> list[Any]:
    records = (journal.read(number) for number in range(1, journal.last() + 1))
    return [message.payload for record in records if record is not None for message in record.messages]


@given(st.lists(st.tuples(_JSON | _OTHER, st.dictionaries(st.text(), _JSON | _OTHER, max_size=2)), max_size=4))
@settings(max_examples=examples(60), deadline=None)
def test_a_record_is_read_as_it_was_written(messages: list[tuple[Any, dict[str, Any]]]) -> None:
    sent = tuple(Message(payload, headers, key) for key, (payload, headers) in enumerate(messages))
    record = Record(sent, {"1": (3, 4)}, (b"state", None), (("offset", 7),), "2x3")
    found = of_parquet(to_parquet(record, 2, 9, 0, SEALS, "rate/2/9"), SEALS, "rate/2/9", "here")
    assert found == record
    assert [type(message.payload) for message in found.messages] == [type(message.payload) for message in sent]


def test_a_damaged_record_is_noticed() -> None:
    record = _record("a", state=(b"x" * 500,))
    data = to_parquet(record, 1, 1, 0, SEALS, "rate/1/1")
    noticed = 0
    for place in range(0, len(data), 7):
        damaged = bytearray(data)
        damaged[place] ^= 0x15
        try:
            found = of_parquet(bytes(damaged), SEALS, "rate/1/1", "here")
        except CheckpointError:
            noticed += 1
        else:
            # What Arrow does not look at may be damaged.
            assert found == record
    assert noticed > len(data) / 7 / 2


def test_only_what_the_cluster_wrote_for_a_step_is_read() -> None:
    record, step = _record("a"), "rate/1/1"
    of_another = to_parquet(record, 1, 1, 0, Seals(bytes(31) + b"1"), step)
    of_another_step = to_parquet(record, 1, 1, 0, SEALS, "rate/1/2")
    for data in (of_another, of_another_step):
        with pytest.raises(CheckpointError, match="no container of this cluster wrote it"):
            of_parquet(data, SEALS, step, "here")


def test_a_record_of_the_release_that_did_not_seal_is_not_unpickled() -> None:
    file = io.BytesIO()
    with pq.ParquetWriter(file, columns(), store_schema=False) as writer:
        writer.write_table(columns().empty_table())
        writer.add_key_value_metadata({b"xd.record.1": b"a pickle"})
    with pytest.raises(CheckpointError, match="of an older release, which did not seal records"):
        of_parquet(file.getvalue(), SEALS, "rate/1/1", "here")


def test_a_step_is_committed_once(bus: DeltaBus, tmp_path: Path) -> None:
    ours, theirs = _journal(bus), _journal(bus)
    ours.append(1, _record("a"))
    with pytest.raises(TakenError, match="step 1"):
        theirs.append(1, _record("b"))
    theirs.append(2, _record("c"))
    with pytest.raises(TakenError):
        ours.append(2, _record("d"))
    assert _payloads(ours) == ["a", "c"]
    # What lost has left no file.
    assert len(list((tmp_path / "tables" / "s-1-1" / "rate" / "1").iterdir())) == 2


def test_of_many_that_commit_a_step_at_once_one_wins(bus: DeltaBus) -> None:
    won: list[str] = []

    def run(name: str) -> None:
        journal = _journal(bus)
        for number in range(1, 6):
            try:
                journal.append(number, _record(name))
            except TakenError:
                continue
            won.append(name)

    threads = [threading.Thread(target=run, args=(name,)) for name in "abc"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(won) == 5
    assert sorted(_payloads(_journal(bus))) == sorted(won)


def test_instances_of_a_module_share_a_table_and_none_is_lost(bus: DeltaBus, tmp_path: Path) -> None:
    def run(sequence: int) -> None:
        journal = _journal(bus, sequence)
        for number in range(1, 9):
            journal.append(number, _record(f"{sequence}.{number}"))

    threads = [threading.Thread(target=run, args=(sequence,)) for sequence in range(1, 5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for sequence in range(1, 5):
        assert _payloads(_journal(bus, sequence)) == [f"{sequence}.{number}" for number in range(1, 9)]
    files = _table(bus, tmp_path).file_uris()
    assert sum(pq.ParquetFile(file).metadata.num_rows for file in files) == 32


def test_one_that_slept_until_its_entry_of_the_log_was_gone_is_kept_away(bus: DeltaBus, tmp_path: Path) -> None:
    sleeper, awake, behind = _journal(bus), _journal(bus), TableLog(Store(str(tmp_path)), "tables/s-1-1/rate")
    sleeper.append(1, _record("a"))
    behind.look()
    for number in range(2, 5):
        awake.append(number, _record(number))
    table = _table(bus, tmp_path)
    table.create_checkpoint()
    log = tmp_path / "tables" / "s-1-1" / "rate" / "_delta_log"
    for version in range(table.version()):
        (log / f"{version:020}.json").unlink()
    # Its entry would be written: the number is free again.
    with pytest.raises(TakenError, match="step 4"):
        sleeper.append(2, _record("late"))
    behind.look(fresh=True)
    assert sorted(behind.files(1)) == [1, 2, 3, 4]
    assert _payloads(_journal(bus)) == ["a", 2, 3, 4]


def test_what_was_read_stays_for_queries_and_is_removed_several_at_once(
    bus: DeltaBus, tmp_path: Path, now: _Time
) -> None:
    journal = _journal(bus)
    for number in range(1, 6):
        journal.append(number, _record(number))
    folder = tmp_path / "tables" / "s-1-1" / "rate" / "1"
    assert journal.remove(1, 2, 3) == []
    now.seconds += 61
    assert journal.remove(1, 2) == []
    assert journal.remove(1, 2, 3) == [1, 2, 3]
    assert (journal.first(), journal.last(), len(_table(bus, tmp_path).file_uris())) == (4, 5, 2)
    # A query that has begun may still read the files.
    assert len(list(folder.iterdir())) == 5
    now.seconds += 61
    assert journal.remove() == []
    assert len(list(folder.iterdir())) == 2


def test_records_beyond_the_limit_are_removed_at_once(bus: DeltaBus) -> None:
    bus.most_bytes = 2 * 4096
    journal = _journal(bus)
    for number in range(1, 6):
        journal.append(number, _record(number))
    assert journal.remove(4, 3, 2, 1) == [1, 2, 3]


def test_an_instance_that_begins_again_deletes_what_was_never_committed(bus: DeltaBus, tmp_path: Path) -> None:
    journal = _journal(bus)
    journal.append(1, _record("a"))
    folder = tmp_path / "tables" / "s-1-1" / "rate" / "1"
    lost, under_way = (f"{number:012}-{'0' * 32}.parquet" for number in (1, 2))
    (folder / lost).write_bytes(b"half")
    (folder / under_way).write_bytes(b"half")
    _journal(bus).append(2, _record("b"))
    assert {path.name for path in folder.iterdir()} >= {under_way}
    assert lost not in {path.name for path in folder.iterdir()}


def test_a_dead_letter_and_what_a_step_emits_are_told_once(bus: DeltaBus, tmp_path: Path) -> None:
    port = bus.port(Place("s-1-1", "rate"))
    port.open()
    port.commit(_record("a"), {}, [Letter(Message("b", {}), "it is bad")])
    found = list((tmp_path / "notes" / "s-1-1" / "rate" / "1" / "dead-letters").iterdir())
    assert [path.name for path in found] == ["000000000001-0000.json"]
    assert '"it is bad"' in found[0].read_text()


def test_what_is_made_once_is_made_by_one(tmp_path: Path) -> None:
    place = StoreFolder(Store(str(tmp_path)), "notes") / "claims" / "1.0"
    won: list[str] = []

    def run(name: str) -> None:
        if make_once(place, name.encode()):
            won.append(name)

    threads = [threading.Thread(target=run, args=(name,)) for name in "abcd"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [read_once(place).decode()] == won
    remove_once(place)
    with pytest.raises(FileNotFoundError):
        read_once(place)
    assert make_once(place, b"e")


def test_a_table_says_what_was_emitted_when_by_which_instance(bus: DeltaBus, tmp_path: Path, now: _Time) -> None:
    message = Message({"total": 40}, {"from": "here"}, 3)
    _journal(bus, 2).append(1, Record((Message("text", {}), message)))
    file = _table(bus, tmp_path).file_uris()[0]
    rows = pq.ParquetFile(file).read(use_threads=False).to_pylist()
    at = datetime.datetime.fromtimestamp(now.seconds, datetime.timezone.utc)
    common = {"instance": 2, "step": 1, "time": at}
    assert rows == [
        {"payload": "text", "headers": "{}", "key": None, "json": False, "place": 0, **common},
        {"payload": '{"total": 40}', "headers": '{"from": "here"}', "key": 3, "json": True, "place": 1, **common},
    ]


@pytest.mark.parametrize(
    ("location", "kind", "message"),
    [
        (None, ConfigError, "needs xd.messagebus.delta.location"),
        ("bus", ConfigError, "must be an absolute path, or a URI such as s3://bucket/bus, not 'bus'"),
        ("", ConfigError, "must be an absolute path"),
        ("memory://bus", ConfigError, "must be an absolute path"),
        ("/a\0b", ConfigError, "must be an absolute path"),
        ("gopher://host/bus", SetupError, "can't reach gopher://host/bus"),
        ("/dev/null/bus", SetupError, "can't reach /dev/null/bus"),
    ],
)
def test_a_wrong_location_is_named(location: str | None, kind: type[Exception], message: str) -> None:
    conf = {"xd.transport": "delta", "xd.messagebus.delta.location": location}
    with pytest.raises(kind, match=message):
        check_bus(BusSettings.of(conf))


def test_without_the_extra_a_sentence_says_so(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(__import__("sys").modules, "deltalake._internal", None)
    with pytest.raises(SetupError, match=r"needs deltalake, which is not installed: pip install '/.*\[delta\]'"):
        Store(str(tmp_path))


def test_a_module_reads_what_the_one_before_it_has_emitted(bus: DeltaBus) -> None:
    source = bus.port(Place("s-1-1", "rate"))
    source.open()
    source.commit(_record("a"), {})
    reader = bus.port(Place("s-1-1", "log", input=ModuleFeed("s-1-1", "rate")))
    reader.open()
    source.commit(_record("b", "c"), {})
    assert [each.message.payload for each in reader.next(9)] == ["a", "b", "c"]
