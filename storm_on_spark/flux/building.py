"""From a definition to a topology."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any, Final

from storm_on_spark.api.building.builder import BoltDeclarer, ComponentConfigurationDeclarer, TopologyBuilder
from storm_on_spark.api.config import problems_of
from storm_on_spark.api.custom_grouping import CustomStreamGrouping
from storm_on_spark.api.errors import StormError
from storm_on_spark.api.streams.grouping import Grouping
from storm_on_spark.api.streams.stream import DEFAULT_STREAM, GlobalStreamId
from storm_on_spark.api.text.wording import did_you_mean, kind_of, quoted
from storm_on_spark.api.topology import Topology
from storm_on_spark.flux.definitions import StreamDef, TopologyDef, VertexDef
from storm_on_spark.flux.errors import Place
from storm_on_spark.flux.nodes import Node
from storm_on_spark.flux.objects import Objects

_logger = logging.getLogger(__name__)

_METHODS: Final = {
    "ALL": "all_grouping",
    "DIRECT": "direct_grouping",
    "SHUFFLE": "shuffle_grouping",
    "LOCAL_OR_SHUFFLE": "local_or_shuffle_grouping",
    "GLOBAL": "global_grouping",
    "NONE": "none_grouping",
}


def check(definition: TopologyDef) -> None:
    """Checks what concerns several parts of a file, before any class is imported.

    Raises:
        FluxError: a stream has no source or no target, an id is used twice, or a key of the configuration is wrong.
    """
    for key, node in definition.config.items():
        # One key at a time, so that the caret points to its value.
        for problem in problems_of({key: node.plain()}):
            raise node.error(problem)
    spouts, bolts = definition.spouts, definition.bolts
    if definition.source is not None:
        parts = (("spouts", spouts), ("bolts", bolts), ("streams", definition.streams))
        for what in (name for name, found in parts if found):
            raise definition.source.node.error(
                f"topologySource makes the whole topology; there are {what} too: a file has one or the other"
            )
        return
    for name in ("spouts", "bolts", "streams"):
        if not getattr(definition, name):
            raise definition.node.error(f"there are no {name}; a topology has spouts, bolts and streams")
    for name, bolt in bolts.items():
        if name in spouts:
            raise bolt.node.value["id"].error(f'a spout has the id "{name}" already; ids must differ')
    seen: dict[tuple[str, str, str], Place] = {}
    for stream in definition.streams:
        for node, valid, what in (
            (stream.source, {**spouts, **bolts}, "spout or bolt"),
            (stream.target, bolts, "bolt"),
        ):
            if node.value not in valid:
                hint = "; tuples can't be sent to a spout" if node.value in spouts else ""
                raise node.error(
                    f'there is no {what} "{node.value}"{hint}; there are {quoted(valid)}.'
                    f"{did_you_mean(node.value, valid)}".rstrip(".")
                )
        edge = (stream.source.value, stream.stream or DEFAULT_STREAM, stream.target.value)
        if edge in seen:
            raise stream.node.error(
                f'bolt "{edge[2]}" gets stream "{edge[1]}" of "{edge[0]}" already, by line {seen[edge].line + 1}; '
                "a bolt gets each stream once"
            )
        seen[edge] = stream.node.place


def build(definition: TopologyDef, folder: Path, conf: dict[str, Any]) -> Topology:
    """Returns the topology of a checked definition.

    Raises:
        FluxError: an object can't be made, or is not a spout, bolt, grouping or topology.
        StormError: the topology is invalid.
    """
    objects = Objects(folder, definition.components)
    objects.make_components()
    if definition.source is not None:
        return _from_source(definition, objects, conf)
    builder = TopologyBuilder()
    for name, spout in definition.spouts.items():
        made = objects.make(spout)
        _configure(_added(builder.set_spout, name, made, spout), spout)
    targets = {stream.target.value for stream in definition.streams}
    declarers: dict[str, BoltDeclarer] = {}
    for name, bolt in definition.bolts.items():
        made = objects.make(bolt)
        if name not in targets:
            _logger.warning('%s: bolt "%s" is left out: no stream leads to it', bolt.node.place, name)
            continue
        declarers[name] = _added(builder.set_bolt, name, made, bolt)
        _configure(declarers[name], bolt)
    for stream in definition.streams:
        _subscribe(declarers[stream.target.value], stream, objects)
    return builder.create_topology()


def _from_source(definition: TopologyDef, objects: Objects, conf: dict[str, Any]) -> Topology:
    source = definition.source
    assert source is not None
    where = source.node.value.get("methodName") or source.class_name
    made = objects.make(source)
    found = objects.call(made, source.method, where, conf)
    if not isinstance(found, Topology):
        hint = "; return what its create_topology() returns" if isinstance(found, TopologyBuilder) else ""
        raise where.error(f"{source.method} returned {kind_of(found)}, not a Topology{hint}")
    return found


def _added(add: Any, name: str, made: Any, definition: VertexDef) -> Any:
    try:
        return add(name, made, definition.parallelism)
    except StormError as error:
        raise definition.class_name.error(str(error)) from error


def _configure(declarer: ComponentConfigurationDeclarer, definition: VertexDef) -> None:
    if definition.config is not None:
        for key, node in definition.config.value.items():
            _at(node, declarer.add_configuration, key, node.plain())
    if definition.on_heap is not None:
        declarer.set_memory_load(definition.on_heap, definition.off_heap)
    elif definition.off_heap is not None:
        raise definition.node.value["offHeapMemoryLoad"].error("offHeapMemoryLoad needs onHeapMemoryLoad beside it")
    if definition.cpu is not None:
        declarer.set_cpu_load(definition.cpu)
    if definition.num_tasks is not None:
        declarer.set_num_tasks(definition.num_tasks)


def _subscribe(declarer: BoltDeclarer, definition: StreamDef, objects: Objects) -> None:
    source, stream = str(definition.source.value), definition.stream or DEFAULT_STREAM
    if definition.type == "FIELDS":
        assert definition.args_node is not None
        fields = [str(node.value) for node in definition.args]
        _at(definition.args_node, declarer.fields_grouping, source, fields, stream)
    elif definition.custom is not None:
        made = objects.make(definition.custom)
        where = definition.custom.class_name
        if isinstance(made, Grouping):
            _at(where, declarer.grouping, GlobalStreamId(source, stream), made)
        elif isinstance(made, CustomStreamGrouping):
            _at(where, declarer.custom_grouping, source, made, stream)
        else:
            raise where.error(f"a customClass must be a CustomStreamGrouping, not {kind_of(made)}")
    else:
        _at(definition.node, getattr(declarer, _METHODS[definition.type]), source, stream)


def _at(where: Node, function: Any, *args: Any) -> Any:
    try:
        return function(*args)
    except StormError as error:
        raise where.error(str(error)) from error
