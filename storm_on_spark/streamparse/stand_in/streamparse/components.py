"""Spouts and bolts with `spec`, by which a topology names them."""

from __future__ import annotations

from typing import Any, NoReturn

from storm_on_spark.streamparse.stand_in.pystorm import bolt, component, spout
from storm_on_spark.streamparse.stand_in.pystorm.component import StormHandler, Tuple
from storm_on_spark.streamparse.stand_in.streamparse.specs import (
    JavaBoltSpec,
    JavaSpoutSpec,
    ShellBoltSpec,
    ShellSpoutSpec,
)

__all__ = [
    "BatchingBolt",
    "Bolt",
    "Component",
    "JavaBolt",
    "JavaSpout",
    "ReliableSpout",
    "ShellBolt",
    "ShellSpout",
    "Spout",
    "StormHandler",
    "TicklessBatchingBolt",
    "Tuple",
]


class Component(component.Component):
    """A component of a topology."""

    outputs: Any = None
    """Its fields, or `Stream` objects."""
    par: Any = 1
    """How many tasks it has, where `spec` says nothing."""
    config: Any = None
    """Its configuration, where `spec` says nothing."""

    @classmethod
    def spec(cls, *args: Any, **kwargs: Any) -> Any:
        """Raises a `TypeError`: only spouts and bolts have a specification."""
        _refuse(cls)


def _refuse(cls: type) -> NoReturn:
    raise TypeError(f"Specifications should either be bolts or spouts. Given: {cls!r}")


class JavaBolt(Component):
    """A bolt in Java."""

    @classmethod
    def spec(
        cls,
        name: str | None = None,
        serialized_java: bytes | None = None,
        full_class_name: str | None = None,
        args_list: Any = None,
        inputs: Any = None,
        par: Any = 1,
        config: Any = None,
        outputs: Any = None,
    ) -> JavaBoltSpec:
        """Returns its specification."""
        common = {"name": name, "inputs": inputs, "par": par, "config": config, "outputs": outputs}
        return JavaBoltSpec(cls, serialized_java, full_class_name, args_list, **common)


class JavaSpout(Component):
    """A spout in Java."""

    @classmethod
    def spec(
        cls,
        name: str | None = None,
        serialized_java: bytes | None = None,
        full_class_name: str | None = None,
        args_list: Any = None,
        par: Any = 1,
        config: Any = None,
        outputs: Any = None,
    ) -> JavaSpoutSpec:
        """Returns its specification."""
        common = {"name": name, "par": par, "config": config, "outputs": outputs}
        return JavaSpoutSpec(cls, serialized_java, full_class_name, args_list, **common)


class ShellBolt(Component):
    """A bolt that is a command."""

    @classmethod
    def spec(
        cls,
        name: str | None = None,
        command: str | None = None,
        script: str | None = None,
        inputs: Any = None,
        par: Any = None,
        config: Any = None,
        outputs: Any = None,
    ) -> ShellBoltSpec:
        """Returns its specification."""
        common = {"name": name, "inputs": inputs, "par": par, "config": config, "outputs": outputs}
        return ShellBoltSpec(cls, command, script, **common)


class ShellSpout(Component):
    """A spout that is a command."""

    @classmethod
    def spec(
        cls,
        name: str | None = None,
        command: str | None = None,
        script: str | None = None,
        par: Any = None,
        config: Any = None,
        outputs: Any = None,
    ) -> ShellSpoutSpec:
        """Returns its specification."""
        common = {"name": name, "par": par, "config": config, "outputs": outputs}
        return ShellSpoutSpec(cls, command, script, **common)


_RUNNER = "streamparse_run"


class Bolt(bolt.Bolt, ShellBolt):
    """A bolt in Python."""

    @classmethod
    def spec(  # type: ignore[override]
        cls, name: str | None = None, inputs: Any = None, par: Any = None, config: Any = None
    ) -> ShellBoltSpec:
        """Returns its specification."""
        script = f"{cls.__module__}.{cls.__name__}"
        common = {"name": name, "inputs": inputs, "par": par, "config": config, "outputs": cls.outputs}
        return ShellBoltSpec(cls, _RUNNER, script, **common)


class BatchingBolt(bolt.BatchingBolt, Bolt):
    """A batching bolt in Python."""


class TicklessBatchingBolt(bolt.TicklessBatchingBolt, BatchingBolt):
    """A batching bolt that goes by time, in Python."""


class Spout(spout.Spout, ShellSpout):
    """A spout in Python."""

    @classmethod
    def spec(  # type: ignore[override]
        cls, name: str | None = None, par: Any = None, config: Any = None
    ) -> ShellSpoutSpec:
        """Returns its specification."""
        script = f"{cls.__module__}.{cls.__name__}"
        return ShellSpoutSpec(cls, _RUNNER, script, name=name, par=par, config=config, outputs=cls.outputs)


class ReliableSpout(spout.ReliableSpout, Spout):
    """A spout in Python that emits failed tuples again."""
