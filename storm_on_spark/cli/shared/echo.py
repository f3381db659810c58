"""Printing of text other than tables."""

from __future__ import annotations

import click

from storm_on_spark.api.text.printable import printable


def echo(text: object = "", *, nl: bool = True, err: bool = False) -> None:
    """Prints a text with control characters as escapes, because it may come from data or the network."""
    click.echo(printable(str(text)), nl=nl, err=err)
