"""The schema of a Flux file: its keys, and the values of each."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final, TypeVar

from storm_on_spark.api.text.wording import did_you_mean, name_fault, quoted, short_repr
from storm_on_spark.flux.errors import FluxError
from storm_on_spark.flux.nodes import Node

GROUPINGS: Final = ("ALL", "CUSTOM", "DIRECT", "SHUFFLE", "LOCAL_OR_SHUFFLE", "FIELDS", "GLOBAL", "NONE")
_OBJECT_KEYS: Final = ("className", "constructorArgs", "factory", "factoryArgs", "properties", "configMethods")
_VERTEX_KEYS: Final = ("parallelism", "numTasks", "onHeapMemoryLoad", "offHeapMemoryLoad", "cpuLoad", "config")
_TOPOLOGY_KEYS: Final = (
    "name", "config", "includes", "components", "spouts", "bolts", "streams", "workerHooks", "topologySource"
)  # fmt: skip
_HOOKS: Final = (
    "worker hooks are not supported in a Flux file: add them with TopologyBuilder.add_worker_hook in Python, or do "
    "what the hook does in prepare of a bolt and open of a spout"
)
_PARTIAL: Final = (
    "; Flux has no PARTIAL_KEY: use CUSTOM with the customClass org.apache.storm.grouping.PartialKeyGrouping and the "
    "fields as its argument"
)

D = TypeVar("D", bound="ObjectDef")


@dataclass(frozen=True)
class PropertyDef:
    """One of an object's properties."""

    name: str
    value: Node
    node: Node


@dataclass(frozen=True)
class MethodDef:
    """A method that is called on an object after it has been made."""

    name: str
    args: tuple[Node, ...]
    node: Node


@dataclass(frozen=True)
class ObjectDef:
    """An object to make."""

    node: Node
    class_name: Node
    id: str = ""
    constructor_args: tuple[Node, ...] | None = None
    factory: Node | None = None
    factory_args: tuple[Node, ...] = ()
    properties: tuple[PropertyDef, ...] = ()
    config_methods: tuple[MethodDef, ...] = ()


@dataclass(frozen=True)
class VertexDef(ObjectDef):
    """A spout or bolt."""

    parallelism: int = 1
    num_tasks: int | None = None
    on_heap: float | None = None
    off_heap: float | None = None
    cpu: float | None = None
    config: Node | None = None


@dataclass(frozen=True)
class SourceDef(ObjectDef):
    """The object with the method that makes the topology."""

    method: str = "getTopology"


@dataclass(frozen=True)
class StreamDef:
    """One subscription of a bolt."""

    node: Node
    source: Node
    target: Node
    type: str
    stream: str | None
    args: tuple[Node, ...]
    args_node: Node | None
    custom: ObjectDef | None


@dataclass(frozen=True)
class IncludeDef:
    """Another file whose definitions are included."""

    file: Node
    resource: bool
    override: bool


@dataclass(frozen=True)
class TopologyDef:
    """A Flux file."""

    node: Node
    name: Node | None = None
    config: Mapping[str, Node] = field(default_factory=dict)
    includes: tuple[IncludeDef, ...] = ()
    components: Mapping[str, ObjectDef] = field(default_factory=dict)
    spouts: Mapping[str, VertexDef] = field(default_factory=dict)
    bolts: Mapping[str, VertexDef] = field(default_factory=dict)
    streams: tuple[StreamDef, ...] = ()
    source: SourceDef | None = None

    def with_included(self, other: TopologyDef, *, override: bool) -> TopologyDef:
        """Returns this topology with the definitions of an included file.

        If both define something, the including file wins, or with `override` the included one. Streams have no ids, so
        all of them are included.
        """
        if other.source is not None and self.source is not None and not override:
            other = replace(other, source=self.source)
        return replace(
            self,
            name=other.name if self.name is None or (override and other.name is not None) else self.name,
            config=_merged(self.config, other.config, override),
            components=_merged(self.components, other.components, override),
            spouts=_merged(self.spouts, other.spouts, override),
            bolts=_merged(self.bolts, other.bolts, override),
            streams=self.streams + other.streams,
            source=other.source or self.source,
        )


def _merged(own: Mapping[str, Any], included: Mapping[str, Any], override: bool) -> dict[str, Any]:
    return {**own, **included} if override else {**own, **{k: v for k, v in included.items() if k not in own}}


def topology_of(node: Node) -> TopologyDef:
    """Returns the definition of a topology.

    Raises:
        FluxError: a key is unknown or missing, a value has the wrong type, or an id occurs twice.
    """
    keys = _keys(node, "a Flux file", _TOPOLOGY_KEYS)
    if "workerHooks" in keys and keys["workerHooks"].value:
        raise keys["workerHooks"].error(_HOOKS)
    config = keys.get("config")
    return TopologyDef(
        node,
        name=None if _none(keys.get("name")) else _checked_name(keys["name"]),
        config={} if config is None or config.value is None else _mapping(config, "config"),
        includes=tuple(map(_include, _items(keys, "includes"))),
        components=_by_id([_object(item, "a component", ObjectDef, ("id",)) for item in _items(keys, "components")]),
        spouts=_by_id([_vertex(item, "a spout") for item in _items(keys, "spouts")]),
        bolts=_by_id([_vertex(item, "a bolt") for item in _items(keys, "bolts")]),
        streams=tuple(map(_stream, _items(keys, "streams"))),
        source=None if _none(keys.get("topologySource")) else _source(keys["topologySource"]),
    )


def _source(node: Node) -> SourceDef:
    found = _object(node, "topologySource", SourceDef, ("id", "methodName"))
    method = node.value.get("methodName")
    return found if method is None else replace(found, method=_string(method, "methodName"))


def _include(node: Node) -> IncludeDef:
    keys = _keys(node, "an include", ("file", "resource", "override"), needed=("file",))
    _string(keys["file"], "the file of an include")
    return IncludeDef(keys["file"], _flag(keys, "resource"), _flag(keys, "override"))


def _vertex(node: Node, what: str) -> VertexDef:
    found = _object(node, what, VertexDef, ("id", *_VERTEX_KEYS))
    keys = node.value
    config = keys.get("config")
    if config is not None and config.value is not None:
        _mapping(config, f"the config of {what}")
    return replace(
        found,
        parallelism=_count(keys.get("parallelism"), "parallelism") or 1,
        num_tasks=_count(keys.get("numTasks"), "numTasks", unset=True),
        on_heap=_load(keys.get("onHeapMemoryLoad"), "onHeapMemoryLoad"),
        off_heap=_load(keys.get("offHeapMemoryLoad"), "offHeapMemoryLoad"),
        cpu=_load(keys.get("cpuLoad"), "cpuLoad"),
        config=None if _none(config) else config,
    )


def _object(node: Node, what: str, kind: type[D], more: Iterable[str]) -> D:
    needed = ("id", "className") if "id" in more and kind is not SourceDef else ("className",)
    keys = _keys(node, what, (*more, *_OBJECT_KEYS), needed=needed)
    _string(keys["className"], "className")
    args = keys.get("constructorArgs")
    factory = keys.get("factory")
    if _none(factory) and not _none(keys.get("factoryArgs")):
        raise keys["factoryArgs"].error("factoryArgs are the arguments of a factory, and there is no factory")
    if factory is not None and not _none(factory):
        _string(factory, "factory")
        if args is not None and args.value:
            raise args.error("there is a factory too: an object is made by its constructor or by a factory")
    return kind(
        node,
        keys["className"],
        id=_string(keys["id"], f"the id of {what}") if "id" in keys else "",
        constructor_args=None if args is None or args.value is None else tuple(_list(args, "constructorArgs")),
        factory=None if _none(factory) else factory,
        factory_args=tuple(_items(keys, "factoryArgs")),
        properties=tuple(map(_property, _items(keys, "properties"))),
        config_methods=tuple(map(_method, _items(keys, "configMethods"))),
    )


def _property(node: Node) -> PropertyDef:
    keys = _keys(node, "a property", ("name", "value", "ref", "reflist"), needed=("name",))
    given = [key for key in ("value", "ref", "reflist") if key in keys]
    if len(given) != 1:
        raise node.error(f"a property has one of value, ref and reflist, not {' and '.join(given) or 'none'}")
    (kind,) = given
    value = keys[kind]
    if kind != "value":
        # In the notation of arguments.
        value = Node({kind: value}, value.place, {kind: value.place})
    return PropertyDef(_string(keys["name"], "the name of a property"), value, node)


def _method(node: Node) -> MethodDef:
    keys = _keys(node, "a config method", ("name", "args"), needed=("name",))
    return MethodDef(_string(keys["name"], "the name of a config method"), tuple(_items(keys, "args")), node)


def _stream(node: Node) -> StreamDef:
    what = "a stream"
    keys = _keys(node, what, ("id", "name", "from", "to", "grouping"), needed=("from", "to", "grouping"))
    _string(keys["from"], "from"), _string(keys["to"], "to")
    grouping = keys["grouping"]
    parts = _keys(grouping, "a grouping", ("type", "streamId", "args", "customClass"), needed=("type",))
    kind = _string(parts["type"], "the type of a grouping")
    if kind not in GROUPINGS:
        hint = _PARTIAL if kind.upper() == "PARTIAL_KEY" else f".{did_you_mean(kind.upper(), GROUPINGS)}"
        raise parts["type"].error(f'there is no grouping "{kind}"; there are {quoted(GROUPINGS)}{hint}'.rstrip("."))
    args = tuple(_items(parts, "args"))
    custom = parts.get("customClass")
    if kind == "CUSTOM" and _none(custom):
        raise grouping.error("a CUSTOM grouping needs a customClass with its className")
    if kind != "CUSTOM" and custom is not None and not _none(custom):
        raise custom.error(f"a customClass belongs to a grouping of type CUSTOM, not {kind}")
    if kind == "FIELDS" and not args:
        raise grouping.error("a FIELDS grouping needs args: the names of the fields")
    if kind != "FIELDS" and args:
        raise parts["args"].error(f"args name the fields of a grouping of type FIELDS; this one is {kind}")
    for item in args:
        _string(item, "the name of a field")
    stream = parts.get("streamId")
    return StreamDef(
        node, keys["from"], keys["to"], kind,
        stream=None if stream is None or stream.value is None else _string(stream, "streamId"),
        args=args, args_node=parts.get("args"),
        custom=None if custom is None or _none(custom) else _object(custom, "a customClass", ObjectDef, ()),
    )  # fmt: skip


def _keys(node: Node, what: str, allowed: Iterable[str], needed: Iterable[str] = ()) -> dict[str, Node]:
    found = _mapping(node, what)
    allowed = tuple(allowed)
    for key in found:
        if key not in allowed:
            place = (node.keys or {}).get(key, node.place)
            raise FluxError(
                f'{what} has no key "{key}"; there are {quoted(allowed)}.{did_you_mean(key, allowed)}'.rstrip("."),
                place,
            )
    for key in needed:
        if _none(found.get(key)):
            raise node.error(f"{what} needs the key {key}")
    return found


def _none(node: Node | None) -> bool:
    return node is None or node.value is None


def _mapping(node: Node, what: str) -> dict[str, Node]:
    if not isinstance(node.value, dict):
        raise node.error(f"{what} must be a mapping from keys to values, not {_a(node)}")
    return node.value


def _list(node: Node, what: str) -> list[Node]:
    if not isinstance(node.value, list):
        raise node.error(f"{what} must be a list, not {_a(node)}")
    return node.value


def _items(keys: Mapping[str, Node], name: str) -> list[Node]:
    node = keys.get(name)
    return [] if node is None or node.value is None else _list(node, name)


def _string(node: Node, what: str) -> str:
    if not isinstance(node.value, str) or not node.value:
        raise node.error(f"{what} must be a string that is not empty, not {_a(node)}")
    if fault := name_fault(node.value):
        raise node.error(f"{what} {fault}")
    return node.value


def _checked_name(node: Node) -> Node:
    name = _string(node, "the name of a topology")
    if not name.strip() or len(name) > 150 or "/" in name or not name.isprintable():
        raise node.error("the name of a topology has 1 to 150 printable characters, and no '/'")
    return node


def _flag(keys: Mapping[str, Node], name: str) -> bool:
    node = keys.get(name)
    if node is None or node.value is None:
        return False
    if not isinstance(node.value, bool):
        raise node.error(f"{name} must be true or false, not {_a(node)}")
    return node.value


def _count(node: Node | None, what: str, *, unset: bool = False) -> int | None:
    if node is None or node.value is None or (unset and node.value == -1):
        return None
    if isinstance(node.value, bool) or not isinstance(node.value, int) or node.value < 1:
        raise node.error(f"{what} must be an int of at least 1, not {_a(node)}")
    return node.value


def _load(node: Node | None, what: str) -> float | None:
    if node is None or node.value is None or node.value == -1:
        return None
    if isinstance(node.value, bool) or not isinstance(node.value, (int, float)) or not 0 <= node.value < 1e12:
        raise node.error(f"{what} must be a number of at least 0, not {_a(node)}")
    return float(node.value)


def _by_id(found: list[D]) -> dict[str, D]:
    result: dict[str, D] = {}
    for item in found:
        if item.id in result:
            earlier = result[item.id].node.place
            raise item.node.value["id"].error(
                f'the id "{item.id}" is taken by line {earlier.line + 1}; ids must differ'
            )
        result[item.id] = item
    return result


def _a(node: Node) -> str:
    kinds: dict[type, Callable[[Any], str]] = {dict: lambda _: "a mapping", list: lambda _: "a list"}
    return kinds.get(type(node.value), lambda value: "nothing" if value is None else short_repr(value, 60))(node.value)
