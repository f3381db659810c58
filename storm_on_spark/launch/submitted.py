"""Programs that submit their topology themselves: a `ConfigurableTopology`, or `main` with `StormSubmitter`."""

from __future__ import annotations

import contextlib
import inspect
import io
import sys
import weakref
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import FunctionType
from typing import Any

from storm_on_spark.api.building.submitter import ConfigurableTopology, StormSubmitter, Submitted, taking
from storm_on_spark.api.config import Config
from storm_on_spark.api.errors import InvalidTopologyError
from storm_on_spark.api.topology import Topology


@dataclass(frozen=True)
class _Run:
    """What a program submitted, and what of its output is not printed yet."""

    submitted: Submitted
    said: str

    @property
    def conf(self) -> dict[str, Any]:
        return {Config.TOPOLOGY_NAME: self.submitted.name, **self.submitted.conf}


class SubmittingFrontEnd:
    """Runs the program, and takes what it submits."""

    name = "a program that submits a topology"

    def __init__(self) -> None:
        self._runs: weakref.WeakKeyDictionary[Any, _Run] = weakref.WeakKeyDictionary()

    def before_import(self) -> None:
        """Nothing has to be prepared."""

    def source_folders(self, file: Path) -> list[Path]:
        """No further folders are searched."""
        return []

    def is_topology(self, value: object) -> bool:
        """Whether a value is such a class, or a function `main` in whose module `StormSubmitter` is known."""
        if isinstance(value, type):
            return issubclass(value, ConfigurableTopology) and not inspect.isabstract(value)
        if not isinstance(value, FunctionType) or value.__name__ != "main":
            return False
        names = value.__globals__.values()
        return any(known is StormSubmitter for known in names) and not any(map(_is_program, names))

    def conf(self, value: Any) -> dict[str, Any]:
        """Returns the configuration that the program submits, with the topology's name."""
        if value not in self._runs:
            # A program prints what it does with its configuration: shown is the run whose topology is taken.
            said = io.StringIO()
            try:
                with contextlib.redirect_stdout(said):
                    found = _run(value, {})
            except BaseException:
                sys.stdout.write(said.getvalue())
                raise
            self._runs[value] = _Run(found, said.getvalue())
        return self._runs[value].conf

    def build(self, value: Any, conf: Mapping[str, Any]) -> Topology:
        """Returns the topology that the program submits. It runs again only if it can see another configuration."""
        known = self._runs.get(value)
        if known is None or (isinstance(value, type) and known.conf != conf):
            return _run(value, conf).topology
        sys.stdout.write(known.said)
        self._runs[value] = _Run(known.submitted, "")
        return known.submitted.topology


def _is_program(value: object) -> bool:
    return isinstance(value, type) and issubclass(value, ConfigurableTopology) and not inspect.isabstract(value)


def _run(value: Any, conf: Mapping[str, Any]) -> Submitted:
    """Runs a program and returns what it submits.

    Raises:
        InvalidTopologyError: that is nothing, or several topologies.
    """
    where = f"{value.__module__}.{value.__qualname__}"
    with taking() as found:
        if isinstance(value, type):
            program = value()
            program.conf.update(conf)
            program.run([])
        else:
            wants = any(each.default is each.empty for each in inspect.signature(value).parameters.values())
            # Where there is an argument, Storm's examples submit to a cluster under that name.
            value(*([[value.__module__.rpartition(".")[2].replace("_", "-")]] if wants else []))
    if len(found) != 1:
        number = "nothing" if not found else f"{len(found)} topologies"
        raise InvalidTopologyError(f"{where} submitted {number}; it must submit one topology")
    return found[0]
