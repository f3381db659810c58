"""`storm-spark dev-kafka`: a Kafka broker for development."""

from __future__ import annotations

import json as jsonlib
from collections.abc import Mapping, Sequence
from pathlib import Path

import click

from storm_on_spark.cli.client.asking import json
from storm_on_spark.cli.daemons.dev_zookeeper import check_port, tell_open
from storm_on_spark.cli.shared import options
from storm_on_spark.cli.shared.echo import echo
from storm_on_spark.cli.shared.errors import reporting_errors
from storm_on_spark.runtime.processes.ending.signals import ended_by_signal

_LOOK_SECS = 0.2


@click.command("dev-kafka", short_help="Run a Kafka broker for development.")
@options.server_port(9092)
@options.data_folder
@click.option(
    "--topic",
    "topics",
    metavar="NAME[:PARTITIONS]",
    multiple=True,
    help="Create a topic unless it exists. May be repeated.",
)
@click.option(
    "--load",
    "loads",
    metavar="TOPIC=FILE",
    multiple=True,
    help="Send each line of a file to a topic, which is created unless it exists. May be repeated.",
)
@click.option(
    "--running",
    is_flag=True,
    help="Don't start a broker. Create topics and load files in the one that listens on the port, then end.",
)
@json
@options.debug
def command(
    port: int,
    folder: Path | None,
    topics: tuple[str, ...],
    loads: tuple[str, ...],
    running: bool,
    json: bool,
    debug: bool,
) -> None:
    """Run one Kafka broker (KRaft) until Ctrl-C. Its jars are fetched once from Maven.

    This is for development: it is a single broker, and everybody on this host may read and write it. Use --running to
    create topics and load files while it runs.
    """
    with reporting_errors(debug, json):
        from storm_on_spark.api.errors import SetupError
        from storm_on_spark.connectors.kafka import topics as kafka_topics
        from storm_on_spark.connectors.kafka.server import KafkaServer
        from storm_on_spark.runtime.processes.server import HOST

        wanted = dict(map(kafka_topics.parsed, topics))
        files = [_load(text) for text in loads]
        wanted = {**{kafka_topics.parsed(topic)[0]: 1 for topic, _ in files}, **wanted}
        if wanted:
            kafka_topics.need_kafka()
        if running:
            _check_running(port, folder, wanted)
            _tell(f"{HOST}:{port}", None, wanted, _fill(f"{HOST}:{port}", wanted, files), json)
            return
        if port:
            check_port(port)
        with KafkaServer(None if folder is None else folder.absolute(), port) as server, ended_by_signal() as ended:
            loaded = _fill(server.bootstrap_servers, wanted, files)
            _tell(server.bootstrap_servers, server.pid, wanted, loaded, json)
            if not json:
                where = "temporary" if folder is None else f"in {folder}"
                echo(f"Kafka is up on {server.bootstrap_servers}, data {where}; Ctrl-C ends it.")
            tell_open()
            while not ended.wait(_LOOK_SECS):
                if server.pid is None:
                    raise SetupError(f"Kafka has ended; its log was {server.log_file}")


def _check_running(port: int, folder: Path | None, wanted: Mapping[str, int]) -> None:
    if not port:
        raise click.BadParameter("give the running broker's port with --port", param_hint="--running")
    if folder is not None:
        raise click.BadParameter("the running broker already has a folder for its data", param_hint="--dir")
    if not wanted:
        raise click.UsageError("--running needs --topic or --load")


def _fill(servers: str, wanted: dict[str, int], files: Sequence[tuple[str, Path]]) -> dict[str, int]:
    """Creates topics and loads files; returns the number of lines sent to each topic."""
    from storm_on_spark.connectors.kafka import topics as kafka_topics

    if wanted:
        kafka_topics.create(servers, wanted)
    loaded = {topic: 0 for topic, _ in files}
    for topic, file in files:
        loaded[topic] += kafka_topics.load(servers, topic, file)
    return loaded


def _tell(servers: str, pid: int | None, wanted: Mapping[str, int], loaded: Mapping[str, int], json: bool) -> None:
    if json:
        echo(jsonlib.dumps({"kafka": servers, "pid": pid, "topics": wanted, "loaded": loaded}))
        return
    for topic in wanted:
        what = f"{loaded[topic]} lines are in topic {topic}." if topic in loaded else f"There is a topic {topic}."
        echo(what)


def _load(text: str) -> tuple[str, Path]:
    topic, equals, name = text.partition("=")
    file = Path(name)
    if not (topic and equals and file.is_file()):
        raise click.BadParameter(f"{text!r} is not TOPIC=FILE with a file that exists", param_hint="--load")
    return topic, file
