"""The registry of modules, by type and name."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from storm_on_spark.xd.modules.counters.sinks import SINKS as COUNTERS
from storm_on_spark.xd.modules.declaration import ModuleDeclaration, ModuleType
from storm_on_spark.xd.modules.inside import script
from storm_on_spark.xd.modules.inside.processors import PROCESSORS
from storm_on_spark.xd.modules.inside.sinks import SINKS
from storm_on_spark.xd.modules.inside.sources import SOURCES
from storm_on_spark.xd.modules.jobs import filejdbc, sparkapp, sparksql, timestampfile
from storm_on_spark.xd.modules.jobs import script as job_script
from storm_on_spark.xd.modules.outside import delta, files, http_client, http_source, jdbc, kafka, tail

_SOURCES: Final = (delta.SOURCE, files.SOURCE, http_source.SOURCE, kafka.SOURCE, *SOURCES, tail.SOURCE)
_PROCESSORS: Final = (*PROCESSORS, http_client.PROCESSOR, script.PROCESSOR)
_SINKS: Final = (*COUNTERS, delta.SINK, files.SINK, http_client.SINK, jdbc.SINK, kafka.SINK, *SINKS)
_JOBS: Final = (filejdbc.JOB, job_script.JOB, sparkapp.JOB, sparksql.JOB, timestampfile.JOB)

MODULES: Final[Mapping[tuple[str, str], ModuleDeclaration]] = MappingProxyType(
    {
        (found.type, found.name): found
        for part in (_SOURCES, _PROCESSORS, _SINKS, _JOBS)
        for found in sorted(part, key=lambda module: module.name)
    }
)
"""(type, name) -> module. A source and a sink may share a name."""


def find_module(type: ModuleType, name: str) -> ModuleDeclaration:  # noqa: A002 # the word of the language
    """Returns a module.

    Raises:
        KeyError: there is none.
    """
    return MODULES[type, name]


def modules(type: ModuleType | None = None) -> list[ModuleDeclaration]:  # noqa: A002
    """Returns all modules, or those of a type."""
    return [found for found in MODULES.values() if type in (None, found.type)]
