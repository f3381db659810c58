"""Storm's RollingTopWords: which words were the most frequent in the last seconds?

What to look for: tick tuples, by which bolts notice that time has passed; a sliding window, written by hand as in
storm-starter; ranking in two steps, partial ones in parallel and a total one by global grouping. The state of all of
it (slots, rankings) is plain attributes.

    storm-spark run jobs/rolling_top_words.py --seconds 30
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from exclamation import Show, WordSpout

from storm_on_spark import (
    BaseTickTupleAwareRichBolt,
    Config,
    Fields,
    OutputCollector,
    OutputFieldsDeclarer,
    Topology,
    TopologyBuilder,
    TopologyContext,
    Tuple,
)

WINDOW_SECS = "rolling.window.secs"
"""Configuration key: how far back the window reaches."""

EMIT_SECS = "rolling.emit.secs"
"""Configuration key: how often counts and rankings are emitted; divides the window."""

TOP = "rolling.top"
"""Configuration key: how many words are ranked."""

WORDS = "rolling.words"
"""Configuration key: how many words are emitted."""

# Words come without a pause, so this many last for some seconds; the number of pending ones is bounded instead.
conf = {WINDOW_SECS: 9, EMIT_SECS: 3, TOP: 3, WORDS: 1_000_000, Config.TOPOLOGY_MAX_SPOUT_PENDING: 2000}

Ranking = tuple[tuple[str, int], ...]
"""Words with their counts, the most frequent first."""


class SlidingWindowCounter:
    """Counts per key over the last slots; `advance` moves the time.

    Args:
        slots: how many slots the window has.

    Example:
        >>> counter = SlidingWindowCounter(2)
        >>> counter.add("a")
        >>> counter.advance(), counter.advance(), counter.advance()
        ({'a': 1}, {'a': 1}, {})
    """

    def __init__(self, slots: int) -> None:
        #: The counts of each slot by key, the current one last.
        self.slots: list[dict[str, int]] = [{} for _ in range(slots)]

    def add(self, key: str) -> None:
        """Counts `key` in the current slot."""
        current = self.slots[-1]
        current[key] = current.get(key, 0) + 1

    def advance(self) -> dict[str, int]:
        """Returns the counts over the window, and begins a new slot in place of the oldest one."""
        totals: dict[str, int] = {}
        for slot in self.slots:
            for key, count in slot.items():
                totals[key] = totals.get(key, 0) + count
        self.slots = [*self.slots[1:], {}]
        return totals


class RollingCount(BaseTickTupleAwareRichBolt):
    """Counts words over a sliding window, and emits the counts at every tick.

    Args:
        window_secs: how far back the window reaches.
        emit_secs: how often counts are emitted; as long is a slot.
    """

    def __init__(self, window_secs: int, emit_secs: int) -> None:
        self._window_secs = window_secs
        self._emit_secs = emit_secs

    def prepare(self, conf: Mapping[str, Any], context: TopologyContext, collector: OutputCollector) -> None:
        self._collector = collector
        self.counter = SlidingWindowCounter(max(1, self._window_secs // self._emit_secs))
        #: The words emitted last, so that a word which has left the window is reported once with 0.
        self.known: set[str] = set()

    def process(self, tup: Tuple) -> None:
        """Counts a word."""
        self.counter.add(tup["word"])
        self._collector.ack(tup)

    def on_tick_tuple(self, tup: Tuple) -> None:
        """Emits all counts, unanchored: the tuples behind them are already acked."""
        counts = self.counter.advance()
        for word in sorted(self.known | counts.keys()):
            self._collector.emit([word, counts.get(word, 0)])
        self.known = set(counts)

    def get_component_configuration(self) -> Mapping[str, Any]:
        return {Config.TOPOLOGY_TICK_TUPLE_FREQ_SECS: self._emit_secs}

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        declarer.declare(Fields("word", "count"))


class Rank(BaseTickTupleAwareRichBolt):
    """Emits the most frequent of its words, at every tick at which they have changed.

    Args:
        top: how many words.
        emit_secs: how often.
    """

    def __init__(self, top: int, emit_secs: int) -> None:
        self._top = top
        self._emit_secs = emit_secs

    def prepare(self, conf: Mapping[str, Any], context: TopologyContext, collector: OutputCollector) -> None:
        self._collector = collector
        #: The words that are in the window.
        self.counts: dict[str, int] = {}
        self.emitted: Ranking = ()

    def process(self, tup: Tuple) -> None:
        """Takes in a count."""
        if tup["count"]:
            self.counts[tup["word"]] = tup["count"]
        else:
            self.counts.pop(tup["word"], None)
        self._collector.ack(tup)

    def on_tick_tuple(self, tup: Tuple) -> None:
        """Emits the ranking; words with equal counts are in alphabetical order."""
        ordered = sorted(self.counts.items(), key=lambda item: (-item[1], item[0]))
        ranking = tuple(ordered[: self._top])
        if ranking != self.emitted:
            self._collector.emit([ranking])
            self.emitted = ranking

    def get_component_configuration(self) -> Mapping[str, Any]:
        return {Config.TOPOLOGY_TICK_TUPLE_FREQ_SECS: self._emit_secs}

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        declarer.declare(Fields("ranking"))


class TotalRank(Rank):
    """Merges the rankings of several `Rank` tasks: each has its own words, so the best of all are among theirs."""

    def prepare(self, conf: Mapping[str, Any], context: TopologyContext, collector: OutputCollector) -> None:
        super().prepare(conf, context, collector)
        #: The last ranking of each task.
        self.partial: dict[int, Ranking] = {}

    def process(self, tup: Tuple) -> None:
        """Takes in a ranking, which replaces the last one of the same task."""
        self.partial[tup.source_task] = tup["ranking"]
        self.counts = {word: count for ranking in self.partial.values() for word, count in ranking}
        self._collector.ack(tup)


def build(conf: Mapping[str, Any]) -> Topology:
    """Returns the topology."""
    window, emit, top = conf.get(WINDOW_SECS, 9), conf.get(EMIT_SECS, 3), conf.get(TOP, 3)
    builder = TopologyBuilder()
    builder.set_spout("words", WordSpout(conf.get(WORDS, 1_000_000)))
    builder.set_bolt("counter", RollingCount(window, emit), 2).fields_grouping("words", Fields("word"))
    builder.set_bolt("intermediate", Rank(top, emit), 2).fields_grouping("counter", Fields("word"))
    builder.set_bolt("total", TotalRank(top, emit)).global_grouping("intermediate")
    builder.set_bolt("show", Show()).shuffle_grouping("total")
    return builder.create_topology()


if __name__ == "__main__":
    from storm_on_spark.spark.main import run_main

    run_main(build, conf)
