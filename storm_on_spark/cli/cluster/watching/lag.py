"""`storm-spark lag`: how far a topology's Kafka spouts are behind."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from storm_on_spark.api.text.printable import one_line
from storm_on_spark.cli.client.asking import asked, cluster_options
from storm_on_spark.cli.client.asking import name as name_argument
from storm_on_spark.cli.shared.echo import echo
from storm_on_spark.cli.shared.errors import FAILED

if TYPE_CHECKING:
    from rich.console import Console


@click.command("lag", short_help="Show how far Kafka spouts are behind.")
@name_argument
@cluster_options
def command(name: str, **given: Any) -> None:
    """Compare the committed offsets of the Kafka spouts of NAME with the ends of their partitions.

    NAME is a topology of a cluster, or the file of a topology. For a file, this command asks Kafka directly, with the
    file's logins; no cluster needs to run the topology.

    The exit code is 1 if the lag of a spout is unknown, for example because Kafka does not answer.
    """
    with asked(**given) as request:
        if name.endswith((".py", ".yaml", ".yml")) or Path(name).is_file():
            page = _of_file(name, request.files, request.pairs)
        else:
            with request.client() as client:
                page = client.page(f"/topology/{client.topology_id(name)}/lag")
        request.answer(page, lambda screen: show(screen, page))
        unknown = {spout: found["errorInfo"] for spout, found in page.items() if found.get("errorInfo")}
        for spout, why in unknown.items():
            echo(f"{spout}: {why}", err=True)
        if unknown:
            sys.exit(FAILED)


def show(screen: Console, page: dict[str, dict[str, Any]]) -> None:
    """Prints the lag of all spouts for which it is known."""
    from rich.table import Table
    from rich.text import Text

    if not page:
        echo("None of its spouts reads Kafka.")
    for spout, found in page.items():
        if found.get("errorInfo"):
            continue
        table = Table("topic", "partition", box=None, title=Text(f"spout {one_line(spout)}"), title_justify="left")
        for column in ("committed", "end", "lag"):
            table.add_column(column, justify="right")
        total = 0
        for topic, partitions in sorted(found["spoutLagResult"].items()):
            for number, lag in sorted(partitions.items(), key=lambda each: int(each[0])):
                committed = lag["consumerCommittedOffset"]
                total += lag["lag"]
                shown = "-" if committed < 0 else f"{committed:,}"
                table.add_row(
                    Text(one_line(topic)), Text(one_line(number)), shown, f"{lag['logHeadOffset']:,}", f"{lag['lag']:,}"
                )
        table.add_row("", "", "", "all", f"{total:,}")
        screen.print(table)


def _of_file(name: str, files: tuple[Path, ...], pairs: tuple[str, ...]) -> dict[str, dict[str, Any]]:
    """Returns the page for a file, by asking Kafka directly."""
    import msgspec

    from storm_on_spark.cli.shared import options
    from storm_on_spark.cluster.rest.pages.lag import told
    from storm_on_spark.connectors.kafka import KafkaSpout, PlainKafkaSpout
    from storm_on_spark.connectors.kafka.lag import Reading
    from storm_on_spark.launch.loader import load

    loaded = load(name)
    topology = loaded.topology(options.conf_of(loaded, files, pairs))
    found = {}
    for spout, spec in sorted(topology.components.items()):
        if isinstance(spec.component, (KafkaSpout, PlainKafkaSpout)):
            found[spout] = msgspec.to_builtins(told(spout, Reading.of(spec.component.kafka_config)))
    return found
