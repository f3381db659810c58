"""The registry of modules, by type and name."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from storm_on_spark.xd.modules import files
from storm_on_spark.xd.modules.declaration import ModuleDeclaration, ModuleType
from storm_on_spark.xd.modules.processors import PROCESSORS
from storm_on_spark.xd.modules.sinks import SINKS
from storm_on_spark.xd.modules.sources import SOURCES

MODULES: Final[Mapping[tuple[str, str], ModuleDeclaration]] = MappingProxyType(
    {(found.type, found.name): found for found in (files.SOURCE, *SOURCES, *PROCESSORS, files.SINK, *SINKS)}
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
