"""The interface between an instance of a module and any bus: a `Port` to read from and to commit steps to."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

from storm_on_spark.api.errors import StormError
from storm_on_spark.xd.bus.journal import Message, Positions, Record
from storm_on_spark.xd.dsl import Channel
from storm_on_spark.xd.modules.messages.message import written


class BusError(StormError, RuntimeError):
    """The bus does not answer, or its data can't be used; trying again may help."""


@dataclass(frozen=True)
class ModuleFeed:
    """The messages of the previous module: all of them, from the first one on."""

    stream: str
    """Name and number of the stream, unique among all present and past streams."""
    label: str


@dataclass(frozen=True)
class TapFeed:
    """The new messages of a module of another stream, even if that stream is destroyed and created again."""

    stream: str
    """The name only."""
    label: str
    channel: Channel | None = None
    """The channel that the module sends to, if not to the next module."""


@dataclass(frozen=True)
class ChannelFeed:
    """The messages that streams send to a channel."""

    channel: Channel
    tapped: bool = False
    """Whether it is a tap, which sees all new messages of a queue and takes none away."""

    @property
    def shared(self) -> bool:
        """Whether each message goes to only one of the channel's readers."""
        return self.channel.kind == "queue" and not self.tapped


Feed = ModuleFeed | TapFeed | ChannelFeed


def from_now_on(feed: Feed) -> bool:
    """Whether a new reader of a feed begins at its end; the bus does not wait for such readers.

    Example:
        >>> from_now_on(TapFeed("ticktock", "time")), from_now_on(ChannelFeed(Channel("queue", "orders")))
        (True, False)
    """
    return isinstance(feed, TapFeed) or (isinstance(feed, ChannelFeed) and not feed.shared)


@dataclass(frozen=True)
class Place:
    """An instance's place on the bus: its name, what it reads and where it sends.

    Args:
        stream: name and number of its stream.
        label: of its module.
        sequence: its number, from 1.
        count: of instances of the module.
        generation: of the deployment.
        input: what it reads; None for a source.
        output: the channel that it sends to; None if the stream continues or ends.
        readers: the instances that read it in its own stream; they may not have begun yet.
        key: the partition of a message that it emits.
        track: returns the headers of a message that it emits with one more entry of the history; None for no history.
    """

    stream: str
    label: str
    sequence: int = 1
    count: int = 1
    generation: int = 1
    input: Feed | None = None
    output: Channel | None = None
    readers: tuple[str, ...] = ()
    key: Callable[[Message], int] | None = None
    track: Callable[[dict[str, Any]], dict[str, Any]] | None = None

    @property
    def era(self) -> str:
        """The generation, and the number of instances."""
        return f"{self.generation}x{self.count}"

    @property
    def name(self) -> str:
        """The name of the instance, unique on the bus."""
        return reader_name(self.stream, self.label, self.sequence)


def reader_name(stream: str, label: str, sequence: int) -> str:
    """Returns the name of an instance on the bus.

    >>> reader_name("ticktock-1-2", "log", 1)
    'ticktock-1-2.log.1'
    """
    return f"{stream}.{label}.{sequence}"


class Input(NamedTuple):
    """A message and its position."""

    journal: str
    record: int
    place: int
    message: Message
    following: tuple[int, int]
    """The position after it."""
    mine: bool = True
    """Whether this instance must execute it; if not, another one does."""


@dataclass(frozen=True)
class Letter:
    """A dead letter: a message that can't be processed, and the reason."""

    message: Message
    reason: str


class Port(Protocol):
    """An instance's place on the bus; one thread uses it.

    Any method raises `TakenError` once another process runs the instance, and `BusError` if the bus does not answer.
    The caller then closes the port and begins again with a new one.
    """

    @property
    def positions(self) -> Positions:
        """The positions after the messages that were read and committed, or passed."""

    def open(self) -> Record | None:
        """Begins, or begins again, and fences other processes; returns the last committed record."""

    def next(self, most: int) -> Iterator[Input]:
        """Yields at most `most` messages after the positions; `commit` or `pass_by` advances these."""

    def pass_by(self, positions: Positions) -> None:
        """Advances past messages that other instances execute."""

    def commit(self, record: Record, read: Positions, letters: Sequence[Letter] = ()) -> None:
        """Makes a step durable: all of it, or nothing.

        Args:
            record: what the step emitted; its positions are where to begin after a crash.
            read: after the messages that were read; further than those positions if a bolt still holds inputs.
            letters: the messages that could not be processed.
        """

    def full(self) -> bool:
        """Whether the instance must wait, because its readers are too far behind."""

    def upkeep(self) -> None:
        """Does regular work that is due."""

    def close(self) -> None:
        """Ends it."""


class Bus(Protocol):
    """A message bus; the instances of a container use it on their threads."""

    @property
    def sync(self) -> bool:
        """Whether what is committed survives the loss of a machine."""

    def port(self, place: Place) -> Port:
        """Returns the port of an instance; nothing is read or created before `Port.open`."""

    def close(self) -> None:
        """Ends it."""


Alive = Callable[[str], bool]
"""Whether an instance, by its name on the bus, has a container, or may have one."""


def letter_body(letter: Letter) -> dict[str, Any]:
    """Returns a dead letter in its written form.

    Example:
        >>> letter_body(Letter(Message({"a": 1}, {"n": 2}), "it is bad"))
        {'payload': {'a': 1}, 'headers': {'n': '2'}, 'reason': 'it is bad'}
    """
    payload = letter.message.payload
    try:
        plain = isinstance(payload, str) or (isinstance(payload, dict | list) and bool(written(payload)))
    except ValueError:
        plain = False
    return {
        "payload": payload if plain else repr(payload),
        "headers": {name: str(value) for name, value in letter.message.headers.items()},
        "reason": letter.reason,
    }
