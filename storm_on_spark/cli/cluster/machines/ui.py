"""`storm-spark ui`: a link to the pages of a cluster."""

from __future__ import annotations

from typing import Any

import click

from storm_on_spark.cli.client.asking import asked, cluster_options


@click.command("ui")
@cluster_options
def command(**given: Any) -> None:
    """Print a link to the pages of a cluster.

    The link logs in one browser, once, within ten minutes. A Nimbus has the pages if the extra `ui` is installed there.
    """
    with asked(**given) as request, request.client() as client:
        link = client.ui_link()
        request.answer({"link": link}, link)
