"""`storm-spark config`: every configuration key."""

from __future__ import annotations

import json as jsonlib
import sys

import click
from rich import box
from rich.table import Table

from storm_on_spark.api.config import KEYS, ConfigKey
from storm_on_spark.cli.terminal import console


@click.command("config", short_help="List all configuration keys.")
@click.option("--json", is_flag=True, help="Print one JSON document.")
def command(json: bool) -> None:
    """List all configuration keys with default, type and meaning.

    The level says how far a key is supported: honoured, planned (checked, no effect yet), or accepted
    (checked, and there is nothing here that it could act on).
    """
    keys = sorted(KEYS.values(), key=lambda key: key.name)
    if json:
        click.echo(jsonlib.dumps([described(key) for key in keys], indent=2))
        return
    screen = console(sys.stdout)
    if not screen.is_terminal:
        for key in keys:
            click.echo(f"{key.name}\t{_default(key)}\t{key.type}\t{key.level.value}\t{_meaning(key)}")
        return
    table = Table(box=box.SIMPLE)
    for heading in ("key", "default", "level", "meaning"):
        table.add_column(heading, overflow="fold")
    for key in keys:
        table.add_row(key.name, _default(key), key.level.value, f"{_meaning(key)} ({key.type})")
    screen.print(table, markup=False)


def described(key: ConfigKey) -> dict[str, object]:
    """Returns all that is known about `key`, in terms of JSON."""
    return {
        "key": key.name,
        "default": key.default,
        "type": str(key.type),
        "level": key.level.value,
        "meaning": key.doc,
        "why": key.why,
        "component": key.component,
    }


def _default(key: ConfigKey) -> str:
    return "" if key.default is None else jsonlib.dumps(key.default)


def _meaning(key: ConfigKey) -> str:
    return f"{key.doc} No effect: {key.why}." if key.why else key.doc
