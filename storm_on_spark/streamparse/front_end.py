"""What the loader of topologies asks of this front end."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from storm_on_spark.api.topology import Topology
from storm_on_spark.streamparse import finder
from storm_on_spark.streamparse.build import build, is_topology
from storm_on_spark.streamparse.projects.project import source_folders

ENVIRONMENT: Final = "streamparse.environment"
"""The key of the configuration that has the name of the environment, which `-e` gives."""


class StreamparseFrontEnd:
    """Classes of `streamparse.Topology`."""

    name = "a class of streamparse.Topology"

    def before_import(self) -> None:
        """Lets modules import streamparse and pystorm, installed or not."""
        finder.install()

    def source_folders(self, file: Path) -> list[Path]:
        """Returns further folders for the module search path."""
        return source_folders(file)

    def is_topology(self, value: object) -> bool:
        """Whether `build` makes a topology of a value."""
        return is_topology(value)

    def conf(self, value: Any) -> dict[str, Any]:
        """Returns the configuration that the topology brings along."""
        return dict(value.config)

    def build(self, value: Any, conf: Mapping[str, Any]) -> Topology:
        """Returns the topology."""
        environment = conf.get(ENVIRONMENT)
        return build(value, None if environment is None else str(environment))
