"""`storm-spark module`: the modules that streams are made of."""

from __future__ import annotations

import json as jsonlib
from typing import TYPE_CHECKING, Any

import click

from storm_on_spark.cli.shared import options
from storm_on_spark.cli.shared.errors import reporting_errors
from storm_on_spark.launch.loader import LoadError

if TYPE_CHECKING:
    from storm_on_spark.xd.modules import ModuleDeclaration

_json = click.option("--json", is_flag=True, help="Print one JSON document.")


@click.group("module", short_help="Show the modules of streams, and their options.")
def command() -> None:
    """Show the modules that streams are made of."""


@command.command("list")
@_json
@options.debug
def listed(json: bool, debug: bool) -> None:
    """List the modules."""
    from storm_on_spark.xd.modules import modules

    with reporting_errors(debug, json):
        if json:
            click.echo(jsonlib.dumps({"modules": [_document(found) for found in modules()]}))
            return
        for found in modules():
            click.echo(f"{found.type:<9}  {found.name:<13}  {found.help}")


@command.command("info")
@click.argument("name", metavar="[TYPE:]NAME")
@_json
@options.debug
def info(name: str, json: bool, debug: bool) -> None:
    """Show a module's options, such as those of `time` or `source:time`."""
    from storm_on_spark.xd.modules import modules

    with reporting_errors(debug, json):
        kind, _, short = name.rpartition(":")
        found = [each for each in modules() if each.name == short and kind in ("", each.type)]
        if not found:
            raise LoadError(f"there is no module {name!r:.100}; storm-spark module list shows them")
        if json:
            click.echo(jsonlib.dumps({"modules": [_document(each) for each in found]}))
            return
        for each in found:
            click.echo(_text(each))


def _document(module: ModuleDeclaration) -> dict[str, Any]:
    names = ("name", "type", "default", "help")
    shown = [
        {**{key: getattr(option, key) for key in names}, "choices": list(option.choices)} for option in module.options
    ]
    return {"type": module.type, "name": module.name, "help": module.help, "options": shown}


def _text(module: ModuleDeclaration) -> str:
    lines = [f"{module.type}:{module.name}", f"  {module.help}"]
    for option in module.options:
        default = "required" if option.default is None else f"default: {option.default or repr('')}"
        lines.append(f"  --{option.name} ({option.type}, {default})")
        lines.append(f"      {option.help}" + (f" One of {', '.join(option.choices)}." if option.choices else ""))
    return "\n".join(lines)
