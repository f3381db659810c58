"""Parts of the bus in Kafka that need no broker."""

from __future__ import annotations

from collections import namedtuple
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from storm_on_spark.api.errors import ConfigError
from storm_on_spark.xd.bus import BusSettings, check_bus
from storm_on_spark.xd.bus.inputs import Share
from storm_on_spark.xd.bus.journal import Message, Positions, Record
from storm_on_spark.xd.bus.kafka.names import Names
from storm_on_spark.xd.bus.kafka.reading import Buffer
from storm_on_spark.xd.bus.kafka.seals import Seals
from storm_on_spark.xd.bus.kafka.states import Kept, begin
from storm_on_spark.xd.bus.port import BusError, ChannelFeed, ModuleFeed, TapFeed
from storm_on_spark.xd.dsl import Channel

TopicPartition = namedtuple("TopicPartition", "topic partition")
ConsumerRecord = namedtuple("ConsumerRecord", "offset key value")
SEALS = Seals(bytes(32))


def _buffer(count: int = 1, sequence: int = 1, positions: Positions | None = None, sender: str = "") -> Buffer:
    return Buffer(SEALS, Share(sequence, count), lambda name: sender in ("", name), positions or {})


def _records(
    *chunks: tuple[int, list[Message]], key: bytes = b"a-1-2.time.1"
) -> dict[TopicPartition, list[ConsumerRecord]]:
    records = [ConsumerRecord(offset, key, SEALS.sealed("t", tuple(messages))) for offset, messages in chunks]
    return {TopicPartition("t", 0): records}


def _messages(*payloads: int, key: bool = False) -> list[Message]:
    return [Message(payload, {}, payload if key else None) for payload in payloads]


def test_messages_stay_until_the_positions_move() -> None:
    buffer = _buffer()
    buffer.add(_records((0, _messages(1, 2)), (3, _messages(3))))
    first = list(buffer.next(2))
    assert [each.message.payload for each in first] == [1, 2]
    assert [each.following for each in first] == [(0, 1), (1, 0)]
    assert list(buffer.next(2)) == first
    buffer.positions["t/0"] = first[0].following
    assert [each.message.payload for each in buffer.next(9)] == [2, 3]
    buffer.positions["t/0"] = (1, 0)
    assert buffer.count() == 1
    assert buffer.behind("t/0") == 4


@given(
    st.integers(1, 5),
    st.lists(st.lists(st.integers(0, 99), min_size=1, max_size=4), min_size=1, max_size=9),
    st.booleans(),
)
def test_each_message_is_for_one_instance(count: int, chunks: list[list[int]], keyed: bool) -> None:
    taken: list[tuple[int, int, int]] = []
    for sequence in range(1, count + 1):
        buffer = _buffer(count, sequence)
        # As transactions leave them: each has a mark behind it.
        buffer.add(_records(*((2 * at, _messages(*chunk, key=keyed)) for at, chunk in enumerate(chunks))))
        mine = [each for each in buffer.next(1_000) if each.mine]
        taken += [(each.record, each.place, each.message.payload) for each in mine]
        assert not keyed or all(each.message.payload % count == sequence - 1 for each in mine)
    assert sorted(taken) == [(2 * at, place, n) for at, chunk in enumerate(chunks) for place, n in enumerate(chunk)]


def test_offsets_of_small_transactions_reach_all_instances() -> None:
    mine = []
    for sequence in (1, 2):
        buffer = _buffer(2, sequence)
        buffer.add(_records(*((2 * number, _messages(number)) for number in range(100))))
        mine.append(sum(each.mine for each in buffer.next(1_000)))
    assert min(mine) > 25


def test_a_tap_of_one_sender_passes_what_others_send_and_opens_none_of_it() -> None:
    buffer = _buffer(sender="a-1-2.time.1")
    buffer.add(_records((0, _messages(1))))
    buffer.add(
        {TopicPartition("t", 0): [ConsumerRecord(1, b"b-3-4.time.1", b"no pickle"), ConsumerRecord(2, None, None)]}
    )
    assert [(each.message.payload, each.mine) for each in buffer.next(9)] == [(1, True), (None, False), (None, False)]


@pytest.mark.parametrize("data", [None, b"", b"XDK1", SEALS.sealed("other", (1,)), SEALS.sealed("t", (1,))[:-1]])
def test_what_is_not_sealed_for_a_topic_is_not_opened(data: bytes | None) -> None:
    with pytest.raises(BusError, match="a record of t is not of this cluster, or is damaged"):
        SEALS.opened("t", data)


def test_containers_of_a_folder_have_one_key_that_others_can_not_read(tmp_path: Path) -> None:
    first, second = Seals.of(tmp_path / "bus"), Seals.of(tmp_path / "bus")
    assert second.opened("t", first.sealed("t", "x")) == "x"
    assert first.tag == second.tag != Seals.of(tmp_path / "other").tag
    key = tmp_path / "bus" / "kafka.key"
    assert key.stat().st_mode & 0o777 == 0o600
    key.write_bytes(b"short")
    with pytest.raises(BusError, match=r"kafka.key is not a key of a bus: it has 5 bytes"):
        Seals.of(tmp_path / "bus")


def test_feeds_are_topics() -> None:
    names = Names("t")
    there = ["xd.t.a-1-2.time", "xd.t.a-3-4.time", "xd.t.a-b-5-6.time", "xd.t.queue.time", "xd.u.a-7-8.time"]
    assert names.feeding(ModuleFeed("a-1-2", "time"), there) == ["xd.t.a-1-2.time"]
    assert names.feeding(TapFeed("a", "time"), there) == ["xd.t.a-1-2.time", "xd.t.a-3-4.time"]
    assert names.feeding(TapFeed("a", "time", Channel("queue", "time")), there) == ["xd.t.queue.time"]
    assert names.feeding(ChannelFeed(Channel("topic", "time")), there) == []
    assert [names.stream_of(topic) for topic in there] == ["a-1-2", "a-3-4", "a-b-5-6", None, None]


def _kept(positions: Positions, era: str, base: Positions) -> Kept:
    return Kept(Record(positions=positions, generation=era), base)


def test_instances_go_on_where_they_were_and_more_of_them_where_the_least_was() -> None:
    base: Positions = {"a": (1, 0)}
    before = {1: _kept({"a": (9, 2)}, "1x2", base), 2: _kept({"a": (7, 0)}, "1x2", base)}
    nothing: Positions = {}
    assert begin("1x2", 1, before, dict) == ({"a": (9, 2)}, base)
    assert begin("2x2", 1, before, dict) == ({"a": (9, 2)}, {"a": (7, 0)})
    assert begin("2x3", 3, before, dict) == ({"a": (7, 0)}, {"a": (7, 0)})
    # The first of the new deployment has gone on: the others begin where it began.
    after = {**before, 1: _kept({"a": (50, 0)}, "2x3", {"a": (7, 0)})}
    assert begin("2x3", 2, after, dict) == ({"a": (7, 0)}, {"a": (7, 0)})
    # One that never began has all before it.
    assert begin("2x3", 1, {1: before[1]}, dict) == (base, base)
    assert begin("1x1", 1, {}, lambda: base) == (base, base)
    assert begin("1x1", 1, {}, lambda: nothing) == ({}, {})


@pytest.mark.parametrize(
    ("conf", "message"),
    [
        ({"xd.messagebus.kafka.brokers": "here"}, "xd.messagebus.kafka.brokers: bootstrap servers are host:port"),
        ({"xd.messagebus.kafka.properties": {"group.id": "x"}}, "xd.messagebus.kafka.properties can't have 'group.id'"),
        ({"xd.messagebus.kafka.properties": "x"}, "xd.messagebus.kafka.properties must be a mapping"),
        ({"xd.messagebus.kafka.default.minPartitionCount": 0}, "must be an int from 1 to 1000"),
        ({"xd.transport": "delta"}, 'xd.transport must be one of "local", "kafka", not .delta.'),
    ],
)
def test_wrong_settings_are_told_with_their_key(conf: dict[str, object], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        check_bus(BusSettings.of({"xd.transport": "kafka", **conf}))
    check_bus(BusSettings.of({"xd.transport": "kafka"}))
