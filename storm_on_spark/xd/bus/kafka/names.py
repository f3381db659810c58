"""Names of the bus in Kafka: topics, transactions and groups.

xd.<tag>.<stream>-<id>.<module>          what a module emits; a partition for each of its instances
xd.<tag>.state.<stream>-<id>.<module>    state and positions of its instances; a partition for each
xd.<tag>.queue.<name>, xd.<tag>.topic.<name>
xd.<tag>.dead-letters

The tag distinguishes clusters that share a Kafka. Names of streams, modules and channels have no dot. Kafka refuses two
names that differ only in `.` and `_`. No two of these do, because the id of a stream is never reused.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from typing import Final

from storm_on_spark.xd.bus.port import ChannelFeed, Feed, ModuleFeed
from storm_on_spark.xd.dsl import Channel

_LONGEST: Final = 249
_HASH: Final = 16
_STREAM: Final = re.compile(r"(?:state\.)?([A-Za-z_][A-Za-z0-9_-]*-[0-9a-f]+-[0-9a-f]+)\.[^.]+")
_ID: Final = re.compile(r"-[0-9a-f]+-[0-9a-f]+")


class Names:
    """Names of one cluster.

    Args:
        tag: of the cluster.

    Example:
        >>> names = Names("3fa9c1")
        >>> names.output("ticktock-1-2", "time"), names.channel(Channel("queue", "orders"))
        ('xd.3fa9c1.ticktock-1-2.time', 'xd.3fa9c1.queue.orders')
    """

    def __init__(self, tag: str) -> None:
        self._prefix = f"xd.{tag}."

    def output(self, stream: str, label: str) -> str:
        """Returns the topic of what a module emits."""
        return self.own(f"{stream}.{label}")

    def state(self, stream: str, label: str) -> str:
        """Returns the topic of the states of a module's instances."""
        return self.own(f"state.{stream}.{label}")

    def channel(self, channel: Channel) -> str:
        """Returns the topic of a channel."""
        return self.own(f"{channel.kind}.{channel.name}")

    @property
    def dead_letters(self) -> str:
        """The topic of dead letters."""
        return self.own("dead-letters")

    def own(self, name: str) -> str:
        """Returns a name with the prefix, shortened to the length that Kafka allows.

        >>> len(Names("3fa9c1").own("a" * 500)), Names("3fa9c1").own("ticktock-1-2.log.1")
        (249, 'xd.3fa9c1.ticktock-1-2.log.1')
        """
        whole = self._prefix + name
        if len(whole) <= _LONGEST:
            return whole
        return f"{whole[: _LONGEST - _HASH - 1]}-{hashlib.sha256(whole.encode()).hexdigest()[:_HASH]}"

    def is_own(self, topic: str) -> bool:
        """Whether a topic belongs to this cluster."""
        return topic.startswith(self._prefix)

    def stream_of(self, topic: str) -> str | None:
        """Returns the stream that a topic belongs to; None for a topic of a channel, and for a shortened name.

        >>> Names("3fa9c1").stream_of("xd.3fa9c1.state.ticktock-1-2.time")
        'ticktock-1-2'
        """
        match = _STREAM.fullmatch(topic[len(self._prefix) :]) if self.is_own(topic) else None
        return None if match is None else match[1]

    def feeding(self, feed: Feed, present: Iterable[str]) -> list[str]:
        """Returns the existing topics of a feed.

        Args:
            feed: to be read.
            present: all topics.

        Example:
            >>> from storm_on_spark.xd.bus.port import TapFeed
            >>> there = ["xd.t.a-1-2.time", "xd.t.a-1-2.log", "xd.t.a-b-1-2.time", "xd.t.state.a-1-2.time"]
            >>> Names("t").feeding(TapFeed("a", "time"), there)
            ['xd.t.a-1-2.time']
        """
        if isinstance(feed, ChannelFeed):
            wanted = {self.channel(feed.channel)}
        elif isinstance(feed, ModuleFeed):
            wanted = {self.output(feed.stream, feed.label)}
        elif feed.channel is not None:
            wanted = {self.channel(feed.channel)}
        else:
            start = f"{self._prefix}{feed.stream}"
            ids = [topic.rpartition(".")[0][len(start) :] for topic in present if topic.startswith(start)]
            wanted = {self.output(feed.stream + number, feed.label) for number in ids if _ID.fullmatch(number)}
        return sorted(wanted.intersection(present))
