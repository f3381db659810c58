"""`storm-spark upload-credentials`: gives a topology that runs new credentials."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any, Final

import click

from storm_on_spark.cli.client.asking import asked, cluster_options, name

_MOST_BYTES: Final = 1 << 20


@click.command("upload-credentials", short_help="Give a running topology new credentials.")
@name
@click.argument("words", metavar="[-]", nargs=-1)
@click.option(
    "-f",
    "--file",
    "path",
    metavar="FILE",
    help="Where they are: JSON, an object of texts, or a Java properties file. Only its owner may be able to read it. "
    "- is standard input.",
)
@cluster_options
def command(name: str, words: tuple[str, ...], path: str | None, **given: Any) -> None:
    """Give the topology NAME the credentials that FILE or standard input (-) holds, in place of those that it has.

    Its spouts and bolts that are an ICredentialsListener get them while it runs, and in every later run. The empty
    object {} takes all away. They are kept encrypted with the cluster's token, and shown nowhere.
    """
    if words not in ((), ("-",)):
        raise click.UsageError(
            "credentials are not taken from the command line, where every user of this machine could see them: write "
            "them to a file and give it with -f FILE, or to standard input and give -"
        )
    if (path is None) is (not words):
        raise click.UsageError("where are the credentials? Give -f FILE, or - for standard input")
    with asked(**given) as request:
        credentials = _parsed(*_read(path or "-"))
        with request.client() as client:
            client.push_credentials(name, credentials)
        count = len(credentials)
        what = f"{count} credential{'' if count == 1 else 's'}" if count else "no credentials"
        request.answer({"topology": name, "credentials": count}, f"{name} has {what} now.")


def _read(path: str) -> tuple[str, str]:
    """Returns a text, and what it is called."""
    from storm_on_spark.api.errors import SetupError
    from storm_on_spark.cluster.security.tokens import read_secret_file

    if path != "-":
        return read_secret_file(Path(path), "credentials file"), path
    data = sys.stdin.buffer.read(_MOST_BYTES + 1)
    if len(data) > _MOST_BYTES:
        raise SetupError(f"standard input has more than {_MOST_BYTES:,} bytes")
    try:
        return data.decode("utf-8-sig"), "standard input"
    except UnicodeDecodeError:
        raise SetupError("standard input is not UTF-8 text") from None


def _parsed(text: str, where: str) -> dict[str, str]:
    """Returns the credentials in a text; errors show nothing of it."""
    from storm_on_spark.api.errors import SetupError
    from storm_on_spark.flux.errors import FluxError
    from storm_on_spark.flux.properties import parse_properties

    if text.lstrip()[:1] in ("{", "["):
        try:
            found: Any = json.loads(text)
        except (ValueError, RecursionError):
            raise SetupError(f"{where} begins like JSON, but is none") from None
    else:
        try:
            found = parse_properties(text)
        except FluxError:
            raise SetupError(f"{where} is no properties file: after \\u there are no four hexadecimal digits") from None
        if not found:
            raise SetupError(f"{where} holds no credentials; {{}} takes those away that the topology has")
    from storm_on_spark.cluster.credentials import checked_credentials

    return checked_credentials(found)
