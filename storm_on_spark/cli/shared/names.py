"""The argument NAME, which may also be written as `--name NAME`, as in Spring XD's shell."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

_Function = TypeVar("_Function", bound=Callable[..., Any])


def name_argument(function: _Function, metavar: str = "NAME") -> _Function:
    """Adds the argument NAME, which may also be written as `--name NAME`."""
    argument = click.argument("name", metavar=metavar, required=False, callback=_note)
    return argument(click.option("--name", "named", metavar=metavar, expose_value=False, callback=_note)(function))


def module_argument(function: _Function) -> _Function:
    """Adds the argument NAME of a module, which may begin with its type."""
    return name_argument(function, "[TYPE:]NAME")


def _note(context: click.Context, parameter: click.Parameter, value: str | None) -> str | None:
    """Keeps the one name that was given in either form."""
    key = f"{__name__}.name"
    if value is not None:
        if key in context.meta:
            raise click.UsageError("NAME was given twice", context)
        context.meta[key] = value
    return value


def name_of(name: str | None) -> str:
    """Returns the name that was given in either form.

    Raises:
        click.UsageError: none was given.
    """
    context = click.get_current_context()
    found = name or context.meta.get(f"{__name__}.name")
    if not found:
        raise click.UsageError("Missing argument 'NAME'.", context)
    return str(found)
