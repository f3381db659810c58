"""Specifications: what `spec()` of a component returns, and a topology is made of."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from storm_on_spark.streamparse.stand_in.streamparse.streams import Grouping, GroupingValue, Stream
from storm_on_spark.streamparse.stand_in.streamparse.structs import (
    ComponentCommon,
    ComponentObject,
    GlobalStreamId,
    JavaObject,
    ShellComponent,
    StreamInfo,
    java_argument,
)


class ComponentSpec:
    """A component of a topology: its class, inputs, outputs, parallelism and configuration.

    Raises:
        TypeError: an argument is of a wrong type.
        ValueError: an argument has a wrong value.
    """

    component_object: ComponentObject

    def __init__(
        self,
        component_cls: Any,
        name: str | None = None,
        inputs: Any = None,
        par: Any = 1,
        config: Any = None,
        outputs: Any = None,
    ) -> None:
        self.component_cls = component_cls
        self.name = name
        self.par = _parallelism(component_cls.par if par is None else par)
        self.config = _config(component_cls.config if config is None else config)
        self.outputs = _outputs(component_cls.outputs if outputs is None else outputs)
        self.inputs = _inputs(inputs)
        self.common = ComponentCommon(self.inputs, self.outputs, self.par, self.config)

    def __getitem__(self, stream: str) -> GlobalStreamId:
        if stream not in self.outputs:
            raise KeyError(f"Invalid stream for {self.name}: {stream!r}. Valid streams are: {list(self.outputs)}")
        return GlobalStreamId(self.name or self, stream)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.component_cls.__name__}, name={self.name!r}, par={self.par!r})"


class JavaComponentSpec(ComponentSpec):
    """A component in Java."""

    def __init__(
        self,
        component_cls: Any,
        serialized_java: bytes | None = None,
        full_class_name: str | None = None,
        args_list: Sequence[Any] | None = None,
        **common: Any,
    ) -> None:
        super().__init__(component_cls, **common)
        if serialized_java is not None:
            if not isinstance(serialized_java, bytes):
                raise TypeError(f"serialized_java must be either bytes or None. Given: {serialized_java!r}")
            self.component_object = ComponentObject(serialized_java=serialized_java)
            return
        if not full_class_name:
            raise ValueError("full_class_name is required")
        if args_list is None:
            raise TypeError("args_list must not be None")
        java_object = JavaObject(full_class_name, [java_argument(value) for value in args_list])
        self.component_object = ComponentObject(java_object=java_object)


class ShellComponentSpec(ComponentSpec):
    """A component that Storm starts by a command; one in Python is such, too."""

    def __init__(
        self, component_cls: Any, command: str | None = None, script: str | None = None, **common: Any
    ) -> None:
        super().__init__(component_cls, **common)
        if not command:
            raise ValueError("command is required")
        if script is None:
            raise TypeError("script must not be None; for a command without arguments it is an empty string")
        self.component_object = ComponentObject(shell=ShellComponent(command, script))


class JavaBoltSpec(JavaComponentSpec):
    """A bolt in Java."""


class JavaSpoutSpec(JavaComponentSpec):
    """A spout in Java."""


class ShellBoltSpec(ShellComponentSpec):
    """A bolt that is a command."""


class ShellSpoutSpec(ShellComponentSpec):
    """A spout that is a command."""


def _parallelism(par: Any) -> Any:
    for environment, tasks in par.items() if isinstance(par, dict) else ((None, par),):
        where = "" if environment is None else f" for stage {environment!r}"
        if not isinstance(environment, (str, type(None))):
            raise TypeError(f"If par is a dict, it maps from names of environments to integers. Given: {environment!r}")
        if not isinstance(tasks, int):
            raise TypeError(f"Parallelism hint{where} must be an integer greater than 0. Given: {tasks!r}")
        if tasks < 1:
            raise ValueError(f"Parallelism hint{where} must be an integer greater than 0. Given: {tasks}")
    return par


def _config(config: Any) -> str:
    if not isinstance(config, (dict, type(None))):
        raise TypeError(f"Config must either be a dict or None.  Given: {config!r}")
    return json.dumps(config or {})


def _outputs(outputs: Any) -> dict[str, StreamInfo]:
    if not isinstance(outputs, (list, tuple, type(None))):
        raise TypeError(f"Outputs must either be a list of strings or a list of Streams.  Given: {outputs!r}")
    streams: dict[str, StreamInfo] = {}
    for output in outputs or ():
        if isinstance(output, Stream):
            streams[output.name] = StreamInfo(output.fields, output.direct)
        elif isinstance(output, str):
            streams.setdefault("default", StreamInfo()).output_fields.append(output)
        else:
            raise TypeError(
                f"Outputs must either be a list of strings or a list of Streams.  Invalid entry: {output!r}"
            )
    return streams


def _inputs(inputs: Any) -> dict[GlobalStreamId, GroupingValue]:
    if isinstance(inputs, Mapping):
        found = {}
        for key, grouping in inputs.items():
            if not isinstance(key, (GlobalStreamId, ComponentSpec)) or not isinstance(grouping, GroupingValue):
                raise TypeError(
                    "If inputs is a dict, it maps from ComponentSpec or GlobalStreamId objects to Grouping objects.  "
                    f"Given key: {key!r}; given value: {grouping!r}"
                )
            found[key["default"] if isinstance(key, ComponentSpec) else key] = grouping
        return found
    if isinstance(inputs, ComponentSpec):
        inputs = [inputs]
    if not isinstance(inputs, (list, tuple, type(None))):
        raise TypeError(f"Inputs must either be a list, dict, or None.  Given: {inputs!r}")
    found = {}
    for source in inputs or ():
        if isinstance(source, ComponentSpec):
            default = source.outputs.get("default")
            direct = default is not None and default.direct
            found[GlobalStreamId(source.name or source, "default")] = Grouping.DIRECT if direct else Grouping.SHUFFLE
        elif isinstance(source, GlobalStreamId):
            found[source] = Grouping.SHUFFLE
        else:
            raise TypeError(f"Inputs must be ComponentSpec or GlobalStreamId objects.  Given: {source!r}")
    return found
