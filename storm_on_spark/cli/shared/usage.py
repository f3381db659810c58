"""What is said of a command line that makes no sense."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Final

import click

_MOST_SAID: Final = 1_000
"""Characters."""


@contextlib.contextmanager
def readable_usage() -> Iterator[None]:
    """Makes what is said of bad usage fit for a terminal: brief, and without the control characters of what was typed.

    Raises:
        click.UsageError: as within.
    """
    try:
        yield
    except click.UsageError as error:
        # Imported here: the programming model comes along with it, and a good command line shows its help without.
        from storm_on_spark.api.text.printable import printable

        said = error.format_message()
        text = printable(said)
        if len(text) > _MOST_SAID:
            text = f"{text[:_MOST_SAID]} ..."
        if text == said:
            raise
        raise click.UsageError(text, error.ctx) from None
