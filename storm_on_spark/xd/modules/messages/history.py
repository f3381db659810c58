"""The history of a message: which modules it has passed, in the header `xdHistory` as in Spring XD."""

from __future__ import annotations

import time
from collections.abc import Mapping
from datetime import datetime, timezone
from typing import Any, Final

from storm_on_spark.api.component import BaseBasicBolt
from storm_on_spark.api.streams.declarer import OutputFieldsDeclarer
from storm_on_spark.api.streams.fields import Fields
from storm_on_spark.api.task.collector import BasicOutputCollector
from storm_on_spark.api.task.context import TopologyContext
from storm_on_spark.api.tuple import Tuple
from storm_on_spark.xd.modules.messages.message import FIELDS

HISTORY: Final = "xdHistory"
"""The header: a list of maps, the first module first."""


def tracked(headers: Mapping[str, Any], module: str, container: str, now: float) -> dict[str, Any]:
    """Returns headers with one more entry of the history.

    Args:
        headers: of the message.
        module: the instance that emits it, such as `ticktock.source.time.1`.
        container: where the instance runs.
        now: seconds since 1970.

    Example:
        >>> tracked({}, "ticktock.source.time.1", "c1", 0.0)["xdHistory"]
        [{'module': 'ticktock.source.time.1', 'container': 'c1', 'timestamp': '1970-01-01T00:00:00.000+00:00'}]
    """
    known = headers.get(HISTORY)
    timestamp = datetime.fromtimestamp(now, timezone.utc).isoformat(timespec="milliseconds")
    entry = {"module": module, "container": container, "timestamp": timestamp}
    # If the header has another form, it comes from outside.
    return {**headers, HISTORY: [*(known if isinstance(known, list) else ()), entry]}


class History(BaseBasicBolt):
    """Follows a module of a topology, and adds an entry to the history of each message.

    Args:
        module: name of the module's instances without their number, such as `ticktock.source.time`.
        container: where the topology runs.
    """

    stateless = True

    def __init__(self, module: str, container: str) -> None:
        self.module = module
        self.container = container

    def prepare(self, conf: Mapping[str, Any], context: TopologyContext) -> None:
        """Keeps the context."""
        self._context = context

    def execute(self, tup: Tuple, collector: BasicOutputCollector) -> None:
        """Adds an entry."""
        sequence = self._context.get_component_tasks(tup.source_component).index(tup.source_task) + 1
        headers = tracked(tup["headers"], f"{self.module}.{sequence}", self.container, time.time())
        collector.emit([tup["payload"], headers])

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        """Declares payload and headers."""
        declarer.declare(Fields(*FIELDS))
