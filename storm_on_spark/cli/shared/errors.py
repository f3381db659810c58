"""How errors end a command: one sentence on standard error, and an exit code."""

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
    text = scrubbed(str(error).strip())
    if isinstance(error, StormError):
        return text
    first = next(iter(text.splitlines()), "")
    return f"{type(error).__name__}: {first}" if first else type(error).__name__


@contextlib.contextmanager
def reporting_errors(debug: bool, json: bool = False) -> Iterator[None]:
    """Turns an error within into a sentence and an exit code.

    Args:
        debug: whether its traceback is printed too.
        json: whether standard output is to have a document in any case.
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
    """Prints the sentence for `error`, its input, where in the user's code it comes from, and where the log is."""
    echo(f"Error: {sentence(error)}", err=True)
    if isinstance(error, StormError) and error.input:
        echo(f"Its input: {error.input}", err=True)
    if trace := trace_of(error):
        echo(trace.rstrip(), err=True)
    elif not isinstance(error, StormError):
        echo("This may be a mistake of storm-spark itself; --debug shows where.", err=True)
    # The sentence of a session that does not start names the file already.
    if log is not None and str(log) not in str(error):
        echo(f"Details are in {log}", err=True)


def record(error: BaseException, log: Path) -> None:
    """Appends the traceback of `error` to the log; a disk that is full is no second error."""
    with contextlib.suppress(OSError), log.open("a", encoding="utf-8") as file:
        file.write("".join(traceback.format_exception(error)))
        file.write(getattr(error, "cause_text", ""))
