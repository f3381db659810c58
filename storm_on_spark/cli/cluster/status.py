"""`storm-spark status`: one topology."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from storm_on_spark.cli.cluster.asking import asked, cluster_options, name, told_if_stale

if TYPE_CHECKING:
    from rich.console import Console


@click.command("status", short_help="Show one topology.")
@name
@cluster_options
def command(name: str, **given: Any) -> None:
    """Show the topology NAME: where it runs, and what each component has done since its driver started."""
    with asked(**given) as request:
        with request.client() as client:
            page = client.topology(name)
        told_if_stale(page)
        request.answer(page, lambda screen: show(screen, page))


def show(screen: Console, page: dict[str, Any]) -> None:
    """Prints a topology."""
    from storm_on_spark.cli.report import print_result

    def say(text: str) -> None:
        screen.print(text, markup=False, soft_wrap=True)

    say(f"{page['name']} ({page['id']}) is {page['status']}, submitted by {page['owner']} {page['uptime']} ago")
    say(f"driver: {_driver(page)}")
    say(f"code: on {page['replicationCount']} Nimbuses")
    total, latency = page["topologyStats"][0], page["completeLatencyMs"]
    shown = "n/a" if not latency else ", ".join(f"{key} {value:,.0f} ms" for key, value in latency.items())
    say(
        f"tuples: {total['emitted']:,} emitted, {total['acked']:,} acked, {total['failed']:,} failed, "
        f"{page['pending']:,} pending; complete latency {shown}"
    )
    if page["failure"]:
        say(f"failure: {page['failure']}")
    rows = [_row(line, "spout") for line in page["spouts"]] + [_row(line, "bolt") for line in page["bolts"]]
    if rows:
        say("")
        print_result(screen, rows)


def _driver(page: dict[str, Any]) -> str:
    if not page["workers"]:
        return page["schedulerInfo"] or page["driverStatus"] or "none"
    (worker, *_) = page["workers"]
    state = page["driverStatus"] or "starting"
    return f"{state}, on {worker['host']}:{worker['port']}, for {worker['uptime']}"


def _row(line: dict[str, Any], kind: str) -> dict[str, Any]:
    return {
        "component": line[f"{kind}Id"],
        "executors": line["executors"],
        "tasks": line["tasks"],
        "executed": line.get("executed", 0),
        "emitted": line["emitted"],
        "acked": line["acked"],
        "failed": line["failed"],
        "execute ms": line.get("executeLatency", "n/a"),
        "last error": line["lastError"].strip().splitlines()[-1][:80] if line["lastError"].strip() else "",
    }
