"""The builder: how users write a topology."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from types import FunctionType
from typing import TYPE_CHECKING, Any, TypeVar

from storm_on_spark.api.building.checks import component_kind, label
from storm_on_spark.api.building.lambdas import BoltFunction, SpoutFunction, bolt_of, spout_of
from storm_on_spark.api.component import ExecutedByBolt
from storm_on_spark.api.config import Config, validate_conf
from storm_on_spark.api.custom_grouping import CustomGrouping, CustomStreamGrouping
from storm_on_spark.api.errors import InvalidTopologyError
from storm_on_spark.api.streams.constants import SYSTEM_PREFIX, is_system_id
from storm_on_spark.api.streams.declarer import OutputFieldsDeclarer
from storm_on_spark.api.streams.fields import Fields
from storm_on_spark.api.streams.grouping import (
    AllGrouping,
    DirectGrouping,
    FieldsGrouping,
    GlobalGrouping,
    Grouping,
    LocalOrShuffleGrouping,
    NoneGrouping,
    PartialKeyGrouping,
    ShuffleGrouping,
)
from storm_on_spark.api.streams.stream import DEFAULT_STREAM, GlobalStreamId, StreamSpec
from storm_on_spark.api.text.wording import kind_of, name_fault
from storm_on_spark.api.topology import ComponentKind, ComponentSpec, Topology
from storm_on_spark.api.worker import BaseWorkerHook

if TYPE_CHECKING:
    from storm_on_spark.api.component import (
        BaseBasicBolt,
        BaseComponent,
        BaseRichBolt,
        BaseRichSpout,
        BatchBolt,
        BatchSpout,
        NativeSpout,
    )

D = TypeVar("D", bound="ComponentConfigurationDeclarer")


@dataclass
class _Draft:
    """A component while the topology is being built."""

    id: str
    kind: ComponentKind
    component: BaseComponent
    parallelism: int
    conf: dict[str, object] = field(default_factory=dict)
    inputs: dict[GlobalStreamId, Grouping] = field(default_factory=dict)

    @property
    def where(self) -> str:
        return label(self.id, self.kind.is_spout)

    def error(self, problem: str, stream: str | None = None) -> InvalidTopologyError:
        return InvalidTopologyError(f"{self.where}: {problem}", component=self.id, stream=stream)


class ComponentConfigurationDeclarer:
    """Sets the configuration of one component. Every method returns the declarer, so calls can be chained.

    Values set here override those of the component's `get_component_configuration`.
    """

    def __init__(self, draft: _Draft) -> None:
        self._draft = draft

    def add_configurations(self: D, conf: Mapping[str, object]) -> D:
        """Sets several keys.

        Raises:
            ConfigError: a key is unknown or can't be set for a single component, or a value has the wrong type or
                range.
        """
        if not isinstance(conf, Mapping):
            raise self._draft.error(f"add_configurations takes a mapping, not {kind_of(conf)}")
        validate_conf(conf, self._draft.where, component=True)
        self._draft.conf.update(conf)
        return self

    def add_configuration(self: D, key: str, value: object) -> D:
        """Sets one key; see `add_configurations`."""
        return self.add_configurations({key: value})

    def set_num_tasks(self: D, tasks: int) -> D:
        """Sets how many tasks the component has (default: as many as its parallelism hint)."""
        _check_count(tasks, "the number of tasks", self._draft)
        return self.add_configuration(Config.TOPOLOGY_TASKS, tasks)

    def set_max_task_parallelism(self: D, limit: int) -> D:
        """Caps the component's tasks."""
        return self.add_configuration(Config.TOPOLOGY_MAX_TASK_PARALLELISM, limit)

    def set_max_spout_pending(self: D, limit: int) -> D:
        """Sets how many tuples of each spout task may be pending before `next_tuple` is no longer called."""
        return self.add_configuration(Config.TOPOLOGY_MAX_SPOUT_PENDING, limit)

    def set_debug(self: D, debug: bool) -> D:
        """Sets whether every tuple that the component emits is logged."""
        return self.add_configuration(Config.TOPOLOGY_DEBUG, debug)

    def set_memory_load(self: D, on_heap_mb: float, off_heap_mb: float | None = None) -> D:
        """Records how much memory a task needs. It has no effect here: Spark's own memory settings decide."""
        self.add_configuration(Config.TOPOLOGY_COMPONENT_RESOURCES_ONHEAP_MEMORY_MB, on_heap_mb)
        if off_heap_mb is not None:
            self.add_configuration(Config.TOPOLOGY_COMPONENT_RESOURCES_OFFHEAP_MEMORY_MB, off_heap_mb)
        return self

    def set_cpu_load(self: D, percent: float) -> D:
        """Records how much of a core (100) a task needs. It has no effect here: Spark's own settings decide."""
        return self.add_configuration(Config.TOPOLOGY_COMPONENT_CPU_PCORE_PERCENT, percent)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {self._draft.where}>"


class SpoutDeclarer(ComponentConfigurationDeclarer):
    """Returned by `set_spout`: sets the configuration of that spout."""


class BoltDeclarer(ComponentConfigurationDeclarer):
    """Returned by `set_bolt`: declares the inputs of that bolt and sets its configuration.

    Each grouping method subscribes the bolt to a stream of a component, by default its stream `default`. The
    component may be added to the builder later.
    """

    def shuffle_grouping(self, component: str, stream: str = DEFAULT_STREAM) -> BoltDeclarer:
        """Spreads tuples evenly over the tasks."""
        return self._subscribe(component, stream, ShuffleGrouping())

    def fields_grouping(
        self, component: str, fields: Fields | str | Iterable[str], stream: str = DEFAULT_STREAM
    ) -> BoltDeclarer:
        """Sends tuples with equal values of `fields` to the same task."""
        return self._subscribe(component, stream, FieldsGrouping(self._keys(component, fields, stream)))

    def all_grouping(self, component: str, stream: str = DEFAULT_STREAM) -> BoltDeclarer:
        """Sends every tuple to every task."""
        return self._subscribe(component, stream, AllGrouping())

    def global_grouping(self, component: str, stream: str = DEFAULT_STREAM) -> BoltDeclarer:
        """Sends all tuples to the task with the lowest id."""
        return self._subscribe(component, stream, GlobalGrouping())

    def none_grouping(self, component: str, stream: str = DEFAULT_STREAM) -> BoltDeclarer:
        """Lets any task receive a tuple; the same as a shuffle grouping."""
        return self._subscribe(component, stream, NoneGrouping())

    def local_or_shuffle_grouping(self, component: str, stream: str = DEFAULT_STREAM) -> BoltDeclarer:
        """Works like a shuffle grouping, but prefers a task in the same partition."""
        return self._subscribe(component, stream, LocalOrShuffleGrouping())

    def partial_key_grouping(
        self, component: str, fields: Fields | str | Iterable[str], stream: str = DEFAULT_STREAM
    ) -> BoltDeclarer:
        """Splits each key between two tasks and sends each tuple to the one used less so far: for skewed keys."""
        return self._subscribe(component, stream, PartialKeyGrouping(self._keys(component, fields, stream)))

    def direct_grouping(self, component: str, stream: str = DEFAULT_STREAM) -> BoltDeclarer:
        """Lets the emitting component choose the task with `emit_direct`; the stream must be declared direct."""
        return self._subscribe(component, stream, DirectGrouping())

    def custom_grouping(
        self, component: str, grouping: CustomStreamGrouping, stream: str = DEFAULT_STREAM
    ) -> BoltDeclarer:
        """Lets user code choose the tasks; `grouping` is an instance of a subclass of `CustomStreamGrouping`."""
        try:
            checked = CustomGrouping(grouping)
        except InvalidTopologyError as error:
            raise self._draft.error(f"custom_grouping on {kind_of(component)}: {error}") from None
        return self._subscribe(component, stream, checked)

    def grouping(self, source: GlobalStreamId, grouping: Grouping) -> BoltDeclarer:
        """Subscribes to `source` with a grouping object."""
        if not isinstance(source, GlobalStreamId):
            raise self._draft.error(f"grouping takes a GlobalStreamId first, not {kind_of(source)}")
        if not isinstance(grouping, Grouping):
            raise self._draft.error(f'the grouping on "{source}" must be a Grouping, not {kind_of(grouping)}')
        return self._subscribe(source.component, source.stream, grouping)

    def _keys(self, component: str, fields: Fields | str | Iterable[str], stream: str) -> Fields:
        if not isinstance(stream, str):
            raise self._draft.error(
                f"the grouping on {kind_of(component)}: the stream must be a string, not {kind_of(stream)}; "
                "the order is (component, fields, stream)"
            )
        try:
            keys = Fields.of(fields)
        except InvalidTopologyError as error:
            raise self._draft.error(f"the grouping on {kind_of(component)}: {error}") from None
        if not len(keys):
            raise self._draft.error(
                f"the grouping on {kind_of(component)} names no fields; "
                "use global_grouping to send everything to one task"
            )
        return keys

    def _subscribe(self, component: str, stream: str, grouping: Grouping) -> BoltDeclarer:
        try:
            source = GlobalStreamId(component, stream)
        except InvalidTopologyError as error:
            raise self._draft.error(f"a grouping ({grouping.describe()}) on nothing: {error}") from None
        if source in self._draft.inputs:
            earlier = self._draft.inputs[source].describe()
            raise self._draft.error(
                f'is subscribed twice to stream "{stream}" of "{component}" '
                f"({earlier} and {grouping.describe()}); a bolt gets each stream once",
                stream,
            )
        self._draft.inputs[source] = grouping
        return self


class TopologyBuilder:
    """Builds a topology from spouts, bolts and groupings.

    Errors in one component are raised immediately. Errors that involve several components, such as a stream that does
    not exist, are raised when the topology is compiled.

    Example:
        >>> from storm_on_spark.api import BaseBasicBolt, BaseRichSpout, Fields
        >>> class Lines(BaseRichSpout):
        ...     def next_tuple(self): ...
        ...     def declare_output_fields(self, declarer):
        ...         declarer.declare(Fields("line"))
        >>> class Show(BaseBasicBolt):
        ...     def execute(self, tup, collector):
        ...         print(tup["line"])
        >>> builder = TopologyBuilder()
        >>> lines = builder.set_spout("lines", Lines()).set_max_spout_pending(1000)
        >>> show = builder.set_bolt("show", Show(), 2).shuffle_grouping("lines")
        >>> print(builder.create_topology())
        spout lines (Lines, x1) -> (line)
        basic_bolt show (Show, x2) <- lines shuffle
    """

    def __init__(self) -> None:
        self._drafts: dict[str, _Draft] = {}
        self._worker_hooks: list[BaseWorkerHook] = []

    def set_spout(
        self,
        id: str,  # noqa: A002
        spout: BaseRichSpout | BatchSpout | NativeSpout | SpoutFunction,
        parallelism: int = 1,
        *,
        fields: Fields | str | Iterable[str] | None = None,
    ) -> SpoutDeclarer:
        """Adds a spout.

        The spout may also be a function. It is called for each tuple, and returns the tuple's value, or `None` if there
        is no tuple now. With several `fields` it returns a list or tuple with one value per field. These tuples are not
        tracked.

        Args:
            id: must be unique and must not start with `__`.
            spout: an instance (every task gets a copy), or a function without arguments.
            parallelism: the number of executors, and of tasks unless `set_num_tasks` changes that.
            fields: fields of the tuples of a function; by default the one field `lambda`, as in Storm.

        Raises:
            InvalidTopologyError: an argument is invalid, or a function keeps state, which needs a class.

        Example:
            >>> import time
            >>> builder = TopologyBuilder()
            >>> seconds = builder.set_spout("seconds", lambda: int(time.time()), fields="second")
            >>> even = builder.set_bolt("even", lambda tup, out: out.emit([tup[0] % 2 == 0]), fields="even")
            >>> even = even.shuffle_grouping("seconds")
            >>> print(builder.create_topology())
            spout seconds (LambdaSpout, x1) -> (second)
            basic_bolt even (LambdaBolt, x1) <- seconds shuffle -> (even)
        """
        self._check_id(id, is_spout=True)
        component = _made(spout, fields, spout_of, label(id, is_spout=True), id)
        kind = component_kind(component, id, is_spout=True)
        return SpoutDeclarer(self._add(id, kind, component, parallelism))

    def set_bolt(
        self,
        id: str,  # noqa: A002
        bolt: BaseRichBolt | BaseBasicBolt | BatchBolt | ExecutedByBolt | BoltFunction,
        parallelism: int = 1,
        *,
        fields: Fields | str | Iterable[str] | None = None,
    ) -> BoltDeclarer:
        """Adds a bolt. Call grouping methods of the returned declarer to name its inputs.

        Arguments and errors are those of `set_spout`. The bolt may also be a function. It is called with each tuple,
        and with a `BasicOutputCollector` if it takes two arguments; `fields` are the fields of the tuples it emits.
        Emits are anchored, and the tuple is acked after the call.
        """
        self._check_id(id, is_spout=False)
        component = _made(bolt, fields, bolt_of, label(id, is_spout=False), id)
        kind = component_kind(component, id, is_spout=False)
        return BoltDeclarer(self._add(id, kind, component, parallelism))

    def create_topology(self) -> Topology:
        """Asks every component for its configuration and output fields, and returns the topology.

        Raises:
            InvalidTopologyError: a component's `declare_output_fields` or `get_component_configuration`
                raised an error or is invalid.
            ConfigError: a component's configuration is invalid.
        """
        return Topology({draft.id: _specify(draft) for draft in self._drafts.values()}, tuple(self._worker_hooks))

    def add_worker_hook(self, hook: BaseWorkerHook) -> None:
        """Adds code that runs once in each Python process that runs tasks of this topology.

        Args:
            hook: every process gets a copy.

        Raises:
            InvalidTopologyError: `hook` is not an instance of a subclass of `BaseWorkerHook`.

        Example:
            >>> from storm_on_spark.api import BaseWorkerHook
            >>> class Pool(BaseWorkerHook):
            ...     def start(self, conf, context):
            ...         context.set_resource("pool", ["connection"])
            >>> builder = TopologyBuilder()
            >>> builder.add_worker_hook(Pool())
        """
        given: object = hook
        if not isinstance(given, BaseWorkerHook):
            raise InvalidTopologyError(
                f"add_worker_hook takes an instance of a subclass of BaseWorkerHook, not {kind_of(given)}"
            )
        self._worker_hooks.append(hook)

    def __repr__(self) -> str:
        return f"TopologyBuilder({list(self._drafts)})"

    def _check_id(self, name: str, is_spout: bool) -> None:
        if fault := name_fault(name):
            raise InvalidTopologyError(f"the id of a {'spout' if is_spout else 'bolt'} {fault}")
        where = label(name, is_spout)
        if is_system_id(name):
            raise InvalidTopologyError(
                f'{where}: ids that start with "{SYSTEM_PREFIX}" are reserved for the system', component=name
            )
        if name in self._drafts:
            other = self._drafts[name]
            raise InvalidTopologyError(
                f"{where}: the id is taken by {other.where} ({type(other.component).__qualname__}); ids must differ",
                component=name,
            )

    def _add(self, name: str, kind: ComponentKind, component: BaseComponent, parallelism: int) -> _Draft:
        draft = _Draft(name, kind, component, parallelism)
        _check_count(parallelism, "the parallelism", draft)
        self._drafts[name] = draft
        return draft


def _made(
    given: Any,
    fields: Fields | str | Iterable[str] | None,
    make: Callable[[FunctionType, Fields | str | Iterable[str] | None], BaseComponent],
    where: str,
    name: str,
) -> Any:
    """Returns the given component, or a component made from the given function."""
    if isinstance(given, FunctionType):
        try:
            return make(given, fields)
        except InvalidTopologyError as error:
            raise InvalidTopologyError(f"{where}: {error}", component=name) from None
    if fields is not None:
        raise InvalidTopologyError(
            f"{where}: fields are for functions; {type(given).__qualname__} declares its own in declare_output_fields",
            component=name,
        )
    return given.executor() if isinstance(given, ExecutedByBolt) else given


def _check_count(count: object, what: str, draft: _Draft) -> None:
    if isinstance(count, bool) or not isinstance(count, int) or count < 1:
        raise draft.error(f"{what} must be an int of at least 1, not {kind_of(count)}")


def _specify(draft: _Draft) -> ComponentSpec:
    conf = {**_own_configuration(draft), **draft.conf}
    tasks = conf.get(Config.TOPOLOGY_TASKS)
    return ComponentSpec(
        id=draft.id,
        kind=draft.kind,
        component=draft.component,
        parallelism=draft.parallelism,
        num_tasks=tasks if isinstance(tasks, int) else None,
        conf=conf,
        streams=_declared_streams(draft),
        inputs=tuple(draft.inputs.items()),
    )


def _own_configuration(draft: _Draft) -> Mapping[str, object]:
    name = f"{type(draft.component).__qualname__}.get_component_configuration"
    try:
        conf = draft.component.get_component_configuration()
    except Exception as error:
        raise draft.error(f"{name} raised {type(error).__qualname__}: {error}") from error
    if conf is None:
        return {}
    if not isinstance(conf, Mapping):
        raise draft.error(f"{name} must return a mapping or None, not {kind_of(conf)}")
    validate_conf(conf, f"{draft.where}, {name}", component=True)
    return conf


def _declared_streams(draft: _Draft) -> dict[str, StreamSpec]:
    declarer = OutputFieldsDeclarer(draft.id)
    name = f"{type(draft.component).__qualname__}.declare_output_fields"
    declare: Callable[[OutputFieldsDeclarer], object] = draft.component.declare_output_fields
    try:
        returned = declare(declarer)
    except Exception as error:
        if isinstance(error, InvalidTopologyError) and error.component is not None:
            raise
        raise draft.error(f"{name} raised {type(error).__qualname__}: {error}") from error
    if returned is not None:  # Without this error, `return Fields("word")` would declare nothing.
        raise draft.error(f"{name} returned {kind_of(returned)}; call declarer.declare(...) instead")
    return declarer.streams
