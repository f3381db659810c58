"""The surroundings of one component under test: a topology made of it and stand-ins, compiled as any other.

So a unit test has the same configuration, context, streams and error messages as a running component, without Spark.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping
from itertools import count
from typing import TYPE_CHECKING, Any

from storm_on_spark.api.building.builder import TopologyBuilder
from storm_on_spark.api.component import BaseBasicBolt, BaseComponent, BaseRichSpout, BatchSpout
from storm_on_spark.api.config import effective_conf, validate_conf
from storm_on_spark.api.streams.constants import is_system_id
from storm_on_spark.api.streams.declarer import OutputFieldsDeclarer
from storm_on_spark.api.streams.fields import Fields
from storm_on_spark.api.streams.grouping import DirectGrouping, ShuffleGrouping
from storm_on_spark.api.streams.stream import DEFAULT_STREAM, GlobalStreamId
from storm_on_spark.api.task.collector import BasicOutputCollector
from storm_on_spark.api.task.context import TopologyContext
from storm_on_spark.api.topology import ComponentKind, Topology
from storm_on_spark.api.tuple import Tuple
from storm_on_spark.plan.compile import compile_graph, place
from storm_on_spark.runtime.emit.output import TaskOutput
from storm_on_spark.runtime.processes.run_folder import run_folder
from storm_on_spark.runtime.run.hooks import hooks_for
from storm_on_spark.runtime.run.settings import HookSettings
from storm_on_spark.runtime.run.spec import RunSpec, make_spec
from storm_on_spark.runtime.run.wiring import Wiring
from storm_on_spark.runtime.tracking.lineage import Anchor

if TYPE_CHECKING:
    import pyarrow as pa

Sources = Mapping[GlobalStreamId, Fields]

_runs = count(1)


class Bench:
    """A component among stand-ins.

    Args:
        component: the spout or bolt under test.
        name: its component id.
        conf: configuration over the defaults.
        sources: the streams that a bolt receives; `source`, with one field `value`, for None.
        targets: the components that subscribe to all that it emits, with their numbers of tasks.
        tasks: how many tasks the component has.
        task_index: which of them is under test.

    Raises:
        InvalidTopologyError: it is not a component, or has an invalid declaration.
        ConfigError: a key or value of `conf` is invalid.
    """

    def __init__(
        self,
        component: BaseComponent,
        *,
        name: str = "component",
        conf: Mapping[str, Any] | None = None,
        sources: Sources | None = None,
        targets: Mapping[str, int] | None = None,
        tasks: int = 1,
        task_index: int = 0,
    ) -> None:
        validate_conf(conf or {}, "the test")
        self.name = name
        given = {GlobalStreamId("source"): Fields("value")} if sources is None else sources
        topology = _surround(component, name, tasks, given, targets or {})
        self._plan = place(compile_graph(topology, effective_conf(conf or {})), 1)
        self._wiring = Wiring(self._plan)
        self._lenient = not targets
        self.conf: Mapping[str, Any] = self._wiring.conf(name)
        #: The folder that the context gives for files of child processes.
        self.pid_dir = str(run_folder(f"test-{uuid.uuid4().hex}"))
        self.task = self._plan.components[name].tasks[task_index]

    @property
    def kind(self) -> ComponentKind:
        """The component's kind."""
        return self._plan.components[self.name].kind

    @property
    def stateless(self) -> bool:
        """Whether the compiler considers the component stateless, so that nothing of it is saved."""
        return self._plan.components[self.name].stateless

    @property
    def timers(self) -> tuple[tuple[str, int], ...]:
        """Names and periods (ms) of the component's timers."""
        return self._plan.components[self.name].timers

    def context(self) -> TopologyContext:
        """Returns a new context for the task under test, with the hooks of the configuration."""
        tasks = {component.id: component.tasks for component in self._plan.components.values()}
        context = TopologyContext(self._plan.topology, self.conf, tasks, self.task, "test", "test-1", self.pid_dir)
        for hook in hooks_for(HookSettings.of(self.conf)):
            context.add_task_hook(hook)
        return context

    def output(self, context: TopologyContext) -> TaskOutput:
        """Returns an output with the runtime's checks."""
        return _LenientOutput(self._wiring, context) if self._lenient else TaskOutput(self._wiring, context)

    def spec(self) -> RunSpec:
        """Returns the component in the form in which it is shipped to a worker.

        Raises:
            ComponentError: it can't be pickled.
        """
        return make_spec(self._plan, "test", "test-1", f"test-{next(_runs)}", ())


def make_context(
    component: BaseComponent,
    name: str = "component",
    *,
    conf: Mapping[str, Any] | None = None,
    targets: Mapping[str, int] | None = None,
    tasks: int = 1,
    task_index: int = 0,
) -> TopologyContext:
    """Returns a context like that for `open` or `prepare`.

    Args:
        component: the spout or bolt under test.
        name: its component id.
        conf: configuration over the defaults.
        targets: the components that subscribe to it, with their numbers of tasks.
        tasks: how many tasks the component has.
        task_index: which of them is asking.

    Raises:
        InvalidTopologyError: it is not a component, or has an invalid declaration.
        ConfigError: a key or value of `conf` is invalid.

    Example:
        >>> from storm_on_spark.testing import ListSpout
        >>> context = make_context(ListSpout([]), "lines", targets={"split": 3})
        >>> context.this_component_id, context.component_tasks("split")
        ('lines', [2, 3, 4])
    """
    bench = Bench(component, name=name, conf=conf, targets=targets, tasks=tasks, task_index=task_index)
    return bench.context()


def sources_of(inputs: Iterable[Tuple | pa.RecordBatch]) -> dict[GlobalStreamId, Fields]:
    """Returns the streams that inputs come from, without those of the system."""
    found: dict[GlobalStreamId, Fields] = {}
    for item in inputs:
        if not isinstance(item, Tuple):
            found.setdefault(GlobalStreamId("source"), Fields(item.schema.names))
        elif not is_system_id(item.source_component):
            found.setdefault(item.source_global_stream_id, item.fields)
    return found


class _LenientOutput(TaskOutput):
    """Accepts direct emits to any task, for tests that name no receivers."""

    def emit_direct(self, task: int, stream: str, values: Any, anchor: Anchor) -> None:
        self.check(stream, values, direct=True)


class _Sender(BaseRichSpout):
    """Stands in for the source of a bolt under test."""

    def __init__(self, streams: Mapping[str, Fields]) -> None:
        self._streams = dict(streams)

    def next_tuple(self) -> None:
        """Emits nothing."""

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        """Declares the streams that the test's tuples come on."""
        for stream, fields in self._streams.items():
            declarer.declare_stream(stream, fields)


class _Receiver(BaseBasicBolt):
    """Stands in for the receivers of the component under test; in a cycle it also sends to it."""

    def __init__(self, streams: Mapping[str, Fields]) -> None:
        self._streams = dict(streams)

    def execute(self, tup: Tuple, collector: BasicOutputCollector) -> None:
        """Does nothing."""

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        """Declares the streams that the test's tuples come on."""
        for stream, fields in self._streams.items():
            declarer.declare_stream(stream, fields)


def _surround(
    component: BaseComponent, name: str, tasks: int, sources: Sources, targets: Mapping[str, int]
) -> Topology:
    """Returns a topology of the component and stand-ins for all that it receives from and sends to."""
    builder = TopologyBuilder()
    senders: dict[str, dict[str, Fields]] = {}
    if isinstance(component, (BaseRichSpout, BatchSpout)):
        builder.set_spout(name, component, tasks)
    else:
        # The builder refuses anything that is not a bolt either.
        bolt = builder.set_bolt(name, component, tasks)  # type: ignore[arg-type]
        for source, fields in sources.items():
            bolt.grouping(source, ShuffleGrouping())
            senders.setdefault(source.component, {})[source.stream] = fields
        if not senders.keys() - targets.keys() - {name}:
            # A bolt whose only input is a cycle still needs a spout to start it.
            bolt.shuffle_grouping("source")
            senders["source"] = {DEFAULT_STREAM: Fields("value")}
    declarer = OutputFieldsDeclarer(name)
    component.declare_output_fields(declarer)
    for target, number in targets.items():
        receiver = builder.set_bolt(target, _Receiver(senders.get(target, {})), number)
        for stream, spec in declarer.streams.items():
            grouping = DirectGrouping() if spec.direct else ShuffleGrouping()
            receiver.grouping(GlobalStreamId(name, stream), grouping)
    for sender in senders.keys() - targets.keys() - {name}:
        builder.set_spout(sender, _Sender(senders[sender]))
    return builder.create_topology()
