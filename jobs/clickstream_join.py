"""Clicks joined with their impressions: two topics of Kafka, a Delta table, and late data to a side stream.

Both topics have JSON objects, with a time in milliseconds: `{"id": "i7", "ad": "shoes", "at": 1000}` is an impression,
`{"id": "i7", "user": "ann", "at": 1500}` a click on it. A click is joined with its impression if it comes at most
`clickstream.join.window.ms` after it, whichever of them is read first.

Time is event time, as in Storm's windows: a task's watermark is the newest time of the slower stream, minus
`clickstream.join.lateness.ms`. Events older than the watermark go to the stream `late`, and so does a click whose
impression did not come in time; they are written to a separate table. Impressions that no click can match any more are
removed, so the state stays small. A batch job, `by_plain_spark`, joins the whole topics.

    storm-spark dev-kafka --load impressions=jobs/data/impressions.jsonl --load clicks=jobs/data/clicks.jsonl
    storm-spark run jobs/clickstream_join.py --conf conf/clickstream_join.yaml --checkpoint state/clickstream-join
"""

from __future__ import annotations

import heapq
import json
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from kafka_word_count import lenient_text, text_of

from storm_on_spark import (
    BaseBasicBolt,
    BasicOutputCollector,
    ConfigError,
    Fields,
    OutputFieldsDeclarer,
    Topology,
    TopologyBuilder,
    TopologyContext,
    Tuple,
)
from storm_on_spark.connectors.delta import DeltaBolt
from storm_on_spark.connectors.kafka import (
    ByTopicRecordTranslator,
    KafkaRecord,
    KafkaSpout,
    KafkaSpoutConfig,
    SimpleRecordTranslator,
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SERVERS = "clickstream.join.servers"
"""Configuration key: Kafka's servers."""

IMPRESSIONS = "clickstream.join.impressions"
"""Configuration key: the topic of impressions."""

CLICKS = "clickstream.join.clicks"
"""Configuration key: the topic of clicks."""

FOLDER = "clickstream.join.folder"
"""Configuration key: the folder of the Delta tables `joined` and `late`."""

WINDOW_MS = "clickstream.join.window.ms"
"""Configuration key: how long after its impression a click counts."""

LATENESS_MS = "clickstream.join.lateness.ms"
"""Configuration key: how much older than the newest an event may be."""

GROUP = "clickstream-join"
LATE = "late"
DEFAULTS: Mapping[str, str] = {
    SERVERS: "127.0.0.1:9092",
    IMPRESSIONS: "impressions",
    CLICKS: "clicks",
    FOLDER: "clickstream_join",
}
WINDOW_DEFAULT_MS = 60_000
LATENESS_DEFAULT_MS = 10_000

conf = {**DEFAULTS, WINDOW_MS: WINDOW_DEFAULT_MS, LATENESS_MS: LATENESS_DEFAULT_MS}

_MOST_TIME = 1 << 53


class Event(NamedTuple):
    """An impression or a click."""

    id: str
    """Of the impression."""
    what: str
    """The ad, or the user."""
    at: int
    """Milliseconds since the epoch."""


def event_of(line: str, what: str) -> Event | None:
    """Returns an event; None if the line is not one.

    Example:
        >>> event_of('{"id": "i7", "user": "ann", "at": 1500}', "user")
        Event(id='i7', what='ann', at=1500)
        >>> event_of('{"id": "i7", "at": "now"}', "user"), event_of("no click", "user")
        (None, None)
    """
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        return None
    if not isinstance(found, dict):
        return None
    event = Event(found.get("id"), found.get(what), found.get("at"))  # type: ignore[arg-type]
    fits = isinstance(event.id, str) and isinstance(event.what, str) and type(event.at) is int
    return event if fits and 0 <= event.at < _MOST_TIME else None


def tuple_of(what: str, record: KafkaRecord) -> list[Any] | None:
    """Returns the tuple of a record; None if it is not an event."""
    event = None if record.value is None else event_of(record.value, what)
    return None if event is None else list(event)


class Join(BaseBasicBolt):
    """Joins the events of one key; late events go to the stream `late`.

    Args:
        window_ms: how long after its impression a click counts.
        lateness_ms: how much older than the newest an event may be.
    """

    def __init__(self, window_ms: int, lateness_ms: int) -> None:
        self._window_ms, self._lateness_ms = window_ms, lateness_ms

    def prepare(self, conf: Mapping[str, Any], context: TopologyContext) -> None:
        #: The newest time of each stream.
        self.newest = {"impressions": 0, "clicks": 0}
        self.impressions: dict[str, Event] = {}
        #: Those whose impression has not come, by its id.
        self.waiting: dict[str, list[Event]] = {}
        #: When the entry of an id expires, and the id; a heap.
        self.ends: list[tuple[int, str]] = []

    @property
    def watermark(self) -> int:
        """The watermark: older events are late."""
        return min(self.newest.values()) - self._lateness_ms

    def execute(self, tup: Tuple, collector: BasicOutputCollector) -> None:
        event, stream = Event(*tup.values), tup.source_stream
        if event.at < self.watermark:
            collector.emit([stream, *event, "late"], stream=LATE)
            return
        if stream == "impressions":
            self._impression(event, collector)
        else:
            self._click(event, collector)
        self.newest[stream] = max(self.newest[stream], event.at)
        self._forget(collector)

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        declarer.declare(Fields("id", "ad", "user", "shown_at", "clicked_at"))
        declarer.declare_stream(LATE, Fields("stream", "id", "what", "at", "reason"))

    def _impression(self, event: Event, collector: BasicOutputCollector) -> None:
        # Only the first event of an id counts, however often a producer has sent it.
        if event.id in self.impressions:
            return
        self.impressions[event.id] = event
        heapq.heappush(self.ends, (event.at + self._window_ms, event.id))
        for click in self.waiting.pop(event.id, ()):
            self._match(event, click, collector)

    def _click(self, event: Event, collector: BasicOutputCollector) -> None:
        impression = self.impressions.get(event.id)
        if impression is None:
            self.waiting.setdefault(event.id, []).append(event)
            heapq.heappush(self.ends, (event.at, event.id))
        else:
            self._match(impression, event, collector)

    def _match(self, impression: Event, click: Event, collector: BasicOutputCollector) -> None:
        if impression.at <= click.at <= impression.at + self._window_ms:
            collector.emit([impression.id, impression.what, click.what, impression.at, click.at])
        else:
            collector.emit(["clicks", *click, "outside the window"], stream=LATE)

    def _forget(self, collector: BasicOutputCollector) -> None:
        """Removes entries that can't be joined any more."""
        while self.ends and self.ends[0][0] < self.watermark:
            end, name = heapq.heappop(self.ends)
            impression = self.impressions.get(name)
            if impression is not None and impression.at + self._window_ms <= end:
                del self.impressions[name]
            waiting = self.waiting.pop(name, [])
            if left := [click for click in waiting if click.at > end]:
                self.waiting[name] = left
            for click in waiting:
                if click.at <= end:
                    collector.emit(["clicks", *click, "no impression"], stream=LATE)


def build(conf: Mapping[str, Any]) -> Topology:
    """Returns the topology.

    Raises:
        ConfigError: a setting is invalid.
    """
    servers, impressions, clicks, folder = (text_of(conf, key, default) for key, default in DEFAULTS.items())
    window_ms, lateness_ms = _milliseconds(conf, WINDOW_MS), _milliseconds(conf, LATENESS_MS)
    fields = Fields("id", "what", "at")
    by_topic = ByTopicRecordTranslator(SimpleRecordTranslator(partial(tuple_of, "ad"), fields, "impressions"))
    by_topic.for_topic(clicks, SimpleRecordTranslator(partial(tuple_of, "user"), fields, "clicks"))
    events = (
        KafkaSpoutConfig.builder(servers, impressions, clicks)
        .set_group_id(GROUP)
        .set_value_deserializer(lenient_text)
        .set_record_translator(by_topic)
        .build()
    )
    base = Path(folder).absolute()
    joined = {"id": "string", "ad": "string", "user": "string", "shown_at": "long", "clicked_at": "long"}
    late = {"stream": "string", "id": "string", "what": "string", "at": "long", "reason": "string"}
    builder = TopologyBuilder()
    builder.set_spout("events", KafkaSpout(events))
    join = builder.set_bolt("join", Join(window_ms, lateness_ms), 2)
    join.fields_grouping("events", Fields("id"), "impressions").fields_grouping("events", Fields("id"), "clicks")
    builder.set_bolt("joined", DeltaBolt(base / "joined", joined), 2).local_or_shuffle_grouping("join")
    builder.set_bolt("late", DeltaBolt(base / "late", late)).shuffle_grouping("join", LATE)
    return builder.create_topology()


def by_plain_spark(spark: SparkSession, conf: Mapping[str, Any]) -> DataFrame:
    """Returns the whole topics joined by a batch job, for which nothing is late."""
    from pyspark.sql import functions as sf

    def events(topic: str, what: str) -> DataFrame:
        reader = spark.read.format("kafka").option("kafka.bootstrap.servers", conf[SERVERS])
        text = sf.col("value").cast("string")
        event = sf.from_json(text, f"id string, {what} string, at long").alias("event")
        rows = reader.option("subscribe", topic).load().select(event)
        return rows.where(f"event.id IS NOT NULL AND event.{what} IS NOT NULL AND event.at IS NOT NULL")

    shown = events(conf[IMPRESSIONS], "ad").selectExpr("event.id", "event.ad", "event.at shown_at")
    clicked = events(conf[CLICKS], "user").selectExpr("event.id", "event.user", "event.at clicked_at")
    within = f"clicked_at BETWEEN shown_at AND shown_at + {conf[WINDOW_MS]}"
    return shown.join(clicked, "id").where(within).select("id", "ad", "user", "shown_at", "clicked_at")


def _milliseconds(conf: Mapping[str, Any], key: str) -> int:
    value = conf.get(key, WINDOW_DEFAULT_MS if key == WINDOW_MS else LATENESS_DEFAULT_MS)
    if type(value) is not int or not 0 <= value < _MOST_TIME:
        raise ConfigError(f"{key} must be a whole number of milliseconds, not {value!r:.80}", key=key)
    return value


if __name__ == "__main__":
    from storm_on_spark.spark.main import run_main

    run_main(build, conf)
