"""Java objects in Thrift's terms, as streamparse's `JavaSpout` and `JavaBolt` give them: known ones are made here."""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from typing import Any

from storm_on_spark.api.building.java_classes import CLASSES, MAKERS, refusal
from storm_on_spark.api.component import BaseBasicBolt, BaseComponent, BaseRichBolt, BaseRichSpout
from storm_on_spark.api.errors import InvalidTopologyError, StormError
from storm_on_spark.api.streams.declarer import OutputFieldsDeclarer
from storm_on_spark.api.streams.stream import StreamSpec

_ARGUMENTS = ("bool_arg", "int_arg", "long_arg", "double_arg", "string_arg", "binary_arg")


def arguments_of(java_object: Any) -> list[Any]:
    """Returns the arguments of a `JavaObject` of Thrift, which has each as one attribute of several."""
    found = []
    for given in java_object.args_list or ():
        values = [getattr(given, name, None) for name in _ARGUMENTS]
        found.append(next((value for value in values if value is not None), None))
    return found


def make_component(
    where: str,
    name: str,
    kind: str,
    java_class: str,
    arguments: Sequence[Any],
    streams: Mapping[str, StreamSpec],
    conf: Mapping[str, Any],
) -> BaseRichSpout | BaseRichBolt | BaseBasicBolt:
    """Returns the component that stands for a Java object.

    Args:
        where: begins each message.
        name: of the component.
        kind: `spout` or `bolt`.
        java_class: the full name of its class.
        arguments: of its constructor.
        streams: its outputs, as the topology declares them.
        conf: its configuration.

    Raises:
        InvalidTopologyError: nothing stands for the class, or the arguments or outputs don't fit.

    Example:
        >>> from storm_on_spark.api.streams.fields import Fields
        >>> streams = {"default": StreamSpec(Fields("word"))}
        >>> java_class = "org.apache.storm.testing.TestWordSpout"
        >>> type(make_component("here", "words", "spout", java_class, [True], streams, {})).__name__
        'TestWordSpout'
    """
    target = MAKERS.get(java_class) or CLASSES.get(java_class)
    if target is None:
        sentence = refusal(java_class)
        if sentence is None:
            sentence = f"the Java class {java_class[:200]}, and Java components do not run here; write it in Python"
        raise InvalidTopologyError(f"{where} is {sentence}", component=name)
    module, _, attribute = target.rpartition(".")
    try:
        function = getattr(importlib.import_module(module), attribute)
        made = function(arguments, streams, conf) if java_class in MAKERS else function(*arguments)
        declarer = OutputFieldsDeclarer(name)
        if isinstance(made, BaseComponent):
            made.declare_output_fields(declarer)
    except (StormError, TypeError, ValueError) as error:
        raise InvalidTopologyError(f"{where} is the Java class {java_class}: {error}", component=name) from error
    wanted = (BaseRichSpout,) if kind == "spout" else (BaseRichBolt, BaseBasicBolt)
    if not isinstance(made, wanted):
        raise InvalidTopologyError(f"{where} is the Java class {java_class}, which is no {kind}", component=name)
    if declarer.streams != dict(streams):
        raise InvalidTopologyError(
            f"{where} is the Java class {java_class}, whose outputs are {_shown(declarer.streams)}; the topology "
            f"declares {_shown(streams)}",
            component=name,
        )
    return made


def _shown(streams: Mapping[str, StreamSpec]) -> str:
    return "; ".join(f"{name}: {', '.join(spec.fields)}" for name, spec in streams.items()) or "none"
