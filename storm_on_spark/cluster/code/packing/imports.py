"""Which modules a Python file needs from the folders beside it, found without running anything."""

from __future__ import annotations

import ast
import importlib
import sys
import warnings
from collections.abc import Iterator, Sequence
from importlib.machinery import PathFinder
from pathlib import Path

from storm_on_spark.cluster.errors import CodeError

EVERYWHERE = frozenset({"storm_on_spark", "pyspark"})
"""Packages that every host of a cluster has."""
_MAX_SOURCE_BYTES = 8 << 20


def imported_names(path: Path) -> list[str]:
    """Returns the absolute names that a file imports, wherever in it, in the order of their first appearance.

    Of `from a import b` that is `a.b`, as `b` may be a module. `importlib.import_module("a.b")` counts too, where the
    name is a literal.

    Raises:
        CodeError: the file is not Python, or too large.
    """
    try:
        source = path.read_bytes()
        if len(source) > _MAX_SOURCE_BYTES:
            raise CodeError(f"{path} has {len(source):,} bytes; too many for source code")
        with warnings.catch_warnings():
            # Those of the compiler are the user's business when the topology is loaded.
            warnings.simplefilter("ignore")
            tree = ast.parse(source, str(path))
    except (OSError, SyntaxError, ValueError, RecursionError, MemoryError) as error:
        line = f":{error.lineno}" if isinstance(error, SyntaxError) else ""
        raise CodeError(f"{path}{line} can't be read as Python: {error}") from error
    return list(dict.fromkeys(name for node in ast.walk(tree) for name in _names(node)))


def _names(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
    elif isinstance(node, ast.ImportFrom) and not node.level and node.module:
        yield from (node.module if alias.name == "*" else f"{node.module}.{alias.name}" for alias in node.names)
    elif isinstance(node, ast.Call) and node.args:
        function = node.func
        called = function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
        name = node.args[0]
        if called in ("import_module", "__import__") and isinstance(name, ast.Constant) and isinstance(name.value, str):
            yield name.value


def beside(name: str, folders: Sequence[Path]) -> Path | None:
    """Returns what `import name` takes from `folders`, if it takes it from there.

    That is the folder of the top-level package, or the file of a module; of a package without `__init__.py` (PEP 420)
    what `name` leads to below it. Python's own order counts: `folders` come first, but a namespace there gives way to
    any real module or package elsewhere.

    Args:
        name: a dotted name; its last parts may be attributes.
        folders: what comes first on the module search path.
    """
    top, *rest = name.split(".")
    if not top or top in EVERYWHERE or top in sys.builtin_module_names:
        return None
    importlib.invalidate_caches()
    spec = PathFinder.find_spec(top, [*map(str, folders), *sys.path])
    if spec is None:
        return None
    portions = [Path(portion) for portion in spec.submodule_search_locations or ()]
    if spec.origin is not None:
        found = portions[0] if portions else Path(spec.origin)
        return found if found.parent in folders else None
    return _in_namespace([portion for portion in portions if portion.parent in folders], rest)


def _in_namespace(portions: Sequence[Path], rest: Sequence[str]) -> Path | None:
    for depth in range(len(rest)):
        spec = PathFinder.find_spec(rest[depth], list(map(str, portions)))
        if spec is None:
            return None
        below = [Path(portion) for portion in spec.submodule_search_locations or ()]
        if spec.origin is not None:
            return below[0] if below else Path(spec.origin)
        portions = below
    return None
