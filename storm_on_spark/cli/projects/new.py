"""`storm-spark new`: makes the skeleton of a project, or copies an example."""

from __future__ import annotations

import json as jsonlib
import re
import shlex
import textwrap
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path

import click
from click.shell_completion import CompletionItem

from storm_on_spark.api.errors import SetupError
from storm_on_spark.cli.projects.examples import commands, copy_of, examples, first_sentence
from storm_on_spark.cli.shared import options
from storm_on_spark.cli.shared.echo import echo
from storm_on_spark.cli.shared.errors import reporting_errors
from storm_on_spark.cli.shared.terminal import width
from storm_on_spark.launch.loader import LoadError

_SUFFIX = ".txt"
"""Suffix of a template's file name, so that tools don't treat it as code of this package."""
_HIDDEN = "dot-"
"""Stands for the leading dot of a file name, because some tools leave such files out of a package."""


def _begun(context: click.Context, parameter: click.Parameter, begun: str) -> list[CompletionItem]:
    return [CompletionItem(name) for name in examples() if name.startswith(begun)]


@click.command("new", short_help="Make a small project.")
@click.argument("folder", metavar="DIR", required=False, type=click.Path(path_type=Path))
@click.option("--example", metavar="NAME", help="Copy an example instead.", shell_complete=_begun)
@click.option("--list-examples", "list_them", is_flag=True, help="List the examples, but make nothing.")
@click.option("--json", is_flag=True, help="Print one JSON document.")
@options.debug
def command(folder: Path | None, example: str | None, list_them: bool, json: bool, debug: bool) -> None:
    """Make a small project in DIR: a topology that runs, its test, its configuration, and a notebook.

    DIR may exist if it is empty. The topology is named after it.
    """
    with reporting_errors(debug, json):
        if list_them:
            _list(json)
            return
        if folder is None:
            raise click.UsageError("Name the folder to make: storm-spark new DIR")
        written = write_skeleton(folder) if example is None else copy_example(example, folder)
        topology = folder / ("topology.py" if example is None else written[0])
        if json:
            echo(jsonlib.dumps({"folder": str(folder), "topology": str(topology), "files": written}))
            return
        if example is not None:
            echo(_steps(folder, topology))
            return
        requirements = _shown(folder / "requirements.txt")
        tests = f"\n  pip install -r {requirements}\n  pytest {_shown(folder)}"
        echo(f"Made {_shown(folder)}. Try:\n  storm-spark run {_shown(topology)}{tests}")


def _steps(folder: Path, topology: Path) -> str:
    """Returns the lines to type for an example: those of its docstring, each broker in its own terminal."""
    enter = f"  cd {_shown(folder)}"
    lines = [f"Made {_shown(folder)}; its README.md says what it shows. Try:", enter]
    for command in commands(topology.read_text("utf-8")):
        lines.append(f"  {command}")
        if command.startswith("storm-spark dev-"):
            lines += ["Leave it running. When it is up, type in another terminal:", enter]
    return "\n".join(lines)


def write_skeleton(folder: Path) -> list[str]:
    """Writes the project's files into `folder`, which may exist if it is empty; returns their names.

    Raises:
        LoadError: the folder is not empty.
        SetupError: the files can't be written.
    """
    templates = files("storm_on_spark.cli") / "templates"
    texts = {
        _file_name(template.name): template.read_text("utf-8")
        for template in templates.iterdir()
        if template.name.endswith(_SUFFIX)
    }
    title = folder.resolve().name
    _write(
        folder,
        {n: text.replace("{title}", title).replace("{name}", topology_name(title)) for n, text in texts.items()},
    )
    return sorted(texts)


def copy_example(name: str, folder: Path) -> list[str]:
    """Copies an example into `folder`, as `write_skeleton` does; returns the names of the files, its topology first.

    Raises:
        LoadError: there is no such example, or the folder is not empty.
        SetupError: the files can't be written.
    """
    texts = copy_of(name)
    _write(folder, texts)
    return list(texts)


def topology_name(title: str) -> str:
    """Returns a topology's name made from the name of a folder.

    A cluster accepts letters, digits, `-` and `_`.

    >>> topology_name("my proj 2"), topology_name("Wörter"), topology_name("...")
    ('my-proj-2', 'W-rter', 'topology')
    """
    return re.sub(r"[^A-Za-z0-9_]+", "-", title).strip("-")[:150] or "topology"


def _write(folder: Path, texts: Mapping[str, str]) -> None:
    try:
        if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
            raise LoadError(f"{folder} already exists and is not empty; name a new folder")
        for name, text in texts.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(text, encoding="utf-8")
    except OSError as error:
        raise SetupError(f"{error.filename or folder} can't be written: {error.strerror}") from error


def _file_name(template: str) -> str:
    name = template.removesuffix(_SUFFIX)
    return f".{name.removeprefix(_HIDDEN)}" if name.startswith(_HIDDEN) else name


def _shown(path: Path) -> str:
    """Returns a path that can be pasted into a shell; a leading hyphen would be taken for an option."""
    text = str(path)
    return shlex.quote(f"./{text}" if text.startswith("-") else text)


def _list(json: bool) -> None:
    found = {name: first_sentence(file) for name, file in examples().items()}
    if json:
        echo(jsonlib.dumps({"examples": [{"name": name, "about": about} for name, about in found.items()]}))
        return
    for name, about in found.items():
        echo(name)
        echo(textwrap.fill(about, width(), initial_indent="    ", subsequent_indent="    "))
