"""`storm-spark module`: the modules that streams consist of."""

from __future__ import annotations

import json as jsonlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from storm_on_spark.cli.shared import options
from storm_on_spark.cli.shared.echo import echo
from storm_on_spark.cli.shared.errors import reporting_errors
from storm_on_spark.cli.shared.groups import Group
from storm_on_spark.cli.shared.names import module_argument, name_argument, name_of
from storm_on_spark.launch.loader import LoadError

if TYPE_CHECKING:
    from storm_on_spark.xd.modules import ModuleType
    from storm_on_spark.xd.modules.local_registry import AnyModule, LocalRegistry

_json = click.option("--json", is_flag=True, help="Print one JSON document.")


@click.group("module", cls=Group, short_help="Show the modules of streams, and add your own.")
def command() -> None:
    """Show the modules that streams consist of, compose new ones, and add your own."""


@command.command("list")
@_json
@options.debug
def listed(json: bool, debug: bool) -> None:
    """List the modules."""
    with reporting_errors(debug, json):
        registry = _registry()
        if json:
            echo(jsonlib.dumps({"modules": [_document(found, registry) for found in registry.all()]}))
            return
        for found in registry.all():
            echo(f"{found.type:<9}  {found.name:<19}  {found.help}")


@command.command("info")
@module_argument
@_json
@options.debug
def info(name: str | None, json: bool, debug: bool) -> None:
    """Show a module's options, such as those of `time` or `source:time`."""
    with reporting_errors(debug, json):
        registry = _registry()
        found = _named(name_of(name), registry)
        if json:
            echo(jsonlib.dumps({"modules": [_document(each, registry) for each in found]}))
            return
        for each in found:
            echo(_text(each, registry))


@command.command("compose")
@name_argument
@click.option("--definition", required=True, help="Modules and | between them: the first part of a stream, or another.")
@_json
@options.debug
def compose(name: str | None, definition: str, json: bool, debug: bool) -> None:
    """Make a module from a part of a stream.

    Set an option of a module inside it with --LABEL.OPTION, such as --filter.expression.
    """
    with reporting_errors(debug, json):
        registry = _registry()
        try:
            made = registry.compose(name_of(name), definition)
        except ValueError as error:
            raise LoadError(str(error)) from error
        _tell(made, registry, f"Successfully created module '{made.name}' with type {made.type}", json)


@command.command("upload")
@click.argument("file", type=click.Path(path_type=Path))
@_json
@options.debug
def upload(file: Path, json: bool, debug: bool) -> None:
    """Add the module of a Python file, whose variable MODULE is a ModuleDeclaration. This executes the file."""
    with reporting_errors(debug, json):
        registry = _registry()
        try:
            made = registry.upload(file)
        except ValueError as error:
            raise LoadError(str(error)) from error
        _tell(made, registry, f"Successfully uploaded module '{made.type}:{made.name}'", json)


@command.command("delete")
@module_argument
@options.debug
def delete(name: str | None, debug: bool) -> None:
    """Remove a module that was composed or uploaded."""
    with reporting_errors(debug):
        registry = _registry()
        chosen = name_of(name)
        short, kinds = _kinds(chosen, registry)
        if len(kinds) != 1:
            which = f"there are {' and '.join(f'{each}:{short}' for each in kinds)}" if kinds else "there is none"
            raise LoadError(f"expected the name of one module, got {chosen!r:.100}: {which}")
        try:
            registry.delete(kinds[0], short)
        except ValueError as error:
            raise LoadError(str(error)) from error
        echo(f"Successfully destroyed module '{short}' with type {kinds[0]}")


def _registry() -> LocalRegistry:
    from storm_on_spark.xd.modules.local_registry import LocalRegistry

    return LocalRegistry()


def _kinds(name: str, registry: LocalRegistry) -> tuple[str, list[ModuleType]]:
    """Returns the name of a module without its type, and the types of the modules that have it."""
    kind, _, short = name.rpartition(":")
    types: tuple[ModuleType, ...] = ("source", "processor", "sink", "job")
    return short, [each for each in types if kind in ("", each) and short in registry.names(each)]


def _named(name: str, registry: LocalRegistry) -> list[AnyModule]:
    short, kinds = _kinds(name, registry)
    if not kinds:
        raise LoadError(f"there is no module {name!r:.100}; storm-spark module list shows them")
    return [registry.find(each, short) for each in kinds]


def _tell(module: AnyModule, registry: LocalRegistry, sentence: str, json: bool) -> None:
    echo(jsonlib.dumps({"modules": [_document(module, registry)]}) if json else sentence)


def _document(module: AnyModule, registry: LocalRegistry) -> dict[str, Any]:
    names = ("name", "type", "default", "help")
    shown = [
        {**{key: getattr(option, key) for key in names}, "choices": list(option.choices)}
        for option in registry.options(module)
    ]
    definition = getattr(module, "definition", None)
    return {
        "type": module.type, "name": module.name, "help": module.help, "definition": definition, "options": shown
    }  # fmt: skip


def _text(module: AnyModule, registry: LocalRegistry) -> str:
    lines = [f"{module.type}:{module.name}", f"  {module.help}"]
    for option in registry.options(module):
        default = "required" if option.default is None else f"default: {option.default or repr('')}"
        lines.append(f"  --{option.name} ({option.type}, {default})")
        lines.append(f"      {option.help}" + (f" One of {', '.join(option.choices)}." if option.choices else ""))
    return "\n".join(lines)
