"""The context of a task: information about the task and its topology."""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Any, Final, NoReturn

from storm_on_spark.api.config import Config
from storm_on_spark.api.config.settings import Settings
from storm_on_spark.api.errors import InvalidTopologyError, StormError
from storm_on_spark.api.metrics.registry import MetricRegistry, MetricsContext
from storm_on_spark.api.streams.constants import SYSTEM_COMPONENT, TICK_STREAM, TIMER_STREAM
from storm_on_spark.api.streams.fields import Fields
from storm_on_spark.api.streams.stream import DEFAULT_STREAM, GlobalStreamId, StreamSpec
from storm_on_spark.api.task.hooks import ITaskHook
from storm_on_spark.api.text.wording import did_you_mean, kind_of, quoted
from storm_on_spark.api.worker import WorkerProcess, WorkerTopologyContext

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from storm_on_spark.api.streams.grouping import Grouping
    from storm_on_spark.api.topology import ComponentSpec, Topology

_PLAIN: Final = (type(None), bool, int, float, complex, str, bytes, tuple, frozenset, type)
"""Types of values for which equal values may be the same object."""
_SYSTEM_STREAMS: Final[Mapping[str, StreamSpec]] = {
    TICK_STREAM: StreamSpec(Fields("rate_secs")),
    TIMER_STREAM: StreamSpec(Fields("name", "time_ms")),
}


@dataclass(frozen=True)
class _TimeoutSettings(Settings):
    timeout_secs: Annotated[int, Config.TOPOLOGY_MESSAGE_TIMEOUT_SECS]


class TopologyContext(WorkerTopologyContext, MetricsContext):
    """A task's identity, configuration and topology.

    The runtime makes one for every task and passes it to `open` or `prepare`. It belongs to its process and can't be
    pickled: a bolt that keeps it as an attribute gets a new one whenever `prepare` runs.

    Args:
        topology: the running topology.
        conf: the topology's configuration merged with the component's.
        tasks: the task ids of every component, including the system's.
        task_id: this task.
        topology_name: the name under which the topology runs.
        storm_id: the id of this run.
        pid_dir: this machine's folder for child processes of this start; empty if there is no run.
        worker: shared by the tasks of this process; None makes one with `pid_dir`.

    Raises:
        InvalidTopologyError: no component has the task `task_id`.

    Example:
        >>> from storm_on_spark.api import ComponentKind, ComponentSpec, StreamSpec, Topology
        >>> spec = ComponentSpec("lines", ComponentKind.SPOUT, object(), 2, None, {},
        ...                      {"default": StreamSpec(Fields("line"))}, ())
        >>> context = TopologyContext(Topology({"lines": spec}), {}, {"lines": [1, 2]}, 2, "demo", "demo-1")
        >>> context.this_component_id, context.this_task_index, context.this_output_fields()
        ('lines', 1, Fields('line'))
    """

    def __init__(
        self,
        topology: Topology,
        conf: Mapping[str, Any],
        tasks: Mapping[str, Sequence[int]],
        task_id: int,
        topology_name: str,
        storm_id: str,
        pid_dir: str = "",
        worker: WorkerProcess | None = None,
    ) -> None:
        super().__init__(worker or WorkerProcess(pid_dir=pid_dir))
        self._topology = topology
        self._conf = MappingProxyType(dict(conf))
        self._tasks = {component: sorted(ids) for component, ids in tasks.items()}
        self._task_to_component = {task: component for component, ids in self._tasks.items() for task in ids}
        if task_id not in self._task_to_component:
            raise InvalidTopologyError(f"no component has task {task_id}; there are: {self._tasks}")
        self._worker.tasks.add(task_id)
        self._task_id = task_id
        self._topology_name = topology_name
        self._storm_id = storm_id
        self._task_data: dict[str, Any] = {}
        self._hooks: list[ITaskHook] = []
        #: The topology's time in what is executed, if the runtime has told.
        self.clock_ms: int | None = None
        component = self._task_to_component[task_id]
        self.metrics = MetricRegistry(f'component "{component}" (task {task_id})', component)

    # --- this task ------------------------------------------------------------------------------------------

    @property
    def this_task_id(self) -> int:
        """The id of this task, unique in the topology."""
        return self._task_id

    @property
    def this_task_index(self) -> int:
        """The position of this task among its component's tasks, counted from 0."""
        return self._tasks[self.this_component_id].index(self._task_id)

    @property
    def this_component_id(self) -> str:
        """The component of this task."""
        return self._task_to_component[self._task_id]

    @property
    def conf(self) -> Mapping[str, Any]:
        """The configuration that `open` or `prepare` received; read-only."""
        return self._conf

    @property
    def time_ms(self) -> int:
        """The topology's time in the micro-batch or round that is executed, in ms; only for bolts with timers.

        It counts while the topology runs, over restarts, and is the same whenever this is executed again.

        Raises:
            StormError: the bolt declares no timers.
        """
        if self.clock_ms is None:
            raise StormError(f"\"{self.this_component_id}\" declares no timers, so it isn't told the topology's time")
        return self.clock_ms

    def this_sources(self) -> dict[GlobalStreamId, Grouping]:
        """Returns the streams that this component subscribes to, with their groupings."""
        return self.sources(self.this_component_id)

    def this_targets(self) -> dict[str, dict[str, Grouping]]:
        """Returns the subscribers of this component: stream -> component -> grouping."""
        return self.targets(self.this_component_id)

    def this_streams(self) -> list[str]:
        """Returns the streams that this component declared."""
        return self.component_streams(self.this_component_id)

    def this_output_fields(self, stream: str = DEFAULT_STREAM) -> Fields:
        """Returns the fields of one of this component's streams; errors as for `component_output_fields`."""
        return self.component_output_fields(self.this_component_id, stream)

    def this_input_fields(self) -> dict[GlobalStreamId, Fields]:
        """Returns the fields of every stream that this component subscribes to."""
        return {source: self.component_output_fields(source.component, source.stream) for source in self.this_sources()}

    # --- the topology ---------------------------------------------------------------------------------------

    @property
    def topology_name(self) -> str:
        """The name under which the topology runs."""
        return self._topology_name

    @property
    def storm_id(self) -> str:
        """The id of this run of the topology."""
        return self._storm_id

    @property
    def component_ids(self) -> list[str]:
        """All components that have tasks, including the system's."""
        return list(self._tasks)

    @property
    def task_to_component(self) -> dict[int, str]:
        """All tasks of the topology, with the component that each belongs to."""
        return dict(self._task_to_component)

    def component_id(self, task: int) -> str:
        """Returns the component that `task` belongs to.

        Raises:
            InvalidTopologyError: there is no such task.
        """
        try:
            return self._task_to_component[task]
        except KeyError:
            raise InvalidTopologyError(f"no component has task {task}; there are: {self._tasks}") from None

    def component_tasks(self, component: str) -> list[int]:
        """Returns the tasks of a component, in ascending order.

        Raises:
            InvalidTopologyError: there is no such component.
        """
        try:
            return list(self._tasks[component])
        except KeyError:
            raise self._unknown(component, self._tasks) from None

    def component_streams(self, component: str) -> list[str]:
        """Returns the streams that a component declared.

        Raises:
            InvalidTopologyError: there is no such component.
        """
        return list(self._streams(component))

    def component_output_fields(self, component: str, stream: str = DEFAULT_STREAM) -> Fields:
        """Returns the fields of a stream.

        Raises:
            InvalidTopologyError: there is no such component or stream.
        """
        streams = self._streams(component)
        if stream not in streams:
            raise InvalidTopologyError(
                f'component "{component}" has no stream "{stream}"; there are: {quoted(streams)}.'
                f"{did_you_mean(stream, streams)}",
                component=component,
                stream=stream,
            )
        return streams[stream].fields

    def sources(self, component: str) -> dict[GlobalStreamId, Grouping]:
        """Returns the streams that a component subscribes to, with their groupings.

        Raises:
            InvalidTopologyError: there is no such component.
        """
        return dict(self._spec(component).inputs)

    def targets(self, component: str) -> dict[str, dict[str, Grouping]]:
        """Returns the subscribers of a component: stream -> component -> grouping.

        Raises:
            InvalidTopologyError: there is no such component.
        """
        self._spec(component)
        found: dict[str, dict[str, Grouping]] = {}
        for target in self._topology.components.values():
            for source, grouping in target.inputs:
                if source.component == component:
                    found.setdefault(source.stream, {})[target.id] = grouping
        return found

    def max_topology_message_timeout(self) -> int:
        """Returns the message timeout in seconds; it is the same for all components of a topology."""
        return _TimeoutSettings.of(self._conf).timeout_secs

    # --- data and hooks of this task ------------------------------------------------------------------------

    def set_task_data(self, name: str, value: Any) -> None:
        """Stores a value for this task in this process, for its hooks and helpers."""
        self._task_data[name] = value

    def get_task_data(self, name: str, default: Any = None) -> Any:
        """Returns a value stored by `set_task_data`."""
        return self._task_data.get(name, default)

    def set_executor_data(self, name: str, value: Any) -> None:
        """Stores a value for the tasks of this component in this process."""
        self._worker.executor_data.setdefault(self.this_component_id, {})[name] = value

    def get_executor_data(self, name: str, default: Any = None) -> Any:
        """Returns a value stored by `set_executor_data`."""
        return self._worker.executor_data.get(self.this_component_id, {}).get(name, default)

    def shared_objects(self) -> dict[tuple[str, str], object]:
        """Returns the objects that are not saved as state of a component that keeps them: its metrics, and resources.

        Keys are the kind, `metric` or `resource`, and the name. Plain values are left out.
        """
        resources = {("resource", name): value for name, value in self._worker.resources.items()}
        found = {**{("metric", name): known for name, known in self.metrics.given.items()}, **resources}
        return {key: value for key, value in found.items() if not isinstance(value, _PLAIN)}

    def add_task_hook(self, hook: ITaskHook) -> None:
        """Calls a hook's `prepare` and adds it to this task. For use in `open` or `prepare`.

        Raises:
            InvalidTopologyError: `hook` is not an instance of a subclass of `BaseTaskHook`.
        """
        if not isinstance(hook, ITaskHook):
            raise InvalidTopologyError(
                f'component "{self.this_component_id}" (task {self._task_id}): add_task_hook takes an '
                f"instance of a subclass of BaseTaskHook, not {kind_of(hook)}",
                component=self.this_component_id,
            )
        hook.prepare(self._conf, self)
        self._hooks.append(hook)

    @property
    def hooks(self) -> tuple[ITaskHook, ...]:
        """The hooks of this task, in the order in which they were added."""
        return tuple(self._hooks)

    def this_output_fields_for_streams(self) -> dict[str, list[str]]:
        """Returns the fields of every stream of this component."""
        return {stream: list(self.this_output_fields(stream)) for stream in self.this_streams()}

    # --- Storm's accessors, for ported code -----------------------------------------------------------------

    def get_this_task_id(self) -> int:
        """Returns the id of this task."""
        return self.this_task_id

    def get_this_task_index(self) -> int:
        """Returns the position of this task among its component's tasks."""
        return self.this_task_index

    def get_this_component_id(self) -> str:
        """Returns the component of this task."""
        return self.this_component_id

    def get_storm_id(self) -> str:
        """Returns the id of this run of the topology."""
        return self.storm_id

    def get_conf(self) -> Mapping[str, Any]:
        """Returns the configuration."""
        return self.conf

    def get_topology_name(self) -> str:
        """Returns the name under which the topology runs."""
        return self.topology_name

    def get_raw_topology(self) -> Topology:
        """Returns the topology; its components have their places in it, but not their code."""
        return self._topology

    get_this_output_fields_for_streams = this_output_fields_for_streams

    def get_component_ids(self) -> list[str]:
        """Returns all components that have tasks."""
        return self.component_ids

    get_component_id = component_id

    def get_task_to_component(self) -> dict[int, str]:
        """Returns all tasks with the component that each belongs to."""
        return self.task_to_component

    get_component_tasks = component_tasks
    get_component_streams = component_streams
    get_component_output_fields = component_output_fields
    get_this_streams = this_streams
    get_this_output_fields = this_output_fields
    get_this_input_fields = this_input_fields
    get_this_sources = this_sources
    get_this_targets = this_targets
    get_sources = sources
    get_targets = targets

    def get_hooks(self) -> tuple[ITaskHook, ...]:
        """Returns the hooks of this task."""
        return self.hooks

    # --- helpers --------------------------------------------------------------------------------------------

    def _streams(self, component: str) -> Mapping[str, StreamSpec]:
        if component == SYSTEM_COMPONENT:
            return _SYSTEM_STREAMS
        if component in self._tasks and component not in self._topology:
            return {}  # The streams of system components, such as the acker, are not public.
        return self._spec(component).streams

    def _spec(self, component: str) -> ComponentSpec:
        if component not in self._topology:
            raise self._unknown(component, self._topology.components)
        return self._topology[component]

    def _unknown(self, component: str, valid: Mapping[str, object]) -> InvalidTopologyError:
        return InvalidTopologyError(
            f'no component "{component}"; there are: {quoted(valid)}.{did_you_mean(component, valid)}',
            component=component,
        )

    def __repr__(self) -> str:
        where = f'task {self._task_id} of "{self.this_component_id}" in "{self._topology_name}"'
        return f"<TopologyContext of {where}>"

    def __reduce__(self) -> NoReturn:
        # A context that is saved with a bolt's state would, when restored, replace the task's live context.
        raise TypeError("a TopologyContext belongs to one task in one process and can't be pickled")
