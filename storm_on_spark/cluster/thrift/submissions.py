"""A `StormTopology`, checked, and packed with the uploaded jar as a topology of this package.

No code of the client is imported or executed here.
"""

from __future__ import annotations

import contextlib
import json
import time
import uuid
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from storm_on_spark.api.config import Config
from storm_on_spark.api.config.secrets import hidden, without_secrets
from storm_on_spark.api.errors import ConfigError, InvalidTopologyError, StormError
from storm_on_spark.api.text.wording import name_fault
from storm_on_spark.cluster.code.checksums import CODE, artifacts_of
from storm_on_spark.cluster.code.packing import archive
from storm_on_spark.cluster.code.packing.bundle import pack_files
from storm_on_spark.cluster.errors import CodeError
from storm_on_spark.cluster.nimbus.accepting.submission import SubmitRequest, check_name
from storm_on_spark.cluster.nimbus.control import Control
from storm_on_spark.cluster.plan_summary import MAX_TASKS, PlanSummary
from storm_on_spark.cluster.thrift.interface import interface
from storm_on_spark.cluster.thrift.uploads import Uploads
from storm_on_spark.plan.compile import compile_graph
from storm_on_spark.streamparse.build import SIMPLE_GROUPINGS
from storm_on_spark.streamparse.java_objects import arguments_of
from storm_on_spark.streamparse.submitted import VERSION, build_submitted

ENTRY: Final = "storm_thrift_topology.py"
DESCRIPTION: Final = "storm_thrift_topology.json"
_RESOURCES: Final = "resources/"
_LOADING: Final = f'''"""The topology that a client submitted over Thrift."""

import json
from pathlib import Path

from storm_on_spark.streamparse.java_objects import arguments_of
from storm_on_spark.streamparse.submitted import build_submitted

topology = build_submitted(json.loads(Path(__file__).with_name("{DESCRIPTION}").read_text("utf-8")))
'''
_MOST_COMPONENTS: Final = 1000
_MOST_ARGUMENTS: Final = 100
_MOST_BYTES: Final = 64 << 20
"""Of a description; a call has less."""
_COUNTS: Final = (
    Config.TOPOLOGY_TASKS,
    Config.TOPOLOGY_WORKERS,
    Config.TOPOLOGY_ACKER_EXECUTORS,
    Config.TOPOLOGY_MAX_TASK_PARALLELISM,
)
_STREAMPARSES: Final = frozenset({"topology.original_name", "topology.python.path"})
"""Keys that streamparse adds for its own use, under names that are Storm's."""
_SUBMITTED_SECS: Final = 5.0
_LOOK_SECS: Final = 0.02


def submit(
    control: Control,
    uploads: Uploads,
    name: str,
    location: str,
    conf: dict[str, Any],
    topology: Any,
    active: bool,
    owner: str | None = None,
) -> str:
    """Submits a topology.

    Args:
        control: the Nimbus.
        uploads: its uploads.
        name: of the topology.
        location: of the uploaded jar; the files in its folder `resources` are the components' code.
        conf: the topology's configuration.
        topology: a `StormTopology`.
        active: whether its spouts emit at once.
        owner: whose it is; the user of this Nimbus for None.

    Returns:
        The topology's id. It is listed, or its code is being copied. The upload is gone, also after an error.

    Raises:
        InvalidTopologyError: it is none, or has components in Java that nothing here stands for.
        ConfigError: the configuration is wrong.
        AlreadyAliveError: another topology has the name.
        CodeError: the upload is not there, or no jar.
    """
    control.fence()
    key = uuid.uuid4().hex
    try:
        check_name(name)
        conf = {key: value for key, value in conf.items() if key not in _STREAMPARSES}
        _check_counts(conf, "jsonConf")
        document = description(topology)
        plan = _plan(document, conf)
        with control.inbox.using(key) as folder:
            control.inbox.make(folder)
            # One at a time: a jar is unpacked in memory.
            with uploads.taking(control.inbox, location) as jar, uploads.packing:
                pack_files(_files(jar, document), ENTRY, folder, conf=conf, plan=plan)
            request = SubmitRequest(
                key=key,
                name=name,
                conf=without_secrets(conf),
                owner=owner or control.user,
                initial_status="ACTIVE" if active else "INACTIVE",
                artifacts=tuple(artifacts_of(folder)),
            )
            topology_id = control.submit(request)
    finally:
        # A client that was refused uploads again; the inbox has room for few.
        control.inbox.remove(key)
        with contextlib.suppress(CodeError):
            uploads.remove(control.inbox, location)
    # As with Storm, a client that has its answer finds the topology.
    deadline = time.monotonic() + _SUBMITTED_SECS
    while topology_id not in control.snapshot().storms and time.monotonic() < deadline:
        time.sleep(_LOOK_SECS)
    return topology_id


def _plan(document: Mapping[str, Any], conf: Mapping[str, Any]) -> dict[str, Any]:
    try:
        graph = compile_graph(build_submitted(document, in_process=False), conf)
    except (InvalidTopologyError, ConfigError):
        raise
    except StormError as error:
        raise InvalidTopologyError(str(error)) from error
    return PlanSummary.of_graph(graph).document()


def submitted(control: Control, topology_id: str) -> Any:
    """Returns the `StormTopology` that was submitted.

    Raises:
        CodeError: the topology was not submitted over Thrift, or its code is not on this host.
    """
    path = control.artifact(topology_id, CODE)
    try:
        with zipfile.ZipFile(path) as code:
            if code.getinfo(DESCRIPTION).file_size > _MOST_BYTES:
                raise CodeError(f"{topology_id} has too large a description")
            document = json.loads(code.read(DESCRIPTION))
    except KeyError:
        raise CodeError(f"{topology_id} was not submitted over Thrift, so there is no StormTopology of it") from None
    types = interface()
    found = types.StormTopology(spouts={}, bolts={}, state_spouts={})
    for name, part in document["components"].items():
        made = _component_object(part)
        common = types.ComponentCommon(
            inputs=dict(_thrift_input(each) for each in part["inputs"]),
            streams={
                key: types.StreamInfo(output_fields=stream["fields"], direct=stream["direct"])
                for key, stream in part["streams"].items()
            },
            parallelism_hint=part["tasks"],
            json_conf=json.dumps(hidden(part["conf"])),
        )
        if part["kind"] == "spout":
            found.spouts[name] = types.SpoutSpec(spout_object=made, common=common)
        else:
            found.bolts[name] = types.Bolt(bolt_object=made, common=common)
    return found


def _component_object(part: Mapping[str, Any]) -> Any:
    types = interface()
    java = part.get("java")
    if java is None:
        return types.ComponentObject(shell=types.ShellComponent(part["command"], part["script"]))
    names = {bool: "bool_arg", int: "long_arg", float: "double_arg", str: "string_arg"}
    arguments = [types.JavaObjectArg(**{names[type(value)]: value}) for value in java["arguments"]]
    return types.ComponentObject(java_object=types.JavaObject(java["class"], arguments))


def _thrift_input(found: Mapping[str, Any]) -> tuple[Any, Any]:
    types = interface()
    name = found["grouping"]
    grouping = types.Grouping(**{name: found["fields"] if name == "fields" else types.NullStruct()})
    return types.GlobalStreamId(componentId=found["component"], streamId=found["stream"]), grouping


def description(topology: Any) -> dict[str, Any]:
    """Returns a `StormTopology` as the document that `build_submitted` reads.

    Raises:
        InvalidTopologyError: a part is missing or of the wrong type, or in Java.
    """
    if topology is None:
        raise InvalidTopologyError("submitTopology: there is no topology")
    if topology.state_spouts:
        raise InvalidTopologyError(f"state spouts are not supported: {_some(topology.state_spouts)}")
    if topology.worker_hooks:
        raise InvalidTopologyError("worker hooks are serialized Java objects, and Java does not run here")
    if topology.dependency_jars or topology.dependency_artifacts:
        raise InvalidTopologyError("a topology can't depend on jars, as Java does not run here")
    spouts, bolts = topology.spouts or {}, topology.bolts or {}
    if len(spouts) + len(bolts) > _MOST_COMPONENTS:
        raise InvalidTopologyError(f"{len(spouts) + len(bolts):,} components; at most {_MOST_COMPONENTS:,} are allowed")
    found: dict[str, Any] = {}
    for kind, parts in (("spout", spouts), ("bolt", bolts)):
        for name, part in parts.items():
            where = f'component "{_id(name, "the name of a component")[:200]}"'
            if name in found:
                raise InvalidTopologyError(f"{where} is a spout and a bolt")
            found[name] = _component(kind, part, where)
    total = sum(part["tasks"] for part in found.values())
    if total > MAX_TASKS:
        raise InvalidTopologyError(f"{total:,} tasks; a topology has at most {MAX_TASKS:,}")
    return {"version": VERSION, "components": found}


def _component(kind: str, part: Any, where: str) -> dict[str, Any]:
    made, common = getattr(part, f"{kind}_object"), part.common
    if made is None or common is None:
        raise InvalidTopologyError(f"{where} has no {kind}_object or no common")
    if made.java_object is not None:
        java_class = _text(made.java_object.full_class_name, f"{where}: full_class_name")
        if len(made.java_object.args_list or ()) > _MOST_ARGUMENTS:
            raise InvalidTopologyError(f"{where} has more than {_MOST_ARGUMENTS} arguments for {java_class[:200]}")
        arguments = [each for each in arguments_of(made.java_object) if not isinstance(each, bytes)]
        if len(arguments) != len(made.java_object.args_list or ()):
            raise InvalidTopologyError(f"{where} has a binary argument, which nothing here takes")
        runs: dict[str, Any] = {"java": {"class": java_class, "arguments": arguments}}
    elif made.shell is not None:
        runs = {
            "command": _text(made.shell.execution_command, f"{where}: execution_command"),
            "script": _text(made.shell.script or "", f"{where}: script"),
        }
    else:
        raise InvalidTopologyError(f"{where} is a serialized Java object, and Java components do not run here")
    conf = parsed(common.json_conf, f"{where}: json_conf")
    _check_counts(conf, f"{where}: json_conf")
    tasks = 1 if common.parallelism_hint is None else common.parallelism_hint
    if not 1 <= tasks <= MAX_TASKS:
        raise InvalidTopologyError(f"{where} has a parallelism of {tasks:,}; 1 to {MAX_TASKS:,} are allowed")
    return {
        "kind": kind,
        **runs,
        "tasks": tasks,
        "conf": conf,
        "streams": {
            _id(name, f"{where}: the id of a stream"): {
                "fields": [_id(field, f"{where}: a field") for field in info.output_fields or ()],
                "direct": bool(info.direct),
            }
            for name, info in (common.streams or {}).items()
        },
        "inputs": [_input(source, grouping, where) for source, grouping in (common.inputs or {}).items()],
    }


def _input(source: Any, grouping: Any, where: str) -> dict[str, Any]:
    component = _id(source.componentId, f"{where}: componentId of an input")
    found = {"component": component, "stream": _id(source.streamId, f"{where}: streamId of an input"), "fields": []}
    if grouping.fields is not None:
        return {**found, "grouping": "fields", "fields": [_id(name, f"{where}: a field") for name in grouping.fields]}
    for name in SIMPLE_GROUPINGS:
        if getattr(grouping, name) is not None:
            return {**found, "grouping": name}
    raise InvalidTopologyError(
        f"{where}: its input {component[:200]} is grouped in Java, which does not run here; use a fields grouping"
    )


def _files(jar: Path, document: Mapping[str, Any]) -> dict[str, bytes]:
    """Returns the archive's files: `resources` of the jar, and from there Python modules where they can be imported."""
    found: dict[str, bytes] = {}
    for name, content in archive.read_all(jar).items():
        if name.startswith(_RESOURCES):
            found[name] = content
            if name.endswith(".py"):
                found[name.removeprefix(_RESOURCES)] = content
    found[ENTRY] = _LOADING.encode()
    found[DESCRIPTION] = json.dumps(document).encode()
    return found


def _check_counts(conf: Mapping[str, Any], where: str) -> None:
    """Checks what decides how large a plan becomes, before there is one."""
    for key in _COUNTS:
        value = conf.get(key)
        if value is not None and (not isinstance(value, int) or isinstance(value, bool) or value > MAX_TASKS):
            raise InvalidTopologyError(f"{where}: {key} is {value!r:.100}; expected a number up to {MAX_TASKS:,}")


def parsed(text: str | None, what: str) -> dict[str, Any]:
    """Returns a JSON object that a call has as text; `{}` for none.

    Raises:
        InvalidTopologyError: it is something else.
    """
    if not text:
        return {}
    try:
        found = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InvalidTopologyError(f"{what} is not JSON: {error}") from error
    if not isinstance(found, dict):
        raise InvalidTopologyError(f"{what}: expected a JSON object, given {type(found).__name__}")
    return found


def _text(value: object, what: str) -> str:
    if not isinstance(value, str):
        raise InvalidTopologyError(f"{what}: expected text, given {type(value).__name__}")
    return value


def _id(value: object, what: str) -> str:
    if fault := name_fault(value):
        raise InvalidTopologyError(f"{what} {fault}")
    return str(value)


def _some(names: Any) -> str:
    return ", ".join(str(name)[:50] for name in list(names)[:5])
