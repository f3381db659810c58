"""The commands of a shell that show the modules of its admin."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from storm_on_spark.cli.xd.asking import asked
from storm_on_spark.cli.xd.tables import table
from storm_on_spark.launch.loader import LoadError

if TYPE_CHECKING:
    from storm_on_spark.xd.admin.rest.schemas import ModuleDetail

_TYPES = ("source", "processor", "sink", "job")


@click.group("module")
def command() -> None:
    """Show the modules that the admin has."""


@command.command("list")
def listed(**given: Any) -> None:
    """List the modules."""
    with asked(**given) as request:
        found = list(request.client.every("list_modules"))
        names = {kind: [each.name for each in found if each.type == kind] for kind in _TYPES}
        height = max(map(len, names.values()))
        rows = [[names[kind][row] if row < len(names[kind]) else "" for kind in _TYPES] for row in range(height)]
        request.answer(found, table([kind.capitalize() for kind in _TYPES], rows))


@command.command("info")
@click.argument("name", metavar="[TYPE:]NAME")
def info(name: str, **given: Any) -> None:
    """Show a module's options, such as those of `time` or `source:time`."""
    with asked(**given) as request:
        kind, _, short = name.rpartition(":")
        all_found = request.client.every("list_modules")
        found = [each for each in all_found if each.name == short and kind in ("", each.type)]
        if not found:
            raise LoadError(f"There is no module {name!r:.100}; module list shows them")
        details = [request.client.ask("get_module", type=each.type, name=each.name) for each in found]
        request.answer(details, "\n\n".join(_text(each) for each in details))


def _text(module: ModuleDetail) -> str:
    rows = [
        [
            option.name,
            option.description + (f" One of {', '.join(option.choices)}." if option.choices else ""),
            "<none>" if option.default_value is None else option.default_value,
            option.type,
        ]
        for option in module.options
    ]
    heading = f"Information about {module.type} module '{module.name}':\n\n  {module.description}"
    if not rows:
        return f"{heading}\n\n  It has no options."
    return f"{heading}\n\n" + table(["Option Name", "Description", "Default", "Type"], rows)
