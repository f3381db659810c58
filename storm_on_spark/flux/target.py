"""A loaded Flux file, for the commands and for a cluster."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from storm_on_spark.api.building import java_classes
from storm_on_spark.api.topology import Topology
from storm_on_spark.flux.building import build, check
from storm_on_spark.flux.definitions import ObjectDef, TopologyDef
from storm_on_spark.flux.errors import FluxError
from storm_on_spark.flux.includes import read
from storm_on_spark.flux.reading import Substitution
from storm_on_spark.launch.loader import Target

_VALUES: ContextVar[Substitution] = ContextVar("storm_on_spark.flux.values")


@dataclass(frozen=True)
class FluxTarget(Target):
    """A Flux file."""

    where: str
    path: Path
    definition: TopologyDef
    values: Substitution = field(repr=False)

    @property
    def name(self) -> str:
        """The file's `name`, or that of the file itself."""
        given = self.definition.name
        return self.path.stem if given is None else str(given.value)

    @property
    def file(self) -> Path | None:
        """The file."""
        return self.path

    @property
    def conf(self) -> dict[str, Any]:
        """The file's `config`."""
        return {key: node.plain() for key, node in self.definition.config.items()}

    def topology(self, conf: Mapping[str, Any]) -> Topology:
        """Returns the topology."""
        with _masking(self.values):
            return build(self.definition, self.path.parent, dict(conf))

    def class_names(self) -> list[str]:
        """Returns the names of the classes that the file needs, without the counterparts of Java's."""
        definition = self.definition
        objects: list[ObjectDef] = [*definition.components.values(), *definition.spouts.values()]
        objects += definition.bolts.values()
        objects += [stream.custom for stream in definition.streams if stream.custom is not None]
        if definition.source is not None:
            objects.append(definition.source)
        names = [str(found.class_name.value) for found in objects]
        return [name.replace("$", ".") for name in dict.fromkeys(names) if name not in java_classes.CLASSES]

    def interpreted(self) -> bytes:
        """Returns an equivalent Flux file without placeholders and includes."""
        definition = self.definition
        document: dict[str, Any] = {"name": self.name, "config": self.conf}
        for key in ("components", "spouts", "bolts"):
            document[key] = [found.node.plain() for found in getattr(definition, key).values()]
        document["streams"] = [stream.node.plain() for stream in definition.streams]
        if definition.source is not None:
            document["topologySource"] = definition.source.node.plain()
        return yaml.safe_dump(document, sort_keys=False).encode()


def load_file(path: Path, where: str) -> FluxTarget:
    """Reads a Flux file. No class is imported yet.

    Args:
        path: the file.
        where: its name in messages.

    Raises:
        FluxError: the file is invalid; the message has the place and a caret.
    """
    values = _VALUES.get(Substitution())
    with _masking(values):
        definition = read(path, where, values)
        check(definition)
    return FluxTarget(where, path, definition, values)


@contextlib.contextmanager
def _masking(values: Substitution) -> Iterator[None]:
    try:
        yield
    except FluxError as error:
        message = values.masked(error.message)
        if message == error.message:
            raise
        # Without the cause, because its text may show the value too.
        raise FluxError(message, error.place) from None


@contextlib.contextmanager
def substituting(values: Substitution) -> Iterator[None]:
    """Sets the values of placeholders in Flux files that are loaded within the context."""
    token = _VALUES.set(values)
    try:
        yield
    finally:
        _VALUES.reset(token)
