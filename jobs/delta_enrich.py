"""Clicks, enriched from a Delta table of users, appended to another Delta table: each click once.

`-c delta.enrich.clicks=FILE` names the clicks: one JSON object a line, with a `user` and a `page`. Without it, 1000 are
made. The folder `delta.enrich.folder` has both tables; a table `users` is made there if there is none.

What to look for: a stream joined with a table that may change meanwhile (`EnrichBolt`), and a sink that writes
each click once, also when the driver is killed (`DeltaBolt`). A batch job, `by_plain_spark`, joins the same.

    storm-spark run jobs/delta_enrich.py --conf conf/delta_enrich.yaml --checkpoint state/delta-enrich
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from word_count import SentenceSpout, checked_input

from storm_on_spark import (
    BaseBasicBolt,
    BaseRichSpout,
    BasicOutputCollector,
    ConfigError,
    Fields,
    OutputFieldsDeclarer,
    SpoutOutputCollector,
    Topology,
    TopologyBuilder,
    TopologyContext,
    Tuple,
)
from storm_on_spark.connectors.delta import DeltaBolt, EnrichBolt

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

FOLDER = "delta.enrich.folder"
"""Configuration key: the folder of the Delta tables `users` and `clicks`."""

CLICKS = "delta.enrich.clicks"
"""Configuration key: the file of clicks."""

REFRESH_SECS = "delta.enrich.refresh.secs"
"""Configuration key: how often the job looks for a new version of `users`."""

conf = {FOLDER: "delta_enrich", REFRESH_SECS: 60}

COUNTRIES = ("FR", "DE", "PT", None)
"""Of the users that are made: user 0, 1, 2 and 3."""


def click_of(line: str) -> tuple[int, str] | None:
    """Returns user and page of a click; None if the line is not one.

    Example:
        >>> click_of('{"user": 1, "page": "/"}'), click_of('{"user": "me"}'), click_of("no click")
        ((1, '/'), None, None)
    """
    try:
        click = json.loads(line)
    except (ValueError, RecursionError):
        return None
    if not isinstance(click, dict):
        return None
    user, page = click.get("user"), click.get("page")
    fits = type(user) is int and -(2**63) <= user < 2**63 and isinstance(page, str)
    return (user, page) if fits else None


class GeneratedClicks(BaseRichSpout):
    """Emits 1000 clicks, one in five of a user who is not in `users`, and emits failed ones again."""

    def open(self, conf: Mapping[str, Any], context: TopologyContext, collector: SpoutOutputCollector) -> None:
        self._collector = collector
        self.waiting = list(reversed(range(1000)))

    def next_tuple(self) -> None:
        if self.waiting:
            number = self.waiting.pop()
            line = json.dumps({"user": number % 5, "page": f"/{number % 7}"})
            self._collector.emit([line], message_id=number)

    def fail(self, message_id: int) -> None:
        self.waiting.append(message_id)

    def exhausted(self) -> bool:
        return not self.waiting

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        declarer.declare(Fields("sentence"))


class ParseClick(BaseBasicBolt):
    """Emits user and page of a click; drops other lines."""

    def execute(self, tup: Tuple, collector: BasicOutputCollector) -> None:
        click = click_of(tup["sentence"])
        if click is not None:
            collector.emit(list(click))

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        declarer.declare(Fields("user", "page"))


def make_users(folder: Path) -> None:
    """Makes the table of users, unless it exists."""
    import pyarrow as pa
    from deltalake import DeltaTable, write_deltalake

    place = str(folder / "users")
    if not DeltaTable.is_deltatable(place):
        ids = pa.array(range(len(COUNTRIES)), pa.int64())
        write_deltalake(place, pa.table({"id": ids, "country": pa.array(COUNTRIES, pa.string())}))


def build(conf: Mapping[str, Any]) -> Topology:
    """Returns the topology.

    Raises:
        ConfigError: the clicks can't be read, or a setting is invalid.
    """
    folder = conf.get(FOLDER, "delta_enrich")
    if not isinstance(folder, str) or not folder or "\0" in folder:
        raise ConfigError(f"{FOLDER} must be the path of a folder, not {folder!r:.80}", key=FOLDER)
    base = Path(folder).absolute()
    make_users(base)
    path = checked_input(conf, CLICKS)
    users = EnrichBolt(
        base / "users",
        on={"user": "id"},
        add=["country"],
        fields=["user", "page"],
        refresh_secs=conf.get(REFRESH_SECS, 60),
    )
    columns = {"user": "long", "page": "string", "country": "string"}
    builder = TopologyBuilder()
    builder.set_spout("clicks", GeneratedClicks() if path is None else SentenceSpout(path))
    builder.set_bolt("parse", ParseClick(), 2).shuffle_grouping("clicks")
    builder.set_bolt("enrich", users, 2).local_or_shuffle_grouping("parse")
    builder.set_bolt("table", DeltaBolt(base / "clicks", columns), 2).local_or_shuffle_grouping("enrich")
    return builder.create_topology()


def by_plain_spark(spark: SparkSession, path: str, users: DataFrame) -> DataFrame:
    """Returns the clicks of a file joined with users by a batch job."""
    clicks = spark.read.schema("user long, page string").json(path).where("user IS NOT NULL AND page IS NOT NULL")
    joined = clicks.join(users, clicks["user"] == users["id"], "left")
    return joined.select("user", "page", "country")


if __name__ == "__main__":
    from storm_on_spark.spark.main import run_main

    run_main(build, conf)
