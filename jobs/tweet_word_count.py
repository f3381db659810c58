"""The tweet word count of Storm's paper: tweets, parsed, counted by word; counters are emitted and then cleared.

The input has one tweet per line, a JSON object with a `text`: `-c word.count.input=FILE` names it.
Without it, 1000 tweets are generated.

What to look for: a tumbling window by tick tuples, whose counters are empty after every emission. A batch job,
`by_plain_spark`, counts the same tweets, to be compared with `streamed`.

    storm-spark run jobs/tweet_word_count.py --conf conf/tweet_word_count.yaml --checkpoint state/tweets
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from word_count import SentenceSpout, checked_input

from storm_on_spark import (
    BaseBasicBolt,
    BaseRichSpout,
    BaseTickTupleAwareRichBolt,
    BasicOutputCollector,
    Config,
    ConfigError,
    Fields,
    OutputCollector,
    OutputFieldsDeclarer,
    SpoutOutputCollector,
    Topology,
    TopologyBuilder,
    TopologyContext,
    Tuple,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

EMIT_SECS = "tweets.emit.secs"
"""Configuration key: after how many seconds counters are emitted and cleared."""

conf = {EMIT_SECS: 300}


def words_of(line: str) -> list[str]:
    """Returns the words of a tweet; none if the line is not a tweet.

    Example:
        >>> words_of('{"text": "to be or"}'), words_of("no tweet")
        (['to', 'be', 'or'], [])
    """
    try:
        tweet = json.loads(line)
    except (ValueError, RecursionError):
        return []
    text = tweet.get("text") if isinstance(tweet, dict) else None
    return text.split() if isinstance(text, str) else []


class GeneratedTweets(BaseRichSpout):
    """Emits 1000 tweets, and emits failed ones again."""

    def open(self, conf: Mapping[str, Any], context: TopologyContext, collector: SpoutOutputCollector) -> None:
        self._collector = collector
        self.waiting = list(reversed(range(1000)))

    def next_tuple(self) -> None:
        if self.waiting:
            number = self.waiting.pop()
            self._collector.emit([json.dumps({"text": f"storm on spark {number % 7}"})], message_id=number)

    def fail(self, message_id: int) -> None:
        self.waiting.append(message_id)

    def exhausted(self) -> bool:
        return not self.waiting

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        declarer.declare(Fields("sentence"))


class ParseTweet(BaseBasicBolt):
    """Emits the words of a tweet."""

    def execute(self, tup: Tuple, collector: BasicOutputCollector) -> None:
        for word in words_of(tup["sentence"]):
            collector.emit([word])

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        declarer.declare(Fields("word"))


class WindowCount(BaseTickTupleAwareRichBolt):
    """Counts words, emits the counts at every tick, and then clears them.

    Args:
        emit_secs: seconds from one emission to the next.
    """

    def __init__(self, emit_secs: int) -> None:
        self._emit_secs = emit_secs

    def prepare(self, conf: Mapping[str, Any], context: TopologyContext, collector: OutputCollector) -> None:
        self._collector = collector
        self.counts: Counter[str] = Counter()

    def process(self, tup: Tuple) -> None:
        """Counts a word."""
        self.counts[tup["word"]] += 1
        self._collector.ack(tup)

    def on_tick_tuple(self, tup: Tuple) -> None:
        """Emits all counts and clears them."""
        for word, count in sorted(self.counts.items()):
            self._collector.emit([word, count])
        self.counts.clear()

    def get_component_configuration(self) -> Mapping[str, Any]:
        return {Config.TOPOLOGY_TICK_TUPLE_FREQ_SECS: self._emit_secs}

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        declarer.declare(Fields("word", "count"))


class Totals(BaseBasicBolt):
    """Adds up the counts of all windows."""

    def prepare(self, conf: Mapping[str, Any], context: TopologyContext) -> None:
        self.counts: Counter[str] = Counter()

    def execute(self, tup: Tuple, collector: BasicOutputCollector) -> None:
        self.counts[tup["word"]] += tup["count"]


def build(conf: Mapping[str, Any]) -> Topology:
    """Returns the topology.

    Raises:
        ConfigError: the input can't be read, or the seconds are not a whole number of at least 1.
    """
    seconds = conf.get(EMIT_SECS, 300)
    if type(seconds) is not int or seconds < 1:
        raise ConfigError(f"{EMIT_SECS} must be an int of at least 1, not {seconds!r:.80}", key=EMIT_SECS)
    path = checked_input(conf)
    spout = GeneratedTweets() if path is None else SentenceSpout(path)
    builder = TopologyBuilder()
    builder.set_spout("tweets", spout)
    builder.set_bolt("parse", ParseTweet(), 2).shuffle_grouping("tweets")
    builder.set_bolt("count", WindowCount(seconds), 2).fields_grouping("parse", Fields("word"))
    builder.set_bolt("totals", Totals()).fields_grouping("count", Fields("word"))
    return builder.create_topology()


def streamed(spark: SparkSession, checkpoint: str) -> Counter[str]:
    """Returns the counts of all windows, and of the last one, which had not ended."""
    from storm_on_spark.spark.state import read_bolt_state

    found: Counter[str] = Counter()
    for component in ("count", "totals"):
        for state in read_bolt_state(spark, checkpoint, component).values():
            found.update(state["counts"])
    return found


def by_plain_spark(spark: SparkSession, path: str) -> Counter[str]:
    """Returns how often each word is in the tweets of a file or folder, counted by a batch job."""
    from pyspark.sql import functions

    text = functions.get_json_object("value", "$.text")
    lines = spark.read.option("recursiveFileLookup", "true").text(path)
    words = lines.select(functions.explode(functions.split(text, r"\s+")).alias("word")).where("word != ''")
    return Counter({row["word"]: row["count"] for row in words.groupBy("word").count().collect()})


if __name__ == "__main__":
    from storm_on_spark.spark.main import run_main

    run_main(build, conf)
