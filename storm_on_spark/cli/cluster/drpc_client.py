"""`storm-spark drpc-client`: asks a topology, through a DRPC server."""

from __future__ import annotations

import json as jsonlib
from pathlib import Path

import click

from storm_on_spark.cli.client.asking import json
from storm_on_spark.cli.client.needs import need_libraries
from storm_on_spark.cli.shared import options
from storm_on_spark.cli.shared.echo import echo
from storm_on_spark.cli.shared.errors import reporting_errors
from storm_on_spark.launch.conf_text import merged


@click.command("drpc-client", short_help="Ask a topology something, through a DRPC server.")
@click.argument("words", metavar="FUNCTION ARGUMENTS...", nargs=-1, required=True)
@click.option("-f", "--function", metavar="FUNCTION", help="Ask this function for each of the arguments.")
@options.configuration
@json
@options.debug
def command(
    words: tuple[str, ...],
    function: str | None,
    pairs: tuple[str, ...],
    files: tuple[Path, ...],
    json: bool,
    debug: bool,
) -> None:
    """Ask a function of a topology and print the result, one line per request.

    Arguments are pairs of a function and its arguments; with -f, each is the arguments of that function. The server
    is the first of drpc.servers, or this host. Exit code 1: a request failed.
    """
    if function is not None:
        asked = [(function, word) for word in words]
    elif len(words) % 2 == 0:
        asked = list(zip(words[::2], words[1::2], strict=True))
    else:
        raise click.UsageError(f"arguments are pairs of a function and its arguments; {words[-1]!r} has no arguments")
    with reporting_errors(debug, json):
        need_libraries()
        from storm_on_spark.api.config import Config, validate_conf
        from storm_on_spark.drpc.client import DRPCClient

        conf = merged(files, pairs)
        validate_conf(conf)
        results = []
        with DRPCClient({Config.DRPC_SERVERS: ["localhost"], **conf}) as client:
            for name, arguments in asked:
                result = client.execute(name, arguments)
                results.append({"function": name, "arguments": arguments, "result": result})
                if not json:
                    echo(result)
        if json:
            echo(jsonlib.dumps({"results": results}))
