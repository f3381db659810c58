"""A topology with windows and joins of all kinds, random events for it, and what they must give."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from typing import Any, NamedTuple

from storm_on_spark import (
    BaseBasicBolt,
    BaseRichBolt,
    BaseWindowedBolt,
    Count,
    Duration,
    Fields,
    IntervalJoinBolt,
    Topology,
    TopologyBuilder,
)
from storm_on_spark.testing import ListSpout
from storm_on_spark.windowing import BatchWindowedBolt, CountOf, SumOf

LAG, KEYS = 60, 3
END = 1_000_000
"""The time of tuples that move on the watermark when all events have been."""
BEFORE, AFTER = 30, 50
SOURCES = ("a", "b")
FIELDS = ["number", "key", "time"]


class Event(NamedTuple):
    """A tuple of a source. Times end with 5 and slides with 0, so nothing comes on the edge of a window."""

    source: str
    number: int
    key: int
    time: int


class Shape(NamedTuple):
    """What differs from one topology to another."""

    length: int
    slide: int
    arrival: tuple[Any, Any]
    idle: int | None
    fused: bool


class Pass(BaseBasicBolt):
    """Fused with its spout."""

    stateless = True

    def execute(self, tup, collector):
        collector.emit(list(tup))

    def declare_output_fields(self, declarer):
        declarer.declare(Fields(FIELDS))


class PassOn(Pass):
    """In a stage of its own."""

    stateless = False


class Windows(BaseWindowedBolt):
    """Emits what windows hold."""

    def prepare(self, conf, context, collector):
        self.collector = collector

    def execute(self, window):
        parts = ([tup["number"] for tup in part] for part in (window, window.new, window.expired))
        self.collector.emit([window.end, *parts])

    def declare_output_fields(self, declarer):
        declarer.declare(Fields("end", "all", "new", "expired"))


class Sums(Windows):
    """Emits the results of windows."""

    def execute(self, window):
        for key, results in window:
            self.collector.emit([window.end, key, results["count"], results["sum"]])

    def declare_output_fields(self, declarer):
        declarer.declare(Fields("end", "key", "count", "sum"))


class Tables(BatchWindowedBolt):
    """Emits the rows of windows, with the end of each."""

    def execute_window(self, window, collector):
        table = window.table.select(["number"])
        collector.emit(table.append_column("end", [[window.end] * table.num_rows]))

    def declare_output_fields(self, declarer):
        declarer.declare(Fields("number", "end"))


class Gather(BaseRichBolt):
    """Keeps all that comes, by component and stream."""

    def prepare(self, conf, context, collector):
        self.collector, self.gathered = collector, []

    def execute(self, tup):
        values = [tuple(value) if hasattr(value, "source_component") else value for value in tup]
        self.gathered.append((tup.source_component, tup.source_stream, values))
        self.collector.ack(tup)


def source(events: Iterable[Event], name: str, first: int) -> ListSpout:
    """The events of a source, and tuples that nobody waits for: they push all others out of their windows."""
    mine = [list(event[1:]) for event in events if event.source == name]
    ahead = [[first + at, at % KEYS, END + 5] for at in range(8 * KEYS)]
    return ListSpout([*mine, *ahead], FIELDS, message_ids=lambda at: at if at < len(mine) else None)


def topology(events: list[Event], shape: Shape) -> Topology:
    builder = TopologyBuilder()
    for name in SOURCES:
        builder.set_spout(name, source(events, name, len(events)))
        builder.set_bolt(f"pass-{name}", Pass() if shape.fused else PassOn()).shuffle_grouping(name)
    length, slide = Duration(shape.length), Duration(shape.slide)

    def by_time(bolt: Any) -> Any:
        bolt = bolt.with_window(length, slide).with_timestamp_field("time").with_lag(Duration(LAG))
        bolt = bolt.with_watermark_interval(Duration(700))
        return bolt.with_idle_timeout(Duration(shape.idle)) if shape.idle else bolt

    aggregates = {"count": CountOf(), "sum": SumOf("number")}
    join = IntervalJoinBolt("pass-a", "key").full_join("pass-b", "key", before=Duration(BEFORE), after=Duration(AFTER))
    join.with_timestamp_field("time").with_lag(Duration(LAG)).with_late_tuple_stream("late")
    join.select("pass-a:number, pass-b:number")
    if shape.idle:
        join.with_idle_timeout(Duration(shape.idle))
    bolts = {
        "windows": by_time(Windows()).with_late_tuple_stream("late"),
        "sums": by_time(Sums()).with_late_tuple_stream("late").with_aggregate(by="key", **aggregates),
        "tables": by_time(Tables()),
        "join": join,
    }
    gather = builder.set_bolt("gather", Gather())
    for name, bolt in bolts.items():
        declared = builder.set_bolt(name, bolt, 2)
        for other in SOURCES:
            declared.fields_grouping(f"pass-{other}", "key")
        gather.global_grouping(name)
        if name != "tables":
            gather.global_grouping(name, "late")
    builder.set_bolt("arrival", Windows().with_window(*shape.arrival)).global_grouping("pass-a")
    gather.global_grouping("arrival")
    return builder.create_topology()


class Expected:
    """Checks what has come of the events; which of them were late depends on the moments, and windows say it.

    Args:
        events: all of them.
        shape: of the topology.
        gathered: by the bolt of that name.
    """

    def __init__(self, events: list[Event], shape: Shape, gathered: list[Any]) -> None:
        self.events, self.shape = events, shape
        self.found: defaultdict[tuple[str, str], list[Any]] = defaultdict(list)
        for component, stream, values in gathered:
            self.found[component, stream].append(values)

    def check(self) -> None:
        windows = self.windows(self.in_time("windows"))
        # Those of the two tasks, put together.
        shown: defaultdict[int, list[int]] = defaultdict(list)
        fresh: list[int] = []
        for end, numbers, new, _ in self.found["windows", "default"]:
            shown[end] += numbers
            fresh += new
        assert {end: sorted(numbers) for end, numbers in shown.items()} == windows
        assert sorted(fresh) == sorted(set().union(*windows.values())), "each is new once"
        self.check_sums()
        self.check_join()
        self.check_arrival()
        if self.never_late():
            rows = Counter((number, end) for number, end in self.found["tables", "default"])
            assert rows == Counter((number, end) for end, numbers in windows.items() for number in numbers)

    def never_late(self) -> bool:
        """Whether no event is further behind than the lag, and no source is left out of the watermark."""
        return self.shape.idle is None and all(not self.may_be_late(event) for event in self.events)

    def may_be_late(self, event: Event) -> bool:
        if self.shape.idle is not None:
            return True
        mine = [other for other in self.events if other.source == event.source]
        earlier = [other.time for other in mine[: mine.index(event)]]
        return max(earlier, default=0) - LAG > event.time

    def in_time(self, component: str) -> list[Event]:
        late = [values[0] for values in self.found[component, "late"]]
        numbers = [tup[0] for tup in late]
        assert len(set(numbers)) == len(numbers), "a late tuple came twice"
        by_number = {event.number: event for event in self.events}
        assert all(self.may_be_late(by_number[number]) for number in numbers if number in by_number)
        return [event for event in self.events if event.number not in numbers]

    def windows(self, events: list[Event]) -> dict[int, list[int]]:
        length, slide = self.shape.length, self.shape.slide
        found: defaultdict[int, list[int]] = defaultdict(list)
        for event in events:
            for end in range(event.time // slide * slide, event.time + length + slide, slide):
                if end - length < event.time <= end:
                    found[end].append(event.number)
        return {end: sorted(numbers) for end, numbers in found.items()}

    def check_sums(self) -> None:
        events = self.in_time("sums")
        keys = {event.number: event.key for event in events}
        expected: Counter[Any] = Counter()
        for end, numbers in self.windows(events).items():
            for key in {keys[number] for number in numbers}:
                mine = [number for number in numbers if keys[number] == key]
                expected[end, key, len(mine), sum(mine)] += 1
        assert Counter(map(tuple, self.found["sums", "default"])) == expected

    def check_join(self) -> None:
        events = self.in_time("join")
        sides = [[event for event in events if event.source == name] for name in SOURCES]
        pairs = [
            (a.number, b.number)
            for a in sides[0]
            for b in sides[1]
            if a.key == b.key and a.time - BEFORE <= b.time <= a.time + AFTER
        ]
        joined = [{pair[side] for pair in pairs} for side in (0, 1)]
        expected = Counter(pairs)
        expected.update((event.number, None) for event in sides[0] if event.number not in joined[0])
        expected.update((None, event.number) for event in sides[1] if event.number not in joined[1])
        count = len(self.events)
        # Without the tuples that move on the watermark.
        found = [
            tuple(pair) for pair in self.found["join", "default"] if all(one is None or one < count for one in pair)
        ]
        assert Counter(found) == expected

    def check_arrival(self) -> None:
        """Windows of the tuples of one source, as they come: each begins and ends no earlier than the one before."""
        order = [event.number for event in self.events if event.source == SOURCES[0]]
        order += range(len(self.events), len(self.events) + 8 * KEYS)
        place = {number: at for at, number in enumerate(order)}
        length, slide = self.shape.arrival
        windows = self.found["arrival", "default"]
        if isinstance(length, Count) and isinstance(slide, Count):
            ends = range(slide.value, len(order) + 1, slide.value)
            assert [window[1] for window in windows] == [order[max(0, end - length.value) : end] for end in ends]
        before: list[int] = []
        gone: list[int] = []
        for _, numbers, new, expired in windows:
            places = [place[number] for number in numbers]
            assert places == list(range(places[0], places[0] + len(places))), "neighbours"
            assert new == [number for number in numbers if number not in before]
            assert not set(numbers) & set(gone)
            before, gone = numbers, gone + expired
            if isinstance(length, Count):
                assert len(numbers) <= length.value
        times = Counter(number for window in windows for number in window[1])
        if all(isinstance(extent, Duration) for extent in (length, slide)) and not length.value % slide.value:
            assert {times[number] for number in order if number in gone} <= {length.value // slide.value}
        assert len(set(gone)) == len(gone), "a tuple has left twice"
