"""Reading a Flux file with the files that it includes."""

from __future__ import annotations

import sys
from pathlib import Path, PurePosixPath
from typing import Final

from storm_on_spark.flux.definitions import TopologyDef, topology_of
from storm_on_spark.flux.nodes import Node, parse
from storm_on_spark.flux.properties import read_text
from storm_on_spark.flux.reading import Substitution, substituted

_MOST: Final = 100


def read(path: Path, where: str, values: Substitution) -> TopologyDef:
    """Returns the definition in a file, with its includes.

    Args:
        path: the file.
        where: its name in messages.
        values: for the placeholders in it and in the files that it includes.

    Raises:
        FluxError: a file can't be read, or is wrong.
    """
    found = _read(path, where, values)
    if len(found.includes) > _MOST:
        raise found.includes[_MOST].file.error(f"more than {_MOST} includes")
    for include in found.includes:
        file = _resource(include.file, path.parent) if include.resource else _file(include.file, path.parent)
        included = _read(file, _shown(file, path, where), values)
        if included.includes:
            raise included.includes[0].file.error(
                f"{where} includes this file, and included files include no others: name this one in {where}"
            )
        found = found.with_included(included, override=include.override)
    return found


def _read(path: Path, where: str, values: Substitution) -> TopologyDef:
    return topology_of(parse(substituted(read_text(path, "the Flux file"), where, values), values))


def _file(node: Node, folder: Path) -> Path:
    """Returns the included file: relative to the including one or, as in Storm, to the current folder."""
    tried = [folder / str(node.value), Path.cwd() / str(node.value)]
    return _first(node, tried, f"{folder} and {Path.cwd()}")


def _resource(node: Node, folder: Path) -> Path:
    """Returns the included resource: a name like `/configs/a.yaml` below the file's folder or the search path."""
    name = PurePosixPath(str(node.value).lstrip("/"))
    if ".." in name.parts:
        raise node.error("the name of a resource can't lead out of its folder by ..")
    tried = [Path(entry or Path.cwd()) / name for entry in (str(folder), *sys.path)]
    return _first(node, tried, f"{folder} and on the module search path")


def _first(node: Node, tried: list[Path], places: str) -> Path:
    for path in tried:
        try:
            if path.is_file():
                return path
        except (OSError, ValueError):
            break
    raise node.error(f"there is no file {str(node.value)[:200]!r} to include in {places}")


def _shown(file: Path, path: Path, where: str) -> str:
    if file.is_relative_to(path.parent):
        return str(Path(where).parent / file.relative_to(path.parent))
    return str(file)
