"""The structures of Storm's Thrift interface that streamparse's topologies show, as plain values."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class NullStruct:
    """Says that something holds, and nothing more."""


@dataclass(frozen=True)
class GlobalStreamId:
    """A stream of a component; the component is its id, or its specification while that has no name."""

    componentId: Any  # noqa: N815 # Storm's name
    streamId: str  # noqa: N815


@dataclass
class StreamInfo:
    """The fields of a stream."""

    output_fields: list[str] = field(default_factory=list)
    direct: bool = False


@dataclass(frozen=True)
class JavaObjectArg:
    """An argument of a Java constructor; one of its attributes is set."""

    int_arg: int | None = None
    long_arg: int | None = None
    string_arg: str | None = None
    bool_arg: bool | None = None
    binary_arg: bytes | None = None
    double_arg: float | None = None


@dataclass
class JavaObject:
    """A Java object by its class and arguments."""

    full_class_name: str
    args_list: list[JavaObjectArg]


@dataclass
class ShellComponent:
    """A command and its arguments."""

    execution_command: str
    script: str


@dataclass
class ComponentObject:
    """What a component is; one of its attributes is set."""

    serialized_java: bytes | None = None
    shell: ShellComponent | None = None
    java_object: JavaObject | None = None


@dataclass
class ComponentCommon:
    """What all components have."""

    inputs: dict[GlobalStreamId, Any]
    streams: dict[str, StreamInfo]
    parallelism_hint: Any
    json_conf: str


@dataclass
class Bolt:
    """A bolt of a topology."""

    bolt_object: ComponentObject
    common: ComponentCommon


@dataclass
class SpoutSpec:
    """A spout of a topology."""

    spout_object: ComponentObject
    common: ComponentCommon


@dataclass
class StormTopology:
    """Spouts and bolts by id."""

    spouts: dict[str, SpoutSpec]
    bolts: dict[str, Bolt]


def java_argument(value: object) -> JavaObjectArg:
    """Returns a Python value as an argument for Java.

    Raises:
        TypeError: there is nothing like it.

    Example:
        >>> java_argument(True).bool_arg, java_argument(3).long_arg
        (True, 3)
    """
    if isinstance(value, bool):
        return JavaObjectArg(bool_arg=value)
    if isinstance(value, int):
        return JavaObjectArg(long_arg=value)
    if isinstance(value, bytes):
        return JavaObjectArg(binary_arg=value)
    if isinstance(value, str):
        return JavaObjectArg(string_arg=value)
    if isinstance(value, float):
        return JavaObjectArg(double_arg=value)
    raise TypeError(f"an argument for Java must be a bool, int, float, str or bytes. Given: {value!r}")
