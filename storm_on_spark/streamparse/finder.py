"""Makes `import pystorm` and `import streamparse` work where these packages are not installed."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Final

_STAND_IN: Final = "storm_on_spark.streamparse.stand_in"

_STREAMPARSE: Final = {
    "streamparse": "streamparse",
    "streamparse.bolt": "streamparse.components",
    "streamparse.component": "streamparse.components",
    "streamparse.run": "streamparse.run",
    "streamparse.spout": "streamparse.components",
    "streamparse.storm": "streamparse.components",
    "streamparse.storm.bolt": "streamparse.components",
    "streamparse.storm.component": "streamparse.components",
    "streamparse.storm.spout": "streamparse.components",
    "streamparse.dsl": "streamparse.topology",
    "streamparse.dsl.component": "streamparse.specs",
    "streamparse.dsl.stream": "streamparse.streams",
    "streamparse.dsl.topology": "streamparse.topology",
    "streamparse.thrift": "streamparse.structs",
}
_PYSTORM: Final = {
    f"pystorm{part}": f"pystorm{part}"
    for part in (
        "",
        ".bolt",
        ".component",
        ".exceptions",
        ".serializers",
        ".serializers.json_serializer",
        ".serializers.msgpack_serializer",
        ".serializers.serializer",
        ".spout",
    )
}
MODULES: Final = {name: f"{_STAND_IN}.{module}" for name, module in {**_PYSTORM, **_STREAMPARSE}.items()}
"""The modules that there are a stand-in for."""


class _Alias(Loader):
    """Loads a module under another name: it is one module, so its classes are the same under both."""

    def __init__(self, module: str) -> None:
        self._module = module

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return None

    def exec_module(self, module: ModuleType) -> None:
        found = importlib.import_module(self._module)
        if hasattr(module, "__path__") and not hasattr(found, "__path__"):
            # Imported by that name, it has submodules.
            found.__path__ = []
        sys.modules[module.__name__] = found


class _Finder(MetaPathFinder):
    """Finds the stand-ins, but only where the package itself is not installed."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        found = MODULES.get(fullname)
        if found is None:
            return None
        root = fullname.partition(".")[0]
        if fullname == root:
            if any(_finds(finder, root) for finder in sys.meta_path if finder is not self):
                return None
        elif getattr(sys.modules.get(root), "__name__", "") != MODULES[root]:
            return None
        package = any(name.startswith(f"{fullname}.") for name in MODULES)
        return ModuleSpec(fullname, _Alias(found), is_package=package)


def _finds(finder: object, name: str) -> bool:
    find = getattr(finder, "find_spec", None)
    spec = None if find is None else find(name, None)
    # Any folder of that name would do for a namespace, which has no location.
    return spec is not None and bool(spec.has_location)


_FINDER: Final = _Finder()


def install() -> None:
    """Lets the stand-ins be imported from here on; more calls change nothing.

    The finder is the first that is asked, since the stand-in's own folder would answer for its submodules, but it
    gives way to a package that any other finder finds.
    """
    if _FINDER not in sys.meta_path:
        sys.meta_path.insert(0, _FINDER)
