"""storm-starter's MultipleLoggerTopology: a bolt writes to several loggers, at several levels.

What to look for: loggers are Python's own; what a worker logs carries component and task.

    storm-spark run jobs/storm_starter/multiple_logger.py -c rows.count=3
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

from rows import DEFAULTS, PrinterBolt, RowSpout, word

from storm_on_spark import (
    BaseRichBolt,
    Fields,
    OutputCollector,
    OutputFieldsDeclarer,
    Topology,
    TopologyBuilder,
    TopologyContext,
    Tuple,
)

conf = dict(DEFAULTS)

LOGGERS = {
    "root": logging.getLogger(),
    "myapp": logging.getLogger("myapp"),
    "myapp.sub": logging.getLogger("myapp.sub"),
}
LEVELS = (logging.DEBUG, logging.INFO, logging.WARNING, logging.ERROR)


class ExclamationLoggingBolt(BaseRichBolt):
    """Adds exclamation marks, and logs that it does."""

    def prepare(self, conf: Mapping[str, Any], context: TopologyContext, collector: OutputCollector) -> None:
        self._collector = collector

    def execute(self, tup: Tuple) -> None:
        for name, logger in LOGGERS.items():
            for level in LEVELS:
                logger.log(level, "%s: this is a message of level %s", name, logging.getLevelName(level))
        self._collector.emit([tup["word"] + "!!!"], anchors=tup)
        self._collector.ack(tup)

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        declarer.declare(Fields("word"))


def build(conf: Mapping[str, Any]) -> Topology:
    """Returns the topology."""
    builder = TopologyBuilder()
    builder.set_spout("word", RowSpout(["word"], word), 2)
    builder.set_bolt("exclaim1", ExclamationLoggingBolt(), 3).shuffle_grouping("word")
    builder.set_bolt("exclaim2", ExclamationLoggingBolt(), 2).shuffle_grouping("exclaim1")
    builder.set_bolt("printer", PrinterBolt()).shuffle_grouping("exclaim2")
    return builder.create_topology()


if __name__ == "__main__":
    from storm_on_spark.spark.main import run_main

    run_main(build, conf)
