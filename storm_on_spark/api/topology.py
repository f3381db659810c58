"""The topology that `TopologyBuilder` builds and the compiler reads."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from storm_on_spark.api.adapted import component_class, component_title
from storm_on_spark.api.errors import InvalidTopologyError
from storm_on_spark.api.streams.stream import DEFAULT_STREAM, GlobalStreamId, StreamSpec
from storm_on_spark.api.text import html
from storm_on_spark.api.text.graph import Edge, Node, graph
from storm_on_spark.api.text.wording import did_you_mean, quoted, short_repr
from storm_on_spark.api.worker import BaseWorkerHook

if TYPE_CHECKING:
    from storm_on_spark.api.streams.grouping import Grouping


class ComponentKind(Enum):
    """The kind of a component, which decides which methods are called."""

    SPOUT = "spout"
    """A `BaseRichSpout`."""
    BATCH_SPOUT = "batch_spout"
    """A `BatchSpout`: emits Arrow record batches."""
    NATIVE_SPOUT = "native_spout"
    """A `NativeSpout`: Spark reads its rows directly."""
    BOLT = "bolt"
    """A `BaseRichBolt`: acks and anchors explicitly."""
    BASIC_BOLT = "basic_bolt"
    """A `BaseBasicBolt`: acked and anchored automatically."""
    BATCH_BOLT = "batch_bolt"
    """A `BatchBolt`: gets Arrow record batches."""

    @property
    def is_spout(self) -> bool:
        """Whether it is a kind of spout."""
        return self in (ComponentKind.SPOUT, ComponentKind.BATCH_SPOUT, ComponentKind.NATIVE_SPOUT)


@dataclass(frozen=True)
class ComponentSpec:
    """One spout or bolt as the topology declares it; equal by value.

    Example:
        >>> spec = ComponentSpec("lines", ComponentKind.SPOUT, object(), 2, None, {}, {}, ())
        >>> spec.is_spout, spec.parallelism
        (True, 2)
    """

    id: str
    kind: ComponentKind
    component: object
    """The user's object: a prototype. Pickling gives every task its own copy."""
    parallelism: int
    """The parallelism hint: the number of executors."""
    num_tasks: int | None
    """The number of tasks; `None` means the parallelism hint."""
    conf: Mapping[str, object]
    """Configuration of this component only."""
    streams: Mapping[str, StreamSpec]
    """Its output streams, by id."""
    inputs: tuple[tuple[GlobalStreamId, Grouping], ...]
    """The streams that it subscribes to, in the order of the declarations."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "conf", MappingProxyType(dict(self.conf)))
        object.__setattr__(self, "streams", MappingProxyType(dict(self.streams)))
        object.__setattr__(self, "inputs", tuple(self.inputs))

    @property
    def is_spout(self) -> bool:
        """Whether it is a spout."""
        return self.kind.is_spout

    @property
    def class_name(self) -> str:
        """Module and name of the component's class, for people."""
        cls = component_class(self.component)
        return f"{cls.__module__}.{cls.__qualname__}"

    def to_dict(self) -> dict[str, Any]:
        """Returns everything except the component itself as a JSON object."""
        return {
            "id": self.id,
            "kind": self.kind.value,
            "class": self.class_name,
            "parallelism": self.parallelism,
            "num_tasks": self.num_tasks,
            "conf": {key: _plain(value) for key, value in self.conf.items()},
            "streams": {
                name: {"fields": spec.fields.to_list(), "direct": spec.direct} for name, spec in self.streams.items()
            },
            "inputs": [
                {"component": source.component, "stream": source.stream, "grouping": grouping.describe()}
                for source, grouping in self.inputs
            ],
        }

    def __reduce__(self) -> tuple[Any, ...]:
        # Read-only views can't be pickled; the dicts behind them can.
        conf, streams = dict(self.conf), dict(self.streams)
        return (
            ComponentSpec,
            (
                self.id,
                self.kind,
                self.component,
                self.parallelism,
                self.num_tasks,
                conf,
                streams,
                self.inputs,
            ),
        )

    def __str__(self) -> str:
        size = f"x{self.parallelism}" if self.num_tasks is None else f"x{self.parallelism}, {self.num_tasks} tasks"
        parts = [f"{self.kind.value} {self.id} ({component_title(self.component)}, {size})"]
        if self.inputs:
            parts.append("<- " + ", ".join(f"{source} {grouping.describe()}" for source, grouping in self.inputs))
        if self.streams:
            parts.append("-> " + ", ".join(_stream_text(name, spec) for name, spec in self.streams.items()))
        return " ".join(parts)


@dataclass(frozen=True, repr=False)
class Topology:
    """Spouts, bolts and their connections; immutable, equal by value.

    Made by `TopologyBuilder.create_topology`. `str()` of it shows one line per component.

    Example:
        >>> lines = ComponentSpec("lines", ComponentKind.SPOUT, object(), 1, None, {}, {}, ())
        >>> topology = Topology({"lines": lines})
        >>> topology
        Topology(spouts=['lines'], bolts=[])
        >>> topology["split"]
        Traceback (most recent call last):
        ...
        storm_on_spark.api.errors.InvalidTopologyError: no component "split"; there are: "lines".
    """

    components: Mapping[str, ComponentSpec]
    """All components by id, in the order of their addition."""

    worker_hooks: tuple[BaseWorkerHook, ...] = field(default=(), compare=False)
    """Hooks that run once in each process; see `TopologyBuilder.add_worker_hook`."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "components", MappingProxyType(dict(self.components)))

    def _repr_html_(self) -> str:
        nodes = [
            Node(
                spec.id,
                spec.id,
                f"{component_title(spec.component)} x{spec.parallelism}",
                "spout" if spec.is_spout else "bolt",
            )
            for spec in self.components.values()
        ]
        edges = [
            Edge(source.component, spec.id, f"{grouping.describe()}{_of_stream(source.stream)}")
            for spec in self.components.values()
            for source, grouping in spec.inputs
        ]
        counts = f"{html.counted(len(self.spouts), 'spout')}, {html.counted(len(self.bolts), 'bolt')}"
        return html.block(html.line(f"Topology: {counts}", strong=True), graph(nodes, edges))

    @property
    def spouts(self) -> dict[str, ComponentSpec]:
        """The spouts by id."""
        return {name: spec for name, spec in self.components.items() if spec.is_spout}

    @property
    def bolts(self) -> dict[str, ComponentSpec]:
        """The bolts by id."""
        return {name: spec for name, spec in self.components.items() if not spec.is_spout}

    def to_dict(self) -> dict[str, Any]:
        """Returns the topology as a JSON object."""
        return {"components": [spec.to_dict() for spec in self.components.values()]}

    def __getitem__(self, component: str) -> ComponentSpec:
        try:
            return self.components[component]
        except KeyError:
            raise InvalidTopologyError(
                f'no component "{component}"; there are: {quoted(self.components)}.'
                f"{did_you_mean(component, self.components)}",
                component=component,
            ) from None

    def __contains__(self, component: object) -> bool:
        return component in self.components

    def __iter__(self) -> Iterator[str]:
        return iter(self.components)

    def __len__(self) -> int:
        return len(self.components)

    def __reduce__(self) -> tuple[Any, ...]:
        return (Topology, (dict(self.components), self.worker_hooks))

    def __repr__(self) -> str:
        return f"Topology(spouts={list(self.spouts)}, bolts={list(self.bolts)})"

    def __str__(self) -> str:
        return "\n".join(str(spec) for spec in self.components.values())


def _stream_text(name: str, spec: StreamSpec) -> str:
    text = f"({', '.join(spec.fields)})"
    if name != DEFAULT_STREAM:
        text = f"{name}{text}"
    return f"{text} direct" if spec.direct else text


def _plain(value: object) -> object:
    """Returns `value` if JSON can represent it, else its repr."""
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    return short_repr(value)


def _of_stream(name: str) -> str:
    return "" if name == "default" else f" of {name}"
