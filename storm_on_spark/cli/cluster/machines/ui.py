"""`storm-spark ui`: a link to the pages of a cluster, or of an admin of streams."""

from __future__ import annotations

from typing import Any

import click

from storm_on_spark.api.config import Config
from storm_on_spark.cli.client.asking import asked, cluster_options


@click.command("ui")
@click.option("--admin", metavar="URL", help="An admin of streams, such as http://localhost:9393; no Nimbus is asked.")
@cluster_options
def command(admin: str | None, **given: Any) -> None:
    """Print a link to the pages of a cluster, or with --admin to those of streams.

    The link logs in one browser, once, within ten minutes. A Nimbus or an admin has pages if the extra `ui` is
    installed there.
    """
    if admin is not None and given["nimbuses"]:
        raise click.UsageError("Expected one of --admin and --nimbus")
    with asked(**given) as request:
        if admin is None:
            with request.client() as client:
                link = client.ui_link()
        else:
            from storm_on_spark.xd.client import AdminClient

            conf = dict(request.conf)
            if request.token_file is not None:
                conf[Config.NIMBUS_AUTH_TOKEN_FILE] = str(request.token_file)
            with AdminClient(admin, conf) as streams:
                link = streams.ui_link()
        request.answer({"link": link}, link)
