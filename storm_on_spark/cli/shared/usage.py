"""Error messages for invalid command lines."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Final

import click

_MOST_SAID: Final = 1_000
"""Characters."""


@contextlib.contextmanager
def readable_usage() -> Iterator[None]:
    """Makes messages about bad usage safe for a terminal: short, and without control characters from the input.

    Raises:
        click.UsageError: raised again from inside the block.
    """
    try:
        yield
    except click.UsageError as error:
        # Imported here, because it imports the programming model, which help for a valid command line doesn't need.
        from storm_on_spark.api.text.printable import printable

        said = error.format_message()
        text = printable(said)
        if len(text) > _MOST_SAID:
            text = f"{text[:_MOST_SAID]} ..."
        if text == said:
            raise
        raise click.UsageError(text, error.ctx) from None
