"""Modules: spouts and bolts with typed options, which streams are made of."""

from __future__ import annotations

from storm_on_spark.xd.modules.declaration import ModuleDeclaration, ModuleType, Option, OptionError
from storm_on_spark.xd.modules.registry import MODULES, find_module, modules

__all__ = ["MODULES", "ModuleDeclaration", "ModuleType", "Option", "OptionError", "find_module", "modules"]
