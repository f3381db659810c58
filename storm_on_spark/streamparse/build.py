"""From a class of `streamparse.Topology` to a topology."""

from __future__ import annotations

import inspect
import json
from collections.abc import Mapping
from typing import Any, TypeVar

from storm_on_spark.api.building.builder import TopologyBuilder
from storm_on_spark.api.component import BaseBasicBolt, BaseRichBolt, BaseRichSpout
from storm_on_spark.api.errors import InvalidTopologyError
from storm_on_spark.api.streams.fields import Fields
from storm_on_spark.api.streams.grouping import GROUPINGS, FieldsGrouping, GlobalGrouping, Grouping
from storm_on_spark.api.streams.stream import GlobalStreamId, StreamSpec
from storm_on_spark.api.topology import Topology
from storm_on_spark.multilang import ShellBolt, ShellSpout
from storm_on_spark.streamparse.components.adapter import PystormBolt, PystormSpout
from storm_on_spark.streamparse.components.kinds import pystorm_class
from storm_on_spark.streamparse.java_objects import arguments_of, make_component

_Shell = TypeVar("_Shell", ShellBolt, ShellSpout)

SIMPLE_GROUPINGS: dict[str, type[Grouping]] = {
    kind.storm_type.lower(): kind
    for kind in GROUPINGS
    if kind.storm_type not in (FieldsGrouping.storm_type, Grouping.storm_type)
}
"""Groupings without arguments, by the names that Thrift gives them."""


def is_topology(value: object) -> bool:
    """Whether a value is a class that a user derived from `streamparse.Topology`, installed or stood in for."""
    return isinstance(value, type) and type(value).__name__ == "TopologyType" and bool(getattr(value, "specs", None))


def build(topology_class: Any, environment: str | None = None) -> Topology:
    """Returns the topology that a class describes.

    Args:
        topology_class: a class below `streamparse.Topology`.
        environment: which entry of `par` counts, where that is a dict; may be None where it has one entry.

    Raises:
        InvalidTopologyError: nothing here stands for the Java class of a component, a grouping is in Java, or `par` has
            no entry for the environment.
    """
    builder = TopologyBuilder()
    for spec in topology_class.specs:
        where = f'{place(topology_class)}: component "{spec.name}"'
        made = _component(spec, where)
        tasks = _tasks(spec, environment, where)
        conf = _conf(spec.config)
        if isinstance(made, BaseRichSpout):
            builder.set_spout(spec.name, made, tasks).add_configurations(conf)
            continue
        bolt = builder.set_bolt(spec.name, made, tasks)
        bolt.add_configurations(conf)
        for source, grouping in spec.inputs.items():
            found = _grouping(grouping, f"{where}: its input {source.componentId}")
            bolt.grouping(GlobalStreamId(source.componentId, source.streamId), found)
    return builder.create_topology()


def _component(spec: Any, where: str) -> BaseRichSpout | BaseRichBolt | BaseBasicBolt:
    streams = {name: StreamSpec(Fields(*info.output_fields), info.direct) for name, info in spec.outputs.items()}
    java = getattr(spec.component_object, "java_object", None)
    if java is not None:
        kind = "spout" if _is_named(spec, "JavaSpoutSpec") else "bolt"
        arguments, conf = arguments_of(java), _conf(spec.config)
        return make_component(where, spec.name, kind, java.full_class_name, arguments, streams, conf)
    cls, shell = spec.component_cls, getattr(spec.component_object, "shell", None)
    if shell is None:
        problem = "is a serialized Java object, and Java components do not run here; write it in Python"
        raise InvalidTopologyError(f"{where} {problem}", component=spec.name)
    if pystorm_class(cls, "Spout") is not None:
        return PystormSpout(cls, streams)
    if pystorm_class(cls, "Bolt") is not None:
        return PystormBolt(cls, streams)
    if _is_named(spec, "ShellSpoutSpec"):
        return _child(ShellSpout, spec, streams)
    if _is_named(spec, "ShellBoltSpec"):
        return _child(ShellBolt, spec, streams)
    problem = f"is the command {shell.execution_command!r}, but neither a ShellSpout nor a ShellBolt"
    raise InvalidTopologyError(f"{where} {problem}", component=spec.name)


def adapt(component_class: Any) -> PystormBolt | PystormSpout:
    """Returns a component of pystorm or streamparse as a spout or bolt, for example to test it.

    Args:
        component_class: a class of the user; its `outputs` are its streams.

    Raises:
        InvalidTopologyError: it is neither a spout nor a bolt, or its outputs are neither names nor streams.

    Example:
        >>> from storm_on_spark.streamparse import install
        >>> from storm_on_spark.testing import BoltTester, make_tuple
        >>> install()
        >>> from streamparse import Bolt
        >>> class Shout(Bolt):
        ...     outputs = ["word"]
        ...     def process(self, tup):
        ...         self.emit([tup.values.word.upper()])
        >>> tester = BoltTester(adapt(Shout))
        >>> tester.execute(make_tuple(["storm"], ["word"]))
        >>> tester.collector.values()
        [('STORM',)]
    """
    streams: dict[str, StreamSpec] = {}
    names: list[str] = []
    for output in getattr(component_class, "outputs", None) or ():
        if isinstance(output, str):
            names.append(output)
        elif hasattr(output, "name") and hasattr(output, "fields"):
            streams[output.name] = StreamSpec(Fields(*output.fields), bool(output.direct))
        else:
            raise InvalidTopologyError(
                f"{place(component_class)}: outputs has {output!r}, neither a field's name nor a Stream"
            )
    if names:
        streams["default"] = StreamSpec(Fields(*names))
    if pystorm_class(component_class, "Bolt") is not None:
        return PystormBolt(component_class, streams)
    if pystorm_class(component_class, "Spout") is not None:
        return PystormSpout(component_class, streams)
    raise InvalidTopologyError(f"{place(component_class)} is neither a bolt nor a spout of pystorm")


def place(cls: type) -> str:
    """Returns `FILE:LINE: class NAME` as far as that is known."""
    try:
        file, line = inspect.getsourcefile(cls), inspect.getsourcelines(cls)[1]
    except (OSError, TypeError):
        return f"class {cls.__qualname__}"
    return f"{file}:{line}: class {cls.__qualname__}"


def _is_named(spec: Any, name: str) -> bool:
    """Returns whether a specification is of a class of that name, streamparse's or the one that stands for it."""
    return any(kind.__name__ == name for kind in type(spec).__mro__)


def _child(kind: type[_Shell], spec: Any, streams: Mapping[str, StreamSpec]) -> _Shell:
    shell = spec.component_object.shell
    # As Storm does, which gives the whole script as one argument.
    command = [word for word in (shell.execution_command, shell.script) if word]
    fields = {name: stream.fields for name, stream in streams.items()}
    return kind(command, fields, direct_streams=[name for name, stream in streams.items() if stream.direct])


def _tasks(spec: Any, environment: str | None, where: str) -> int:
    if not isinstance(spec.par, Mapping):
        return int(spec.par)
    if environment is None and len(spec.par) == 1:
        return int(next(iter(spec.par.values())))
    if environment not in spec.par:
        known = ", ".join(map(repr, spec.par))
        given = "none is given" if environment is None else f"{environment!r} is given"
        raise InvalidTopologyError(
            f"{where} has a parallelism for the environments {known}, and {given}; name one with -e",
            component=spec.name,
        )
    return int(spec.par[environment])


def _conf(config: Any) -> dict[str, Any]:
    found = json.loads(config) if isinstance(config, str) else config
    return dict(found or {})


def _grouping(grouping: Any, where: str) -> Grouping:
    fields = getattr(grouping, "fields", None)
    if fields is not None:
        return FieldsGrouping(Fields(*fields)) if fields else GlobalGrouping()
    for name, kind in SIMPLE_GROUPINGS.items():
        if getattr(grouping, name, None) is not None:
            return kind()
    java = getattr(grouping, "custom_object", None)
    what = "a serialized Java object" if java is None else f"the Java class {java.full_class_name}"
    raise InvalidTopologyError(f"{where} is grouped by {what}, and Java does not run here; use a fields grouping")
