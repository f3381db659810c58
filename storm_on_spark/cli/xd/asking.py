"""Shared code of the commands that ask an admin: options, answers and errors."""

from __future__ import annotations

import contextlib
import json as jsonlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click

from storm_on_spark.api.config import Config, validate_conf
from storm_on_spark.cli.client import asking as cluster
from storm_on_spark.cli.client.needs import need_libraries
from storm_on_spark.cli.shared import options
from storm_on_spark.cli.shared.echo import echo
from storm_on_spark.cli.shared.errors import reporting_errors
from storm_on_spark.launch.conf_text import merged
from storm_on_spark.launch.loader import LoadError

if TYPE_CHECKING:
    from storm_on_spark.xd.client import AdminClient

_Function = TypeVar("_Function", bound=Callable[..., Any])

OWN: Final = frozenset({"admin", "token_file", "pairs", "files"})
"""Parameters that a command lacks in a shell, because the shell knows its admin."""
HIDDEN: Final = frozenset({"json", "debug"})
"""Parameters that a shell accepts but doesn't propose."""


def admin_options(function: _Function) -> _Function:
    """Adds the options that `asked` needs."""
    for option in (
        options.debug,
        cluster.json,
        cluster.token_file,
        click.option(
            "--admin",
            metavar="URL",
            help="The admin; by default that of a running storm-spark dev, or http://localhost:9393.",
        ),
        options.configuration,
    ):
        function = option(function)
    return function


@dataclass
class Asked:
    """A command's admin, and the format of its answer."""

    client: AdminClient
    json: bool

    def answer(self, document: Any, text: str) -> None:
        """Prints the answer: `document` as JSON, or the text."""
        if self.json:
            import msgspec

            echo(jsonlib.dumps(msgspec.to_builtins(document)))
        elif text:
            echo(text)


@contextlib.contextmanager
def asked(
    admin: str | None = None,
    token_file: Path | None = None,
    pairs: tuple[str, ...] = (),
    files: tuple[Path, ...] = (),
    json: bool = False,
    debug: bool = False,
) -> Iterator[Asked]:
    """Yields the admin given on the command line, or the shell's; an error inside the block ends the command.

    With `--json`, standard output gets a document even then.
    """
    with reporting_errors(debug, json), _bad_input():
        shell = click.get_current_context().obj
        if shell is not None:
            yield Asked(shell.client, json)
            return
        with connected(admin, token_file, pairs, files) as client:
            yield Asked(client, json)


def connected(
    admin: str | None, token_file: Path | None, pairs: tuple[str, ...], files: tuple[Path, ...]
) -> AdminClient:
    """Returns a client of the admin given on the command line, or of the `storm-spark dev` on this host.

    Raises:
        StormError: a library is missing, or the command line is invalid.
    """
    need_libraries()
    from storm_on_spark.cli.client.dev_record import find
    from storm_on_spark.xd.client import DEFAULT_URL, AdminClient

    conf = merged(files, pairs)
    validate_conf(conf)
    record = find()[0] if admin is None else None
    if record is not None and record.admin is not None:
        admin, conf = record.admin, {Config.NIMBUS_AUTH_TOKEN_FILE: record.token_file, **conf}
    if token_file is not None:
        conf = {**conf, Config.NIMBUS_AUTH_TOKEN_FILE: str(token_file)}
    return AdminClient(DEFAULT_URL if admin is None else admin, conf)


@contextlib.contextmanager
def _bad_input() -> Iterator[None]:
    """Treats a request that an admin refuses as invalid as an input error, with exit code 2."""
    try:
        yield
    except Exception as error:
        # Without the libraries this is a different error, which is already being raised.
        if type(error).__name__ in ("RecordError", "LimitError"):
            raise LoadError(str(error)) from error
        raise


def either(here: click.Command, there: click.Command) -> click.Command:
    """Returns a command that asks an admin if --admin is given, and otherwise works on this machine."""
    own = {each.name for each in here.params}

    def callback(**given: Any) -> None:
        if given["admin"] is not None:
            there.callback(**given)  # type: ignore[misc] # each has one
            return
        if given["token_file"] or given["pairs"] or given["files"] or (given["json"] and "json" not in own):
            raise click.UsageError("--token-file, -c, --conf, and --json of delete need --admin URL")
        here.callback(**{name: value for name, value in given.items() if name in own})  # type: ignore[misc]

    admin = click.Option(["--admin"], metavar="URL", help="Ask the admin at URL instead of this machine.")
    more = (each for each in there.params if each.name not in {*own, "admin"})
    params = [*here.params, admin, *more]
    return click.Command(here.name, callback=callback, params=params, help=here.help, short_help=here.short_help)
