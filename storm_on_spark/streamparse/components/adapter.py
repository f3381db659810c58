"""A component of pystorm as a spout or bolt here.

The adapter makes an instance of the user's class in `prepare` or `open`, and its attributes are the adapter's state:
counters, buffers, the tuples that a `BatchingBolt` collects.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Final

from storm_on_spark.api.adapted import Adapted
from storm_on_spark.api.component import BaseRichBolt, BaseRichSpout
from storm_on_spark.api.config import Config
from storm_on_spark.api.streams.declarer import OutputFieldsDeclarer
from storm_on_spark.api.streams.fields import Fields
from storm_on_spark.api.streams.stream import StreamSpec
from storm_on_spark.api.task.collector import OutputCollector, SpoutOutputCollector
from storm_on_spark.api.task.context import TopologyContext
from storm_on_spark.api.tuple import Tuple
from storm_on_spark.streamparse import finder
from storm_on_spark.streamparse.components.bolt_bridge import BoltBridge
from storm_on_spark.streamparse.components.bridge import SpoutBridge, make_component
from storm_on_spark.streamparse.components.kinds import pystorm_bases, pystorm_class, unchanged

_LOGGING: Final = frozenset(
    ("debug", "info", "warning", "warn", "error", "exception", "critical", "log", "isEnabledFor")
)
_ATTRIBUTES: Final = {
    "logger": _LOGGING,
    **dict.fromkeys(("task_id", "component_name", "topology_name", "debug", "pid", "auto_ack", "auto_fail")),
}
"""What instances have from pystorm and methods may use without keeping anything."""


class _Adapter:
    """What both adapters have in common.

    Args:
        component_class: a class of the user, below one of pystorm's.
        streams: what it emits.
    """

    _bridge: Any = None

    def __init__(self, component_class: type, streams: Mapping[str, StreamSpec]) -> None:
        self.component_class = component_class
        self._streams = dict(streams)

    @property
    def adapted(self) -> Adapted:
        """The user's class, as the compiler reads it."""
        return Adapted(self.component_class, pystorm_bases(self.component_class), _ATTRIBUTES, self._kept)

    @property
    def _kept(self) -> str:
        """What pystorm keeps for the class between two tuples."""
        return ""

    @property
    def component(self) -> Any:
        """The instance of the user's class; there is none before `prepare` or `open`."""
        return self._bridge.component

    @property
    def state_holder(self) -> Any:
        """The object whose attributes are this component's state."""
        return None if self._bridge is None else self._bridge.component

    @property
    def state_services(self) -> Sequence[Any]:
        """The values of attributes that are not state."""
        return () if self._bridge is None else self._bridge.services

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        """Declares what `outputs` says."""
        for name, stream in self._streams.items():
            declarer.declare_stream(name, Fields(*stream.fields), direct=stream.direct)

    def __reduce__(self) -> tuple[Any, ...]:
        # `_made` first, and then the attributes: the user's module may import what only the finder finds.
        return _made, (type(self),), {"component_class": self.component_class, "_streams": self._streams}


def _made(adapter_class: Any) -> Any:
    finder.install()
    return adapter_class.__new__(adapter_class)


class PystormBolt(_Adapter, BaseRichBolt):
    """A bolt of pystorm."""

    def __init__(self, component_class: type, streams: Mapping[str, StreamSpec]) -> None:
        super().__init__(component_class, streams)
        declared = getattr(component_class, "stateless", None)
        self.stateless = declared if isinstance(declared, bool) else None  # type: ignore[misc]

    @property
    def _kept(self) -> str:
        if pystorm_class(self.component_class, "BatchingBolt") is not None:
            return "collects tuples in batches"
        # A property, or what an instance says, may change.
        return "" if getattr(self.component_class, "auto_ack", None) is True else "keeps tuples that wait for an ack"

    def __reduce__(self) -> tuple[Any, ...]:
        made, args, state = super().__reduce__()
        return made, args, {**state, "stateless": self.stateless}

    def get_component_configuration(self) -> Mapping[str, Any] | None:
        """Asks for the ticks that are the clock of a `TicklessBatchingBolt`."""
        if pystorm_class(self.component_class, "TicklessBatchingBolt") is None:
            return None
        seconds = getattr(self.component_class, "secs_between_batches", 2)
        return {Config.TOPOLOGY_TICK_TUPLE_FREQ_SECS: max(1, math.ceil(seconds))}

    def advice_at_start(self, conf: Mapping[str, Any]) -> str:
        """Returns what a configuration lacks for this bolt, as a sentence; "" if nothing is known to be missing."""
        kinds = [pystorm_class(self.component_class, name) for name in ("BatchingBolt", "TicklessBatchingBolt")]
        if kinds[0] is None or kinds[1] is not None or conf.get(Config.TOPOLOGY_TICK_TUPLE_FREQ_SECS):
            return ""
        if not unchanged(self.component_class, "process"):
            return ""  # it may process tuples without a tick
        return (
            f"{self.component_class.__name__} is a BatchingBolt, which processes what it has collected when it gets a "
            f"tick, and it gets none, so its tuples time out: set {Config.TOPOLOGY_TICK_TUPLE_FREQ_SECS} in its config."
        )

    def prepare(self, conf: Mapping[str, Any], context: TopologyContext, collector: OutputCollector) -> None:
        """Makes the instance and calls its `initialize`."""
        self._bridge = BoltBridge(make_component(self.component_class), conf, context, collector)
        # Each tuple without a call between.
        self.execute = self._bridge.execute  # type: ignore[method-assign]

    def execute(self, tup: Tuple) -> None:
        """Lets the bolt process one tuple; see `BoltBridge.execute`."""
        self._bridge.execute(tup)


class PystormSpout(_Adapter, BaseRichSpout):
    """A spout of pystorm."""

    def open(self, conf: Mapping[str, Any], context: TopologyContext, collector: SpoutOutputCollector) -> None:
        """Makes the instance and calls its `initialize`."""
        self._bridge = SpoutBridge(make_component(self.component_class), conf, context, collector)

    def next_tuple(self) -> None:
        """Lets the spout emit."""
        self._bridge.tell("next_tuple")

    def ack(self, message_id: Any) -> None:
        """Tells the spout."""
        self._bridge.tell("ack", message_id)

    def fail(self, message_id: Any) -> None:
        """Tells the spout."""
        self._bridge.tell("fail", message_id)

    def activate(self) -> None:
        """Tells the spout."""
        self._bridge.tell("activate")

    def deactivate(self) -> None:
        """Tells the spout."""
        self._bridge.tell("deactivate")

    def exhausted(self) -> bool:
        """Whether the spout says, by a method `exhausted` of its own, that it emits nothing new; pystorm has none."""
        own = getattr(self.component, "exhausted", None)
        return bool(own()) if callable(own) else False
