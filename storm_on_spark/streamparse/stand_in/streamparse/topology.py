"""The class from which users derive their topologies."""

from __future__ import annotations

from typing import Any

from storm_on_spark.streamparse.stand_in.pystorm.component import Component
from storm_on_spark.streamparse.stand_in.streamparse.specs import (
    ComponentSpec,
    JavaBoltSpec,
    JavaSpoutSpec,
    ShellBoltSpec,
    ShellSpoutSpec,
)
from storm_on_spark.streamparse.stand_in.streamparse.streams import Grouping, Stream
from storm_on_spark.streamparse.stand_in.streamparse.structs import Bolt, GlobalStreamId, SpoutSpec, StormTopology

__all__ = ["Grouping", "Stream", "Topology", "TopologyType"]


class TopologyType(type):
    """Checks a topology when its class is made.

    Raises:
        TypeError: an attribute is not a specification, or `config` is not a dict.
        ValueError: a name is used twice, a bolt has no input, a spout no output, a field or component is unknown, or
            there is no spout.
    """

    specs: list[ComponentSpec]
    config: dict[str, Any]

    def __new__(mcs, classname: str, bases: tuple[type, ...], class_dict: dict[str, Any]) -> TopologyType:
        """Makes the class."""
        specs = _named(class_dict)
        config = class_dict.setdefault("config", {})
        if not isinstance(config, dict):
            raise TypeError(f"Topology config must be a dictionary. Given: {config!r}")
        spouts: dict[str, SpoutSpec] = {}
        bolts: dict[str, Bolt] = {}
        for name, spec in specs.items():
            kind = spec.component_cls.__name__
            if isinstance(spec, (JavaBoltSpec, ShellBoltSpec)):
                if not spec.inputs:
                    raise ValueError(f'{kind} "{name}" requires at least one input, because it is a Bolt.')
                bolts[name] = Bolt(spec.component_object, spec.common)
            elif isinstance(spec, (JavaSpoutSpec, ShellSpoutSpec)):
                if not spec.outputs:
                    raise ValueError(f'{kind} "{name}" requires at least one output, because it is a Spout')
                spouts[name] = SpoutSpec(spec.component_object, spec.common)
            else:
                raise TypeError(f"Specifications should either be bolts or spouts.  Given: {spec!r}")
            _resolve(spec, specs)
        if bases and not spouts:
            raise ValueError("A Topology requires at least one Spout")
        class_dict.update(
            specs=list(specs.values()),
            thrift_spouts=spouts,
            thrift_bolts=bolts,
            thrift_topology=StormTopology(spouts, bolts),
        )
        return super().__new__(mcs, classname, bases, class_dict)


def _named(class_dict: dict[str, Any]) -> dict[str, ComponentSpec]:
    specs: dict[str, ComponentSpec] = {}
    for attribute, spec in class_dict.items():
        if isinstance(spec, Component):
            raise TypeError(
                f"Topology classes should have ComponentSpec attributes.  Did you forget to call the spec class method "
                f"for your component?  Given: {spec!r} as {attribute}"
            )
        if isinstance(spec, ComponentSpec):
            spec.name = attribute if spec.name is None else spec.name
            if spec.name in specs:
                raise ValueError(f"Duplicate component name: {spec.name}")
            specs[spec.name] = spec
    return specs


def _resolve(spec: ComponentSpec, specs: dict[str, ComponentSpec]) -> None:
    """Replaces specifications in the inputs by their names, and checks the fields of groupings."""
    found = {}
    for source, grouping in spec.inputs.items():
        known = source.componentId
        name = known.name if isinstance(known, ComponentSpec) else known
        if name not in specs:
            there = ", ".join(specs)
            raise ValueError(f'"{spec.name}" has the input {name!r}, which is not a component; there are: {there}')
        stream = specs[name].outputs.get(source.streamId)
        if stream is None:
            there = ", ".join(specs[name].outputs) or "none"
            raise KeyError(f"{name!r} has no stream {source.streamId!r}, an input of {spec.name!r}; there are: {there}")
        for field in grouping.fields or ():
            if field not in stream.output_fields:
                raise ValueError(
                    f"Field {field!r} specified in grouping is not a valid output field for the {name!r} "
                    f"{source.streamId!r} stream."
                )
        found[GlobalStreamId(name, source.streamId)] = grouping
    spec.inputs.clear()
    spec.inputs.update(found)


class Topology(metaclass=TopologyType):
    """A topology: its class attributes are what `spec()` of components returned.

    Example:
        >>> from storm_on_spark.streamparse.stand_in.streamparse import Bolt, Spout
        >>> class Words(Spout):
        ...     outputs = ["word"]
        >>> class Count(Bolt):
        ...     outputs = ["word", "count"]
        >>> class WordCount(Topology):
        ...     words = Words.spec()
        ...     count = Count.spec(inputs={words: Grouping.fields("word")}, par=2)
        >>> WordCount.specs
        [ShellSpoutSpec(Words, name='words', par=1), ShellBoltSpec(Count, name='count', par=2)]
    """
