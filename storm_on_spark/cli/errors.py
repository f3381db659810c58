"""How errors end a command: one sentence on standard error, and an exit code."""

from __future__ import annotations

import contextlib
import sys
import traceback
from collections.abc import Iterator
from pathlib import Path

import click

from storm_on_spark.api.errors import CheckpointError, ConfigError, InvalidTopologyError, StormError
from storm_on_spark.spark.loader import LoadError

DONE, FAILED, USAGE, STOPPED = 0, 1, 2, 130

_BAD_INPUT = (InvalidTopologyError, ConfigError, CheckpointError, LoadError)
"""Nothing ran, and what was given has to change."""


def exit_code(error: BaseException) -> int:
    """Returns the exit code that `error` ends a command with.

    >>> exit_code(ConfigError("unknown key")), exit_code(StormError("the worker died"))
    (2, 1)
    """
    return USAGE if isinstance(error, _BAD_INPUT) else FAILED


def sentence(error: BaseException) -> str:
    """Returns `error` for a person: its text if it is ours, otherwise its type and its text's first line.

    >>> sentence(StormError("no spout")), sentence(OSError(28, "No space left on device"))
    ('no spout', 'OSError: [Errno 28] No space left on device')
    """
    text = str(error).strip()
    if isinstance(error, StormError):
        return text
    first = next(iter(text.splitlines()), "")
    return f"{type(error).__name__}: {first}" if first else type(error).__name__


@contextlib.contextmanager
def told(debug: bool) -> Iterator[None]:
    """Turns an error within into a sentence and an exit code; with `debug` its traceback is printed too."""
    try:
        yield
    except (click.ClickException, click.exceptions.Exit, click.Abort):
        raise
    except Exception as error:
        if debug:
            traceback.print_exc()
        tell(error)
        sys.exit(exit_code(error))


def tell(error: BaseException, log: Path | None = None) -> None:
    """Prints the sentence for `error`, and where Java's side of it is."""
    click.echo(f"Error: {sentence(error)}", err=True)
    if not isinstance(error, StormError):
        click.echo("This may be a mistake of storm-spark itself; --debug shows where.", err=True)
    # The sentence of a session that does not start names the file already.
    if log is not None and str(log) not in str(error):
        click.echo(f"Details are in {log}", err=True)


def record(error: BaseException, log: Path) -> None:
    """Appends the traceback of `error` to the log; a disk that is full is no second error."""
    with contextlib.suppress(OSError), log.open("a", encoding="utf-8") as file:
        file.write("".join(traceback.format_exception(error)))
