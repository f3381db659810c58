"""`storm-spark status`: one topology."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import click

from storm_on_spark.api.info import ALL_TIME, WINDOWS, RepetitionInfo
from storm_on_spark.api.text.printable import printable
from storm_on_spark.api.text.wording import milliseconds
from storm_on_spark.cli.client.asking import asked, cluster_options, name, warn_if_stale
from storm_on_spark.cli.client.watching import watch_option, watched
from storm_on_spark.cli.cluster.watching.trend import Trend, done, lines_of, rate_rows

if TYPE_CHECKING:
    from rich.console import Console


@click.command("status", short_help="Show one topology.")
@name
@click.option(
    "--window",
    type=click.Choice(list(WINDOWS)),
    default=ALL_TIME,
    show_default=True,
    help="Count over the last so many seconds.",
)
@watch_option
@cluster_options
def command(name: str, window: str, watch: bool, **given: Any) -> None:
    """Show the topology NAME: where it runs, and the counts of each component. Windows go on over restarts."""
    with asked(**given) as request, request.client() as client:
        if watch:
            trend = Trend(time.monotonic)
            watched(request, lambda: client.topology(name, window), lambda screen, page: show(screen, page, trend))
            return
        page = client.topology(name, window)
        warn_if_stale(page)
        request.answer(page, lambda screen: show(screen, page))


def show(screen: Console, page: dict[str, Any], trend: Trend | None = None) -> None:
    """Prints a topology; with the trend of those that watch it."""
    from storm_on_spark.cli.shared.report import metric_lines, print_result

    def say(text: str) -> None:
        screen.print(printable(text), markup=False, soft_wrap=not screen.is_terminal)

    say(f"{page['name']} ({page['id']}) is {page['status']}, submitted by {page['owner']} {page['uptime']} ago")
    say(f"driver: {_driver(page)}")
    if page.get("mode"):
        again = page.get("repetition")
        say(f"tuples are executed in {page['mode']}" + (f": {RepetitionInfo(**again)}" if again else ""))
    say(f"code: on {page['replicationCount']} Nimbuses")
    spouts, latency = page["spoutStats"], page["completeLatencyMs"]
    everyone = next(line for line in page["topologyStats"] if line.get("window") == page.get("window"))
    shown = "n/a" if not latency else ", ".join(f"{key} {milliseconds(value)}" for key, value in latency.items())
    say(
        f"spouts: {spouts['emitted']:,} emitted, {spouts['transferred']:,} transferred, {spouts['acked']:,} acked, "
        f"{spouts['failed']:,} failed, {page['pending']:,} pending; complete latency {shown}"
    )
    say(f"all components: {everyone['emitted']:,} emitted, {everyone['transferred']:,} transferred")
    if page.get("windowSecs"):
        say(f"window: {page['windowHint'].lower()}, {page['windowSecs']:,.0f} s of it so far{_waiting(page)}")
    last = [(component, errors[-1]) for component, errors in page.get("systemErrors", {}).items()]
    if page.get("logLevels"):
        say(f"log levels: {', '.join(f'{logger} {level}' for logger, level in sorted(page['logLevels'].items()))}")
    if page["failure"]:
        told = [error for _, error in last if error["error"] == page["failure"]]
        say(f"failure: {page['failure']}{_when(told[0]) if told else ''}")
    for component, error in last:
        lines = error["error"].strip().splitlines()
        if lines and error["error"] != page["failure"]:
            count = len(page["systemErrors"][component])
            more = f"; {count} such, `storm-spark errors {page['name']}` shows them" if count > 1 else ""
            say(f"last error of {component}: {lines[0][:400]}{_when(error)}{more}")
    for warning in page.get("warnings", ()):
        about = f" {warning['component']}" if warning["component"] else ""
        say(f"warning ({warning['rule']}){about}: {warning['text']}. {warning['advice']}")
    rows = [_row(line, "spout") for line in page["spouts"]] + [_row(line, "bolt") for line in page["bolts"]]
    if rows:
        say("")
        print_result(screen, rows)
        rates = {} if trend is None else trend.look({name: done(line) for name, line in lines_of(page)})
        say("")
        print_result(screen, rate_rows(page, rates))
    for text in metric_lines(page.get("metrics", {})):
        say(text)
    for kind in ("spout", "bolt"):
        for line in page[f"{kind}s"]:
            # Below the table, so that the table fits 80 columns.
            if error := line["lastError"].strip():
                say(f"last error of {line[f'{kind}Id']}: {error.splitlines()[-1][:400]}{_when(_of_line(line))}")


def _waiting(page: dict[str, Any]) -> str:
    """Returns what waits in the logs of spouts, if that is known."""
    load = page.get("load")
    return f"; {sum(load['backlog'].values()):,} tuples wait in spouts' logs" if load else ""


def _of_line(line: dict[str, Any]) -> dict[str, Any]:
    """Returns the last error of a component in the format of REST."""
    names = {"errorTime": "errorTime", "errorFirstTime": "firstTime", "errorCount": "count"}
    names |= {"errorBeforeRestart": "beforeRestart", "errorInput": "input"}
    return {ours: line[name] for name, ours in names.items() if line.get(name) is not None}


def _when(error: dict[str, Any]) -> str:
    """Returns the text after an error: its input, and how often and when it happened."""
    from storm_on_spark.cli.shared.report import when

    given = f"; input: {error['input']}" if error.get("input") else ""
    return f"{given} ({when(error)})" if "errorTime" in error else given


def _driver(page: dict[str, Any]) -> str:
    if not page["workers"]:
        return page["schedulerInfo"] or page["driverStatus"] or "none"
    (worker, *_) = page["workers"]
    state = page["driverStatus"] or "starting"
    return f"{state}, on {worker['host']}:{worker['port']}, for {worker['uptime']}"


def _row(line: dict[str, Any], kind: str) -> dict[str, Any]:
    return {
        "component": line[f"{kind}Id"],
        "tasks": line["tasks"],
        "executed": line.get("executed", 0),
        "emitted": line["emitted"],
        "transferred": line["transferred"],
        "acked": line["acked"],
        "failed": line["failed"],
        "execute ms": line.get("executeLatency", "n/a"),
    }
