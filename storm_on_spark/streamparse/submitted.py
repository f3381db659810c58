"""Topologies of commands as JSON: what `sparse submit` sends, written by a Nimbus and built where the topology runs."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import Any, Final

from storm_on_spark.api.building.builder import TopologyBuilder
from storm_on_spark.api.component import BaseBasicBolt, BaseRichBolt, BaseRichSpout
from storm_on_spark.api.errors import InvalidTopologyError
from storm_on_spark.api.streams.fields import Fields
from storm_on_spark.api.streams.grouping import FieldsGrouping, GlobalGrouping, Grouping
from storm_on_spark.api.streams.stream import GlobalStreamId, StreamSpec
from storm_on_spark.api.text.wording import other_format
from storm_on_spark.api.topology import Topology
from storm_on_spark.multilang import ShellBolt, ShellSpout
from storm_on_spark.streamparse import finder
from storm_on_spark.streamparse.build import SIMPLE_GROUPINGS
from storm_on_spark.streamparse.components.adapter import PystormBolt, PystormSpout
from storm_on_spark.streamparse.components.kinds import pystorm_class
from storm_on_spark.streamparse.java_objects import make_component

VERSION: Final = 1
_RUNNER: Final = "streamparse_run"
_MOST_WORDS: Final = 10


def build_submitted(document: Mapping[str, Any], *, in_process: bool = True) -> Topology:
    """Returns the topology that a document describes.

    Args:
        document: `version`, and `components` by name: `kind`, `command`, `script`, `tasks`, `conf`, `streams` (by id,
            with `fields` and `direct`) and `inputs` (with `component`, `stream`, `grouping` and `fields`). In place of
            `command` and `script`, `java` has the `class` and `arguments` of a Java object.
        in_process: whether components that `streamparse_run` would start are imported, and run without a child.

    Raises:
        InvalidTopologyError: a component's class is not there or unknown Java, or no topology can be made of it.

    Example:
        >>> streams = {"default": {"fields": ["word"], "direct": False}}
        >>> words = {"kind": "spout", "command": "node", "script": "words.js", "tasks": 1, "conf": {},
        ...          "streams": streams, "inputs": []}
        >>> build_submitted({"version": 1, "components": {"words": words}})
        Topology(spouts=['words'], bolts=[])
    """
    if document.get("version") != VERSION:
        reason = other_format("the submitted topology", document.get("version"), VERSION, "submit it again")
        raise InvalidTopologyError(reason)
    builder = TopologyBuilder()
    for name, found in document["components"].items():
        streams = {
            key: StreamSpec(Fields(*value["fields"]), value["direct"]) for key, value in found["streams"].items()
        }
        made = _component(name, found, streams, in_process)
        if isinstance(made, BaseRichSpout):
            builder.set_spout(name, made, found["tasks"]).add_configurations(found["conf"])
            continue
        bolt = builder.set_bolt(name, made, found["tasks"])
        bolt.add_configurations(found["conf"])
        for each in found["inputs"]:
            bolt.grouping(GlobalStreamId(each["component"], each["stream"]), _grouping(each))
    return builder.create_topology()


def _component(
    name: str, found: Mapping[str, Any], streams: Mapping[str, StreamSpec], in_process: bool
) -> BaseRichSpout | BaseRichBolt | BaseBasicBolt:
    java = found.get("java")
    if java is not None:
        where = f'component "{name}"'
        return make_component(where, name, found["kind"], java["class"], java["arguments"], streams, found["conf"])
    command, script, spout = found["command"], found["script"], found["kind"] == "spout"
    target = _pystorm_target(command, script)
    if in_process and target is not None:
        cls = _pystorm(name, target, "Spout" if spout else "Bolt")
        return PystormSpout(cls, streams) if spout else PystormBolt(cls, streams)
    words = [word for word in (command, script) if word]
    fields = {key: stream.fields for key, stream in streams.items()}
    direct = [key for key, stream in streams.items() if stream.direct]
    return (ShellSpout if spout else ShellBolt)(words, fields, direct_streams=direct)


def _pystorm_target(command: str, script: str) -> str | None:
    """Returns the class that `streamparse_run` would import; None for any other command.

    >>> _pystorm_target("/venv/bin/streamparse_run", "-s json bolts.count.Count")
    'bolts.count.Count'
    >>> _pystorm_target("node", "count.js")
    """
    if PurePosixPath(command).name != _RUNNER:
        return None
    words = script.split(maxsplit=_MOST_WORDS)
    while words and words[0].startswith("-"):
        del words[: 1 if "=" in words[0] else 2]
    return words[0] if words else None


def _pystorm(name: str, target: str, kind: str) -> type:
    finder.install()
    module, _, attribute = target.rpartition(".")
    where = f'component "{name}": {target[:200]}'
    if not attribute.isidentifier() or not all(part.isidentifier() for part in module.split(".")):
        raise InvalidTopologyError(f"{where} is not the name of a class in a module", component=name)
    try:
        found = getattr(importlib.import_module(module), attribute)
    except (ImportError, AttributeError) as error:
        raise InvalidTopologyError(f"{where} is not in the code that was uploaded: {error}", component=name) from error
    if not isinstance(found, type) or pystorm_class(found, kind) is None:
        raise InvalidTopologyError(f"{where} is no {kind.lower()} of pystorm", component=name)
    return found


def _grouping(found: Mapping[str, Any]) -> Grouping:
    if found["grouping"] == "fields":
        return FieldsGrouping(Fields(*found["fields"])) if found["fields"] else GlobalGrouping()
    return SIMPLE_GROUPINGS[found["grouping"]]()
