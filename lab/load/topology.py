"""The load: a topology in which nothing may get lost or be counted twice, and that says all it does.

    messages (2 tasks, 2 hosts) -> fan -> count (state, raises now and then)
                                       -> join (state, keeps tuples unacked, anchors to two roots) -> sink
                                       -> windows (hold tuples for a second), where they are asked for

Every message is unique. `fan` makes three tuples of it. `count` keeps counts and sums in plain attributes, and raises
at the first sight of some messages, after it has counted them: these fail and come again. `join` waits for the other
message of a pair, which the other spout task emits, and anchors what it emits to both. `sink` writes to the ledger.
"""

from __future__ import annotations

import json
import time
from collections import Counter, deque
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lab.load import ledger, sinks
from storm_on_spark import (
    BaseBasicBolt,
    BaseRichBolt,
    BaseRichSpout,
    BaseWindowedBolt,
    Duration,
    Fields,
    Topology,
    TopologyBuilder,
    Tuple,
    TupleWindow,
)

KEYS = 100
"""`count` sums up by the last two digits, and from key 100 on by the last digit."""
_BACKLOG_SECS = 0.25
"""A late spout emits this much at once; the rest shifts all later messages."""


@dataclass(frozen=True)
class Load:
    """How much the topology processes.

    Args:
        messages: how many; even, since they are joined in pairs.
        seconds: how long emitting them takes without a fault.
    """

    messages: int = 100_000
    seconds: float = 40.0

    @property
    def rate(self) -> float:
        """Messages per second."""
        return self.messages / self.seconds

    @property
    def poison_every(self) -> int:
        """One message in this many is poison to `count` at its first attempt; about a hundred are."""
        # Odd, so that both spout tasks have some.
        return max(3, self.messages // 97 | 1)

    def is_poison(self, number: int) -> bool:
        """Whether `count` raises when it sees the message for the first time."""
        return number % self.poison_every == self.poison_every // 2


def keys_of(number: int) -> tuple[int, int]:
    """Returns the two keys under which `count` counts a message."""
    return number % KEYS, KEYS + number % 10


class Pacer:
    """Decides when the next message is due.

    After a restore its clock starts again, so that a spout does not catch up at once after it was dead.

    Args:
        rate: messages per second.
    """

    def __init__(self, rate: float) -> None:
        self._rate = rate
        self._next = time.monotonic()

    def due(self) -> bool:
        """Whether a message is due; counts it as emitted if so."""
        now = time.monotonic()
        if now < self._next:
            return False
        self._next = max(self._next, now - _BACKLOG_SECS) + 1 / self._rate
        return True

    def __reduce__(self) -> tuple[type[Pacer], tuple[float]]:
        return Pacer, (self._rate,)


class Messages(BaseRichSpout):
    """Emits every second message and replays what fails; the message id is (number, attempts that failed).

    Its record of outcomes is an oracle too: attributes are state, so an ack counts once even if the call was repeated
    after a crash.

    Args:
        load: what to emit.
        folder: the ledger.
    """

    def __init__(self, load: Load, folder: str) -> None:
        self._load = load
        self._folder = folder

    def open(self, conf: Mapping[str, Any], context: Any, collector: Any) -> None:
        """Starts before the first message."""
        self._collector = collector
        self._task = context.this_task_id
        self._tasks = len(context.component_tasks(context.this_component_id))
        self._pacer = Pacer(self._load.rate / self._tasks)
        self._next = context.this_task_index
        #: Failed messages that wait to be emitted again: (number, attempt).
        self._again: deque[tuple[int, int]] = deque()
        #: Message -> attempt, where that is not the first, until it is acked.
        self._attempts: dict[int, int] = {}
        #: Messages without an ack, among those that were emitted.
        self._open: set[int] = set()
        self._acked = 0
        self._failed = 0
        #: Impossible outcomes: of a root that is not pending.
        self._strange: list[tuple[str, int, int]] = []

    def next_tuple(self) -> None:
        """Emits one message if one is due."""
        if self._again:
            number, attempt = self._again.popleft()
            self._attempts[number] = attempt
        elif self._next < self._load.messages and self._pacer.due():
            number, attempt = self._next, 0
            self._next += self._tasks
        else:
            return
        self._open.add(number)
        ledger.note(self._folder, ledger.EMITS, number, attempt)
        self._collector.emit([number, attempt], (number, attempt))

    def ack(self, message_id: tuple[int, int]) -> None:
        """Records the ack."""
        ledger.note(self._folder, ledger.ACKS, *message_id)
        if self._ended("ack", *message_id):
            self._acked += 1
            self._attempts.pop(message_id[0], None)

    def fail(self, message_id: tuple[int, int]) -> None:
        """Records the fail and queues the message again."""
        ledger.note(self._folder, ledger.FAILS, *message_id)
        if self._ended("fail", *message_id):
            self._failed += 1
            self._again.append((message_id[0], message_id[1] + 1))

    def _ended(self, kind: str, number: int, attempt: int) -> bool:
        if number not in self._open or self._attempts.get(number, 0) != attempt:
            self._strange.append((kind, number, attempt))
            return False
        self._open.remove(number)
        return True

    def exhausted(self) -> bool:
        """Whether nothing is left to emit."""
        return self._next >= self._load.messages and not self._again

    def close(self) -> None:
        """Leaves a summary for the oracles."""
        summary = {
            "acked": self._acked,
            "failed": self._failed,
            "open": sorted(self._open),
            "strange": self._strange,
        }
        Path(self._folder, f"spout-{self._task}.json").write_text(json.dumps(summary))

    def declare_output_fields(self, declarer: Any) -> None:
        """Declares the messages."""
        declarer.declare(Fields("number", "attempt"))


class Fan(BaseBasicBolt):
    """Makes three tuples of a message."""

    stateless = True

    def execute(self, tup: Tuple, collector: Any) -> None:
        """Emits them."""
        number, attempt = tup
        for key in keys_of(number):
            collector.emit([key, number, attempt], stream="counts")
        collector.emit([number // 2, number, attempt], stream="pairs")

    def declare_output_fields(self, declarer: Any) -> None:
        """Declares both streams."""
        declarer.declare_stream("counts", Fields("key", "number", "attempt"))
        declarer.declare_stream("pairs", Fields("pair", "number", "attempt"))


class Count(BaseBasicBolt):
    """Counts and sums up by key, in plain attributes.

    Args:
        load: says which messages are poison.
    """

    def __init__(self, load: Load) -> None:
        self._load = load

    def prepare(self, conf: Mapping[str, Any], context: Any) -> None:
        """Starts at zero."""
        self.counts: Counter[int] = Counter()
        self.sums: Counter[int] = Counter()

    def execute(self, tup: Tuple, collector: Any) -> None:
        """Counts; raises afterwards if the tuple is poison."""
        key, number, attempt = tup
        self.counts[key] += 1
        self.sums[key] += number
        if key < KEYS and not attempt and self._load.is_poison(number):
            raise ValueError(f"message {number} is poison at its first attempt")


class Join(BaseRichBolt):
    """Joins the two messages of a pair; a message that comes again continues alone."""

    def prepare(self, conf: Mapping[str, Any], context: Any, collector: Any) -> None:
        """Starts with nothing held."""
        self._collector = collector
        #: Pair -> its first message, not acked yet.
        self.held: dict[int, Tuple] = {}
        self.joined = 0
        self.alone = 0

    def execute(self, tup: Tuple) -> None:
        """Holds the tuple, or emits it with what it belongs to."""
        pair, number, attempt = tup
        if attempt:
            self._collector.emit([number, attempt, -1], [tup])
            self._collector.ack(tup)
            self.alone += 1
        elif (other := self.held.pop(pair, None)) is None:
            self.held[pair] = tup
        else:
            first, second = sorted((number, other["number"]))
            self._collector.emit([first, 0, second], [other, tup])
            self._collector.ack(other)
            self._collector.ack(tup)
            self.joined += 1

    def declare_output_fields(self, declarer: Any) -> None:
        """Declares what the sink records."""
        declarer.declare(Fields("number", "attempt", "partner"))


class Sink(BaseBasicBolt):
    """Writes every tuple to the ledger.

    Args:
        folder: the ledger.
    """

    stateless = True

    def __init__(self, folder: str) -> None:
        self._folder = folder

    def execute(self, tup: Tuple, collector: Any) -> None:
        """Writes it."""
        ledger.note(self._folder, ledger.SINK, *tup)


class Windows(BaseWindowedBolt):
    """Counts what is new in its windows by key, and what has left them, in plain attributes."""

    def prepare(self, conf: Mapping[str, Any], context: Any, collector: Any) -> None:
        """Starts at zero."""
        self.entered: Counter[int] = Counter()
        self.left: Counter[int] = Counter()

    def execute(self, window: TupleWindow) -> None:
        """Counts."""
        self.entered.update(tup["key"] for tup in window.new)
        self.left.update(tup["key"] for tup in window.expired)


def build(
    load: Load,
    folder: Path,
    messages: Messages | None = None,
    sink: Sink | None = None,
    tables: Path | None = None,
    *,
    windows: bool = False,
    tasks: int = 2,
) -> Topology:
    """Returns the topology.

    Args:
        load: how much it processes.
        folder: where its ledger is.
        messages: the spout, where it is to do more.
        sink: the last bolt, likewise.
        tables: a folder in which bolts of each kind write what the sink gets; none for None.
        windows: whether there is a windowed bolt, which holds all tuples that are counted.
        tasks: of each bolt; the spout has two.
    """
    builder = TopologyBuilder()
    builder.set_spout("messages", messages or Messages(load, str(folder)), 2)
    builder.set_bolt("fan", Fan(), tasks).shuffle_grouping("messages")
    builder.set_bolt("count", Count(load), tasks).fields_grouping("fan", Fields("key"), stream="counts")
    builder.set_bolt("join", Join(), tasks).fields_grouping("fan", Fields("pair"), stream="pairs")
    builder.set_bolt("sink", sink or Sink(str(folder)), tasks).fields_grouping("join", Fields("number"))
    if tables is not None:
        sinks.add(builder, "join", tables)
    if windows:
        half_second = Windows().with_window(Duration(1000), Duration(500))
        builder.set_bolt("windows", half_second, tasks).fields_grouping("fan", Fields("key"), stream="counts")
    return builder.create_topology()
