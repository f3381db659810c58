"""Channels and taps on the local bus: who gets what, what holds whom back, and what is removed when."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from storm_on_spark.xd.bus.journal import Journal, Message, Record, TakenError
from storm_on_spark.xd.bus.local import LocalBus, LocalPort
from storm_on_spark.xd.bus.port import ChannelFeed, Feed, ModuleFeed, Place, TapFeed
from storm_on_spark.xd.dsl import Channel

QUEUE, TOPIC = Channel("queue", "orders"), Channel("topic", "orders")


class _Clock:
    """Time that passes by a second with every look, so that nothing is answered from memory."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        self.now += 10
        return self.now


@pytest.fixture
def bus(tmp_path: Path) -> Iterator[LocalBus]:
    found = LocalBus(tmp_path, most_bytes=1 << 30, clock=_Clock())
    yield found
    found.close()


def _opened(bus: LocalBus, stream: str, label: str, **more: Any) -> LocalPort:
    port = bus.port(Place(stream, label, **more))
    port.open()
    return port


def _send(port: LocalPort, *payloads: object) -> None:
    port.commit(Record(tuple(Message(payload, {}) for payload in payloads)), {})


def _keep_up(port: LocalPort) -> None:
    """Twice: what has just been written is not removed yet."""
    port.upkeep()
    port.upkeep()


def _take(port: LocalPort, most: int = 1000, commit: bool = True) -> list[Any]:
    """Reads as an instance does, and commits what it has read."""
    positions, found = dict(port.positions), []
    for each in port.next(most):
        if each.mine:
            found.append(each.message.payload)
        positions[each.journal] = each.following
    if commit:
        port.commit(Record(positions=positions, generation="1x1"), positions)
    return found


def _reader(bus: LocalBus, stream: str, feed: Feed, **more: Any) -> LocalPort:
    return _opened(bus, stream, "log", input=feed, **more)


def test_a_message_of_a_queue_goes_to_one_of_its_readers(bus: LocalBus) -> None:
    senders = [_opened(bus, f"s{number}-1-1", "rate", output=QUEUE) for number in range(2)]
    readers = [_reader(bus, f"r{number}-1-1", ChannelFeed(QUEUE)) for number in range(2)]
    for number in range(20):
        _send(senders[number % 2], number, number + 100)
    found: list[list[Any]] = [[], []]
    while new := [_take(reader, 3) for reader in readers]:
        if not any(new):
            break
        found = [each + more for each, more in zip(found, new, strict=True)]
    assert all(found)
    assert sorted(found[0] + found[1]) == [*range(20), *range(100, 120)]


def test_every_reader_of_a_topic_gets_all_that_comes_from_then_on(bus: LocalBus) -> None:
    sender = _opened(bus, "s-1-1", "rate", output=TOPIC)
    _send(sender, "before")
    readers = [_reader(bus, f"r{number}-1-1", ChannelFeed(TOPIC)) for number in range(2)]
    _send(sender, "a")
    late = _opened(bus, "t-1-1", "rate", output=TOPIC)
    _send(late, "b")
    assert [sorted(_take(reader)) for reader in readers] == [["a", "b"]] * 2


def test_a_reader_of_a_topic_keeps_its_place_while_it_is_away(bus: LocalBus) -> None:
    sender = _opened(bus, "s-1-1", "rate", output=TOPIC)
    reader = _reader(bus, "r-1-1", ChannelFeed(TOPIC))
    _send(sender, "a")
    assert _take(reader) == ["a"]
    reader.close()
    _send(sender, "b")
    _keep_up(sender)
    _send(sender, "c")
    assert _take(_reader(bus, "r-1-1", ChannelFeed(TOPIC), generation=2)) == ["b", "c"]


def test_a_tap_of_a_queue_takes_nothing_away(bus: LocalBus) -> None:
    sender = _opened(bus, "s-1-1", "rate", output=QUEUE)
    tap = _reader(bus, "t-1-1", ChannelFeed(QUEUE, tapped=True))
    reader = _reader(bus, "r-1-1", ChannelFeed(QUEUE))
    _send(sender, "a", "b")
    assert _take(tap) == _take(reader) == ["a", "b"]


def test_a_tap_goes_on_with_a_stream_that_is_created_again(bus: LocalBus) -> None:
    _send(_opened(bus, "ticktock-1a-2b", "time"), "before")
    # Another stream, whose name begins alike.
    other = _opened(bus, "ticktock-fast-1a-2b", "time")
    tap = _reader(bus, "t-1-1", TapFeed("ticktock", "time"))
    again = _opened(bus, "ticktock-3c-4d", "time")
    _send(again, "after")
    _send(other, "not this")
    assert _take(tap) == ["after"]


def test_a_queue_keeps_what_nobody_has_taken(bus: LocalBus) -> None:
    sender = _opened(bus, "s-1-1", "rate", output=QUEUE)
    for number in range(4):
        _send(sender, number)
    _keep_up(sender)
    reader = _reader(bus, "r-1-1", ChannelFeed(QUEUE))
    assert _take(reader, 2) == [0, 1]
    reader.upkeep()
    _keep_up(sender)
    journal = Journal(bus.folder / "s-1-1" / "rate" / "1")
    assert journal.first() == 3
    assert [path.name for path in (journal.folder / "claims").iterdir()] == []
    assert _take(reader) == [2, 3]


def test_claims_of_a_reader_that_is_gone_are_taken_over_where_it_was(bus: LocalBus) -> None:
    sender = _opened(bus, "s-1-1", "rate", output=QUEUE)
    gone, other = (_reader(bus, f"{name}-1-1", ChannelFeed(QUEUE)) for name in ("gone", "other"))
    _send(sender, "a", "b", "c")
    _send(sender, "d")
    # It has claimed both records, and committed the first message.
    assert _take(gone, 1) == ["a"]
    assert _take(gone, 9, commit=False) == ["b", "c", "d"]
    assert _take(other) == []
    bus.alive = lambda name: name != "gone-1-1.log.1"
    other = _reader(bus, "other-1-1", ChannelFeed(QUEUE), generation=2)
    # It dies itself, before it has committed.
    assert _take(other, commit=False) == ["b", "c", "d"]
    other = _reader(bus, "other-1-1", ChannelFeed(QUEUE), generation=3)
    assert _take(other, 1) == ["b"]
    other = _reader(bus, "other-1-1", ChannelFeed(QUEUE), generation=4)
    assert _take(other) == ["c", "d"]
    # It only slept: what it had in hand is lost on it.
    with pytest.raises(TakenError):
        _take(gone)
    again = _reader(bus, "gone-1-1", ChannelFeed(QUEUE))
    assert _take(again) == []
    _send(sender, "e")
    assert _take(again) == ["e"]


def test_a_slow_module_holds_back_what_feeds_it_and_only_that(bus: LocalBus) -> None:
    bus.most_bytes = 3 * 4096
    source = _opened(bus, "s-1-1", "rate", readers=("s-1-1.log.1",))
    tap = _reader(bus, "t-1-1", TapFeed("s", "rate"))
    assert not source.full()
    for number in range(4):
        _send(source, number)
    assert source.full()
    # Neither a tap nor the slow module itself has to wait.
    assert _take(tap) == [0, 1, 2, 3]
    slow = _opened(bus, "s-1-1", "log", input=ModuleFeed("s-1-1", "rate"))
    assert not slow.full()
    assert _take(slow) == [0, 1, 2, 3]
    slow.upkeep()
    _keep_up(source)
    assert not source.full()


def test_a_tap_that_is_too_far_behind_holds_nothing_back_and_misses_the_oldest(
    bus: LocalBus, caplog: pytest.LogCaptureFixture
) -> None:
    bus.most_bytes = 3 * 4096
    source = _opened(bus, "s-1-1", "rate", readers=("s-1-1.log.1",))
    tap, slow = _reader(bus, "t-1-1", TapFeed("s", "rate")), _reader(bus, "s-1-1", ModuleFeed("s-1-1", "rate"))
    _send(source, 0)
    assert _take(tap) == [0]
    tap.upkeep()
    for number in range(1, 11):
        _send(source, number)
        assert _take(slow)
        slow.upkeep()
        _keep_up(source)
        assert not source.full()
    assert _take(tap) == [8, 9, 10]
    assert "misses records 2 to 8" in caplog.text


def test_a_queue_that_nobody_reads_holds_its_sender_back(bus: LocalBus) -> None:
    bus.most_bytes = 4096
    sender = _opened(bus, "s-1-1", "rate", output=QUEUE)
    _send(sender, 1)
    _send(sender, 2)
    assert sender.full()
    reader = _reader(bus, "r-1-1", ChannelFeed(QUEUE))
    assert _take(reader) == [1, 2]
    reader.upkeep()
    _keep_up(sender)
    assert not sender.full()


def test_instances_of_an_earlier_deployment_hold_nothing_back(bus: LocalBus) -> None:
    source = _opened(bus, "s-1-1", "rate", readers=("s-1-1.log.1", "s-1-1.log.2"))
    feed = ModuleFeed("s-1-1", "rate")
    both = [_reader(bus, "s-1-1", feed, sequence=number, count=2) for number in (1, 2)]
    _send(source, 1, 2)
    for each in both:
        _take(each)
        each.close()
    one = _reader(bus, "s-1-1", feed, generation=2)
    source = _opened(bus, "s-1-1", "rate", readers=("s-1-1.log.1",), generation=2)
    for number in range(3, 6):
        _send(source, number)
    _take(one)
    one.upkeep()
    _keep_up(source)
    assert Journal(bus.folder / "s-1-1" / "rate" / "1").first() == 4


def test_an_input_that_is_held_is_not_removed(bus: LocalBus) -> None:
    source = _opened(bus, "s-1-1", "rate", readers=("s-1-1.log.1",))
    reader = _reader(bus, "s-1-1", ModuleFeed("s-1-1", "rate"))
    for number in range(3):
        _send(source, number)
    assert list(reader.next(1))
    reader.commit(Record(positions={"1": (2, 0)}), {"1": (4, 0)})
    reader.upkeep()
    _keep_up(source)
    assert Journal(bus.folder / "s-1-1" / "rate" / "1").first() == 2


def test_what_a_destroyed_stream_leaves_is_removed_once_nobody_needs_it(bus: LocalBus) -> None:
    def there() -> set[str]:
        return {path.name for path in bus.folder.iterdir()}

    streams, now = {"s-1-1", "t-1-1", "q-1-1", "r-1-1"}, [0.0]
    bus.exists, bus.clock, bus.keep_secs = streams.__contains__, lambda: now[0], 60
    for stream, output in (("s-1-1", None), ("t-1-1", None), ("q-1-1", QUEUE)):
        _send(_opened(bus, stream, "rate", output=output), "a")
    reader = _opened(bus, "r-1-1", "log", input=ChannelFeed(QUEUE))
    streams -= {"s-1-1", "q-1-1"}
    bus.sweep()
    now[0] += 59
    bus.sweep()
    assert "s-1-1" in there(), "taps may still be reading it"
    now[0] += 2
    bus.sweep()
    # What it has sent to a queue is not lost.
    assert {"s-1-1", "t-1-1", "q-1-1"} & there() == {"t-1-1", "q-1-1"}
    assert _take(reader) == ["a"]
    reader.upkeep()
    bus.sweep()
    assert {"t-1-1", "q-1-1"} & there() == {"t-1-1"}
    assert not list(bus.channel(QUEUE).iterdir())


def test_what_a_destroyed_stream_leaves_is_removed_also_if_its_containers_have_ended(bus: LocalBus) -> None:
    def there() -> set[str]:
        return {path.name for path in bus.folder.iterdir()} & {"s-1-1", "t-1-1", "u-1-1"}

    bus.clock, bus.keep_secs = (lambda: 0.0), 60
    for cluster, streams in (("a", ("s-1-1", "t-1-1")), ("b", ("u-1-1",))):
        bus.cluster = lambda name=cluster: name
        for stream in streams:
            _send(_opened(bus, stream, "rate"), "x")
        bus.sweep()
        # The container ends: the next one knows nothing of these streams.
        bus._streams.clear()  # noqa: SLF001
    bus.cluster, bus.exists = (lambda: "a"), {"t-1-1"}.__contains__
    bus.clock = lambda: 1000.0
    bus.sweep()
    assert there() == {"s-1-1", "t-1-1", "u-1-1"}
    bus.clock = lambda: 1061.0
    bus.sweep()
    assert there() == {"t-1-1", "u-1-1"}, "u is of another installation"
