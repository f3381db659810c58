"""The commands that show the modules of an admin, and add new ones."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from storm_on_spark.cli.shared.groups import Group
from storm_on_spark.cli.shared.names import module_argument, name_argument, name_of
from storm_on_spark.cli.xd.asking import Asked, admin_options, asked
from storm_on_spark.cli.xd.tables import table
from storm_on_spark.launch.loader import LoadError

if TYPE_CHECKING:
    from storm_on_spark.xd.admin.rest.schemas import ModuleDetail, ModuleView

_TYPES = ("source", "processor", "sink", "job")


@click.group("module", cls=Group)
def command() -> None:
    """Show the admin's modules, and add new ones."""


@command.command("list")
@admin_options
def listed(**given: Any) -> None:
    """List the modules."""
    with asked(**given) as request:
        found = list(request.client.every("list_modules"))
        names = {kind: [each.name for each in found if each.type == kind] for kind in _TYPES}
        height = max(map(len, names.values()))
        rows = [[names[kind][row] if row < len(names[kind]) else "" for kind in _TYPES] for row in range(height)]
        request.answer(found, table([kind.capitalize() for kind in _TYPES], rows))


@command.command("info")
@module_argument
@admin_options
def info(name: str | None, **given: Any) -> None:
    """Show a module's options, such as those of `time` or `source:time`."""
    with asked(**given) as request:
        chosen = name_of(name)
        found = _named(request, chosen)
        if not found:
            raise LoadError(f"There is no module {chosen!r:.100}; module list shows them")
        details = [request.client.ask("get_module", type=each.type, name=each.name) for each in found]
        request.answer(details, "\n\n".join(_text(each) for each in details))


@command.command("compose")
@name_argument
@click.option("--definition", required=True, help="Modules and | between them: the first part of a stream, or another.")
@admin_options
def compose(name: str | None, definition: str, **given: Any) -> None:
    """Make a module from a part of a stream, for all containers.

    Set an option of a module inside it with --LABEL.OPTION, such as --filter.expression.
    """
    from storm_on_spark.xd.admin.rest.schemas import ComposeModule

    with asked(**given) as request:
        made = request.client.ask("compose_module", ComposeModule(name=name_of(name), definition=definition))
        request.answer(made, f"Successfully created module '{made.name}' with type {made.type}")


@command.command("upload")
@click.argument("file", type=click.Path(path_type=Path))
@admin_options
def upload(file: Path, **given: Any) -> None:
    """Add the module of a Python file to all containers; its variable MODULE is a ModuleDeclaration.

    The admin and the containers execute the file.
    """
    from storm_on_spark.xd.admin.rest.schemas import UploadModule
    from storm_on_spark.xd.modules.python_files import PythonFileError, checksum, read_python

    with asked(**given) as request:
        try:
            source = read_python(str(file))
            text = source.decode()
        except (PythonFileError, UnicodeDecodeError) as error:
            raise LoadError(f"{file!s:.300} can't be uploaded: {error}") from error
        body = UploadModule(file=file.name, source=text, sha256=checksum(source))
        made = request.client.ask("upload_module", body)
        request.answer(made, f"Successfully uploaded module '{made.type}:{made.name}'")


@command.command("delete")
@module_argument
@admin_options
def delete(name: str | None, **given: Any) -> None:
    """Remove a composed or uploaded module that no stream uses."""
    with asked(**given) as request:
        chosen = name_of(name)
        found = _named(request, chosen)
        if len(found) != 1:
            which = " and ".join(f"{each.type}:{each.name}" for each in found)
            there = f"there are {which}" if found else "there is none"
            raise LoadError(f"Expected the name of one module, got {chosen!r:.100}: {there}")
        (one,) = found
        request.client.ask("delete_module", type=one.type, name=one.name)
        sentence = f"Successfully destroyed module '{one.name}' with type {one.type}"
        request.answer({"type": one.type, "name": one.name, "operation": "delete"}, sentence)


def _named(request: Asked, name: str) -> list[ModuleView]:
    """Returns the modules with a name, which may begin with a type."""
    kind, _, short = name.rpartition(":")
    return [each for each in request.client.every("list_modules") if each.name == short and kind in ("", each.type)]


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
