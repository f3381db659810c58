"""`storm-spark nimbuses`: the Nimbuses of a cluster, and which one leads."""

from __future__ import annotations

from typing import Any

import click

from storm_on_spark.cli.client.asking import asked, cluster_options, warn_if_stale


@click.command("nimbuses")
@cluster_options
def command(**given: Any) -> None:
    """List the Nimbuses of a cluster, the leader first.

    One that lacks the code of a topology can't lead until it has fetched it.
    """
    with asked(**given) as request:
        from storm_on_spark.cli.shared.report import print_result

        with request.client() as client:
            page = client.page("/nimbus/summary")
        warn_if_stale(page)
        rows = [
            {
                "nimbus": f"{row['host']}:{row['port']}",
                "status": row["status"],
                "uptime": row["nimbusUpTime"],
                "version": row["version"],
                "lacks the code of": ", ".join(row["missingCode"]),
            }
            for row in page["nimbuses"]
        ]
        request.answer(page, lambda screen: print_result(screen, rows))
