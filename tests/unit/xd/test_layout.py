"""Where the modules of a stream stand on the bus, by its definition."""

from __future__ import annotations

import pytest

from storm_on_spark.xd.bus.port import ChannelFeed, Feed, ModuleFeed, TapFeed
from storm_on_spark.xd.container.layout import Blueprint, LayoutError, StreamThere
from storm_on_spark.xd.dsl import Channel
from storm_on_spark.xd.modules.local_registry import LocalRegistry
from storm_on_spark.xd.tree.nodes import ModuleName, ModuleNode

OTHERS = {"ticktock": "time | filter | log", "sender": "time | last:filter > topic:news"}


def _blueprint(definition: str, label: str, **properties: str) -> Blueprint:
    found = {name: StreamThere(name, "1-2", text) for name, text in OTHERS.items()}
    node = ModuleNode(count=1, sequence=1, instances=1, generation=1)
    given = {name.replace("__", "."): value for name, value in properties.items()}
    name = ModuleName("s", "sink", label, 1)
    return Blueprint(StreamThere("s", "a-b", definition), name, node, given, LocalRegistry(), found.get)


@pytest.mark.parametrize(
    ("definition", "feed"),
    [
        ("queue:orders > log", ChannelFeed(Channel("queue", "orders"))),
        ("topic:orders > log", ChannelFeed(Channel("topic", "orders"))),
        ("tap:queue:orders > log", ChannelFeed(Channel("queue", "orders"), tapped=True)),
        ("tap:topic:orders > log", ChannelFeed(Channel("topic", "orders"), tapped=True)),
        ("tap:stream:ticktock > log", TapFeed("ticktock", "time")),
        ("tap:stream:ticktock.filter > log", TapFeed("ticktock", "filter")),
        (":ticktock.filter > log", TapFeed("ticktock", "filter")),
        (":sender.last > log", TapFeed("sender", "last", Channel("topic", "news"))),
        # The stream that it taps has been destroyed, and may come again.
        (":gone.time > log", TapFeed("gone", "time")),
        ("time | log", ModuleFeed("s-a-b", "time")),
    ],
)
def test_a_stream_reads(definition: str, feed: Feed) -> None:
    assert _blueprint(definition, "log").place.input == feed


def test_a_stream_sends() -> None:
    first, last = (_blueprint("time | filter > queue:orders", label).place for label in ("time", "filter"))
    assert (first.input, first.output, first.readers) == (None, None, ("s-a-b.filter.1",))
    assert (last.input, last.output, last.readers) == (ModuleFeed("s-a-b", "time"), Channel("queue", "orders"), ())
    alone = _blueprint("time > queue:orders", "time").place
    assert (alone.input, alone.output) == (None, Channel("queue", "orders"))


def test_a_channel_is_passed_on_to_another() -> None:
    place = _blueprint("queue:orders > topic:news", "bridge").place
    assert (place.input, place.output) == (ChannelFeed(Channel("queue", "orders")), Channel("topic", "news"))


@pytest.mark.parametrize(
    ("definition", "message"),
    [
        ("tap:stream:gone > log", "there is no stream gone, which it taps"),
        (":ticktock.moon > log", "has no module moon; it has time, filter, log"),
        ("tap:job:j > log", "no taps of jobs"),
    ],
)
def test_a_tap_that_makes_no_sense(definition: str, message: str) -> None:
    with pytest.raises(LayoutError, match=message):
        _blueprint(definition, "log")
