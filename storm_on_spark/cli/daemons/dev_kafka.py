"""`storm-spark dev-kafka`: a Kafka broker for development."""

from __future__ import annotations

import json as jsonlib
from pathlib import Path

import click

from storm_on_spark.cli.client.asking import json
from storm_on_spark.cli.daemons.daemon import ended_by_signal
from storm_on_spark.cli.daemons.dev_zookeeper import check_port
from storm_on_spark.cli.shared import options
from storm_on_spark.cli.shared.errors import reporting_errors

_LOOK_SECS = 0.2


@click.command("dev-kafka", short_help="Run a Kafka broker, for development.")
@click.option(
    "--port",
    type=options.PORT,
    default=9092,
    show_default=True,
    help="Port that it listens on, on this host only; 0 for any free one.",
)
@click.option(
    "--dir",
    "folder",
    metavar="DIR",
    type=click.Path(path_type=Path, file_okay=False),
    help="Keep its data there. Without it they are temporary.",
)
@click.option(
    "--topic",
    "topics",
    metavar="NAME[:PARTITIONS]",
    multiple=True,
    help="Create a topic, unless it exists; may be given several times.",
)
@click.option(
    "--load",
    "loads",
    metavar="TOPIC=FILE",
    multiple=True,
    help="Send each line of a file to a topic, which is created unless it exists; may be given several times.",
)
@json
@options.debug
def command(
    port: int, folder: Path | None, topics: tuple[str, ...], loads: tuple[str, ...], json: bool, debug: bool
) -> None:
    """Run one Kafka broker (KRaft), from jars of Maven that are fetched once, until Ctrl-C.

    For development: it is a single broker, and everybody on this host may read and write it.
    """
    with reporting_errors(debug, json):
        from storm_on_spark.api.errors import SetupError
        from storm_on_spark.connectors.kafka import topics as kafka_topics
        from storm_on_spark.connectors.kafka.server import KafkaServer

        wanted = dict(map(kafka_topics.parsed, topics))
        files = [_load(text) for text in loads]
        wanted = {**{kafka_topics.parsed(topic)[0]: 1 for topic, _ in files}, **wanted}
        if wanted:
            kafka_topics.need_kafka()
        if port:
            check_port(port)
        with ended_by_signal() as ended, KafkaServer(None if folder is None else folder.absolute(), port) as server:
            if wanted:
                kafka_topics.create(server.bootstrap_servers, wanted)
            loaded = {topic: 0 for topic, _ in files}
            for topic, file in files:
                loaded[topic] += kafka_topics.load(server.bootstrap_servers, topic, file)
            if json:
                answer = {"kafka": server.bootstrap_servers, "pid": server.pid, "topics": wanted, "loaded": loaded}
                click.echo(jsonlib.dumps(answer))
            else:
                where = "temporary" if folder is None else f"in {folder}"
                for topic, count in loaded.items():
                    click.echo(f"{count} lines are in topic {topic}.")
                click.echo(f"Kafka is up on {server.bootstrap_servers}, data {where}; Ctrl-C ends it.")
            while not ended.wait(_LOOK_SECS):
                if server.pid is None:
                    raise SetupError(f"Kafka has ended; its log was {server.log_file}")


def _load(text: str) -> tuple[str, Path]:
    topic, equals, name = text.partition("=")
    file = Path(name)
    if not (topic and equals and file.is_file()):
        raise click.BadParameter(f"{text!r} is not TOPIC=FILE with a file that exists", param_hint="--load")
    return topic, file
