"""Options that several commands have."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from storm_on_spark.spark.conf_text import merged
from storm_on_spark.spark.loader import Target

_Function = TypeVar("_Function", bound=Callable[..., Any])

target = click.argument("target", metavar="FILE_OR_MODULE[:ATTR]")

debug = click.option("--debug", is_flag=True, help="Show tracebacks.")

master = click.option(
    "--master",
    metavar="URL",
    help="Spark master: local[N], local-cluster[...], spark://... By default all cores of this machine.",
)


def configuration(function: _Function) -> _Function:
    """Adds `-c` and `--conf`, which `conf_of` puts together."""
    pairs = click.option(
        "-c",
        "pairs",
        metavar="KEY=VALUE",
        multiple=True,
        help="One configuration value, typed as in YAML; wins over files and the module's own conf. "
        "Keys that start with spark. are given to Spark. May be repeated.",
    )
    files = click.option(
        "--conf",
        "files",
        metavar="FILE.yaml",
        multiple=True,
        type=click.Path(path_type=Path),
        help="A YAML file of configuration. May be repeated; later files win.",
    )
    return pairs(files(function))


def conf_of(target: Target, files: tuple[Path, ...], pairs: tuple[str, ...]) -> dict[str, Any]:
    """Returns the module's own `conf` with what the command line says over it."""
    return {**target.conf, **merged(files, pairs)}
