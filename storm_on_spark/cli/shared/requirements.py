"""The requirements that a command packs for a topology: the given ones, or those of a streamparse project."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from storm_on_spark.cli.shared.echo import echo
from storm_on_spark.launch.loader import Target
from storm_on_spark.streamparse.projects.project import project_of

if TYPE_CHECKING:
    from storm_on_spark.cluster.code.packing.requirements import Requirements

_STAND_INS: Final = ("streamparse", "pystorm")
"""Packages that have a stand-in if they are not installed; their components run in process."""


def requirements_of(
    target: Target, conf: Mapping[str, Any], given: Path | None, *, quiet: bool = False
) -> Requirements | None:
    """Returns a topology's requirements; standard error names those used by default.

    Raises:
        ConfigError: a project's `config.json` or an option is invalid.
        CodeError: the project's file can't be read, or names something on this machine.
    """
    from storm_on_spark.cluster.code.packing.requirements import Requirements

    if given is not None:
        return Requirements(given)
    file = target.file
    project = None if file is None else project_of(file)
    path = None if project is None or file is None else project.requirements(file.stem, conf)
    if path is None:
        return None
    if path.is_relative_to(Path.cwd()):
        path = path.relative_to(Path.cwd())
    found = Requirements(path, _STAND_INS)
    lines = [line.strip() for line in found.read().decode().splitlines()]
    if not any(line and not line.startswith("#") for line in lines):
        return None
    if not quiet:
        echo(
            f"Requirements: {path}, without {' and '.join(_STAND_INS)}; --requirements FILE names another, "
            "-c use_virtualenv=false none",
            err=True,
        )
    return found
