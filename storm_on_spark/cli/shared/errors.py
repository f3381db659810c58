"""Errors that end a command: one sentence on standard error, and an exit code."""

from __future__ import annotations

import contextlib
import json as jsonlib
import sys
import traceback
from collections.abc import Iterator
from pathlib import Path

import click

from storm_on_spark.api.config.secrets import scrubbed
from storm_on_spark.api.errors import CheckpointError, ConfigError, InvalidTopologyError, StormError
from storm_on_spark.api.text.traces import trace_of
from storm_on_spark.cli.shared.echo import echo
from storm_on_spark.cli.shared.pipes import is_no_error
from storm_on_spark.launch.loader import LoadError

DONE, FAILED, USAGE, STOPPED = 0, 1, 2, 130

_BAD_INPUT = (InvalidTopologyError, ConfigError, CheckpointError, LoadError)
"""Errors of invalid input: nothing has run yet."""


def exit_code(error: BaseException) -> int:
    """Returns the exit code of a command that ends with `error`.

    >>> exit_code(ConfigError("unknown key")), exit_code(StormError("the worker died"))
    (2, 1)
    """
    return USAGE if isinstance(error, _BAD_INPUT) else FAILED


def sentence(error: BaseException) -> str:
    """Returns `error` for people: its text if it is this package's, otherwise its type and the first line of its text.

    >>> sentence(StormError("no spout")), sentence(OSError(28, "No space left on device"))
    ('no spout', 'OSError: [Errno 28] No space left on device')
    """
    text = scrubbed(str(error).strip())
    if isinstance(error, StormError):
        return text
    first = next(iter(text.splitlines()), "")
    return f"{type(error).__name__}: {first}" if first else type(error).__name__


@contextlib.contextmanager
def reporting_errors(debug: bool, json: bool = False) -> Iterator[None]:
    """Turns an error inside the block into a sentence and an exit code.

    Args:
        debug: whether to print its traceback too.
        json: whether to print a document on standard output even then.
    """
    try:
        yield
    except (click.ClickException, click.exceptions.Exit, click.Abort):
        raise
    except Exception as error:
        if is_no_error(error):
            raise
        if debug:
            traceback.print_exc()
        if json:
            echo(jsonlib.dumps({"error": sentence(error)}))
        tell(error)
        sys.exit(exit_code(error))


def tell(error: BaseException, log: Path | None = None) -> None:
    """Prints the sentence for `error`, its input, its place in user code, and where the log is."""
    echo(f"Error: {sentence(error)}", err=True)
    if isinstance(error, StormError) and error.input:
        echo(f"Its input: {error.input}", err=True)
    if trace := trace_of(error):
        echo(trace.rstrip(), err=True)
    elif not isinstance(error, StormError):
        echo("This may be a mistake of storm-spark itself; --debug shows where.", err=True)
    # If a session does not start, the sentence already names the file.
    if log is not None and str(log) not in str(error):
        echo(f"Details are in {log}", err=True)


def record(error: BaseException, log: Path) -> None:
    """Appends the traceback of `error` to the log; ignores a full disk."""
    with contextlib.suppress(OSError), log.open("a", encoding="utf-8") as file:
        file.write("".join(traceback.format_exception(error)))
        file.write(getattr(error, "cause_text", ""))
