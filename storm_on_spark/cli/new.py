"""`storm-spark new`: the skeleton of a project."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

import click

from storm_on_spark.api.errors import SetupError
from storm_on_spark.cli import options
from storm_on_spark.cli.errors import told
from storm_on_spark.spark.loader import LoadError

_FILES = ("topology.py", "test_topology.py", "conf.yaml", "README.md")
_SUFFIX = ".txt"
"""Of a template's file name, so that no tool takes it for code of ours."""


@click.command("new", short_help="Make a small project.")
@click.argument("folder", metavar="DIR", type=click.Path(path_type=Path))
@options.debug
def command(folder: Path, debug: bool) -> None:
    """Make a small project in DIR: a topology that runs, its test, and its configuration."""
    with told(debug):
        write_skeleton(folder)
    click.echo(f"Made {folder}. Try:\n  storm-spark run {folder / 'topology.py'}\n  pytest {folder}")


def write_skeleton(folder: Path) -> None:
    """Writes the project's files into `folder`, which may exist if it is empty.

    Raises:
        LoadError: there is something in the way.
        SetupError: the files can't be written.
    """
    try:
        if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
            raise LoadError(f"{folder} is there already and not empty; name a new folder")
        folder.mkdir(parents=True, exist_ok=True)
        for name in _FILES:
            template = files("storm_on_spark.cli") / "templates" / (name + _SUFFIX)
            text = template.read_text("utf-8")
            (folder / name).write_text(text.replace("{name}", folder.resolve().name), encoding="utf-8")
    except OSError as error:
        raise SetupError(f"{error.filename or folder} can't be written: {error.strerror}") from error
