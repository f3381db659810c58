"""From a class of `streamparse.Topology` to a topology."""

from __future__ import annotations

import inspect
import json
from collections.abc import Mapping
from typing import Any, TypeVar

from storm_on_spark.api.builder import TopologyBuilder
from storm_on_spark.api.errors import InvalidTopologyError
from storm_on_spark.api.streams.fields import Fields
from storm_on_spark.api.streams.grouping import (
    AllGrouping,
    DirectGrouping,
    FieldsGrouping,
    GlobalGrouping,
    Grouping,
    LocalOrShuffleGrouping,
    NoneGrouping,
    ShuffleGrouping,
)
from storm_on_spark.api.streams.stream import GlobalStreamId, StreamSpec
from storm_on_spark.api.topology import Topology
from storm_on_spark.multilang import ShellBolt, ShellSpout
from storm_on_spark.streamparse.adapter import PystormBolt, PystormSpout
from storm_on_spark.streamparse.kinds import pystorm_class

_Shell = TypeVar("_Shell", ShellBolt, ShellSpout)

SIMPLE_GROUPINGS: dict[str, type[Grouping]] = {
    "shuffle": ShuffleGrouping,
    "all": AllGrouping,
    "none": NoneGrouping,
    "direct": DirectGrouping,
    "local_or_shuffle": LocalOrShuffleGrouping,
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
        InvalidTopologyError: a component is in Java, or a grouping, or `par` has no entry for the environment.
    """
    builder = TopologyBuilder()
    for spec in topology_class.specs:
        where = f'{place(topology_class)}: component "{spec.name}"'
        shell = _shell_kind(spec)
        if shell is None and (pystorm_class(spec.component_cls, "Component") is None or _in_java(spec)):
            raise InvalidTopologyError(f"{where} {_refusal(spec)}", component=spec.name)
        tasks = _tasks(spec, environment, where)
        conf = _conf(spec.config)
        streams = {name: StreamSpec(Fields(*info.output_fields), info.direct) for name, info in spec.outputs.items()}
        if shell == "spout" or pystorm_class(spec.component_cls, "Spout") is not None:
            spout = _child(ShellSpout, spec, streams) if shell else PystormSpout(spec.component_cls, streams)
            builder.set_spout(spec.name, spout, tasks).add_configurations(conf)
        elif shell == "bolt" or pystorm_class(spec.component_cls, "Bolt") is not None:
            made = _child(ShellBolt, spec, streams) if shell else PystormBolt(spec.component_cls, streams)
            bolt = builder.set_bolt(spec.name, made, tasks)
            bolt.add_configurations(conf)
            for source, grouping in spec.inputs.items():
                found = _grouping(grouping, f"{where}: its input {source.componentId}")
                bolt.grouping(GlobalStreamId(source.componentId, source.streamId), found)
        else:
            raise InvalidTopologyError(f"{where} {_refusal(spec)}", component=spec.name)
    return builder.create_topology()


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


def _shell_kind(spec: Any) -> str | None:
    """Returns whether a specification is of a command as spout or bolt; None for a component of pystorm or in Java."""
    in_process = any(pystorm_class(spec.component_cls, kind) is not None for kind in ("Bolt", "Spout"))
    if in_process or _in_java(spec):
        return None
    kinds = {kind.__name__ for kind in type(spec).__mro__}
    return "spout" if "ShellSpoutSpec" in kinds else "bolt" if "ShellBoltSpec" in kinds else None


def _child(kind: type[_Shell], spec: Any, streams: Mapping[str, StreamSpec]) -> _Shell:
    shell = spec.component_object.shell
    # As Storm does, which gives the whole script as one argument.
    command = [word for word in (shell.execution_command, shell.script) if word]
    fields = {name: stream.fields for name, stream in streams.items()}
    return kind(command, fields, direct_streams=[name for name, stream in streams.items() if stream.direct])


def _in_java(spec: Any) -> bool:
    return getattr(spec.component_object, "shell", None) is None


def _refusal(spec: Any) -> str:
    java = getattr(spec.component_object, "java_object", None)
    if java is not None:
        return f"is the Java class {java.full_class_name}, and Java components do not run here; write it in Python"
    shell = getattr(spec.component_object, "shell", None)
    if shell is None:
        return "is a serialized Java object, and Java components do not run here; write it in Python"
    return f"is the command {shell.execution_command!r}, but neither a ShellSpout nor a ShellBolt"


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
