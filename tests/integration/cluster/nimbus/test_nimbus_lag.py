"""The lag of Kafka spouts, of a real broker: by the command from a file, and by REST from what was submitted."""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path
from typing import Any

import httpx
import jsonschema
import pytest
from click.testing import CliRunner
from kafka import KafkaConsumer, KafkaProducer, TopicPartition
from kafka.structs import OffsetAndMetadata
from world import World

from storm_on_spark import TopologyBuilder
from storm_on_spark.cli.main import main
from storm_on_spark.cli.reference.schema import schema_of
from storm_on_spark.cluster.plan_summary import PlanSummary
from storm_on_spark.connectors.kafka import KafkaSpoutConfig, PlainKafkaSpout, topics
from storm_on_spark.connectors.kafka.server import KafkaServer
from storm_on_spark.plan.compile import compile_graph
from storm_on_spark.testing.plugin import kafka_server

__all__ = ["kafka_server"]

MODULE = """
import re
from storm_on_spark import TopologyBuilder
from storm_on_spark.connectors.kafka import KafkaSpout, KafkaSpoutConfig, PlainKafkaSpout
from storm_on_spark.testing import ListSpout

def config(*topics, **properties):
    builder = KafkaSpoutConfig.builder({servers!r}, *topics).set_group_id("lag")
    for name, value in properties.items():
        builder.set_prop(name, value)
    return builder.build()

builder = TopologyBuilder()
builder.set_spout("native", KafkaSpout(config("lag-a", "lag-b")))
builder.set_spout("plain", PlainKafkaSpout(config(re.compile("lag-[b-z]"))))
builder.set_spout("none", PlainKafkaSpout(config("missing")))
builder.set_spout("other", ListSpout([[1]], fields=["n"]))
topology = builder.create_topology()
"""
A = {
    "0": {"consumerCommittedOffset": 3, "logHeadOffset": 5, "lag": 2},
    "1": {"consumerCommittedOffset": -1, "logHeadOffset": 1, "lag": 1},
}
B = {"0": {"consumerCommittedOffset": -1, "logHeadOffset": 0, "lag": 0}}


@pytest.fixture(scope="module")
def servers(kafka_server: KafkaServer) -> str:
    servers = kafka_server.bootstrap_servers
    topics.create(servers, {"lag-a": 2, "lag-b": 1})
    with closing(KafkaProducer(bootstrap_servers=servers)) as producer:
        for partition in 0, 0, 0, 0, 0, 1:
            producer.send("lag-a", b"x", partition=partition)
        producer.flush()
    with closing(KafkaConsumer(bootstrap_servers=servers, group_id="lag")) as consumer:
        consumer.commit({TopicPartition("lag-a", 0): OffsetAndMetadata(3, "", -1)})
    return servers


@pytest.fixture
def file(servers: str, tmp_path: Path) -> Path:
    file = tmp_path / "reading.py"
    file.write_text(MODULE.format(servers=servers), "utf-8")
    return file


def check(page: dict[str, Any], servers: str) -> None:
    assert list(page) == ["native", "none", "plain"]
    assert page["native"]["spoutLagResult"] == {"lag-a": A, "lag-b": B}
    assert page["plain"]["spoutLagResult"] == {"lag-b": B}
    assert {spout["spoutType"] for spout in page.values()} == {"KAFKA"}
    assert page["none"]["errorInfo"] == f"Kafka at {servers} has no topic missing"


def test_the_command_asks_kafka_for_the_spouts_of_a_file(file: Path, servers: str) -> None:
    done = CliRunner().invoke(main, ["lag", str(file), "--json"])
    assert done.exit_code == 1, "of one spout it isn't known"
    assert done.stderr == f"none: Kafka at {servers} has no topic missing\n"
    page = json.loads(done.stdout)
    jsonschema.validate(page, schema_of("lag"))
    check(page, servers)
    table = CliRunner().invoke(main, ["lag", str(file)])
    rows = [line.split() for line in table.stdout.splitlines()]
    assert ["lag-a", "0", "3", "5", "2"] in rows
    assert ["lag-a", "1", "-", "1", "1"] in rows
    assert ["all", "3"] in rows
    assert table.exit_code == 1
    assert "none: Kafka at" in table.stderr


def test_the_command_ends_with_zero_where_all_is_known(tmp_path: Path, servers: str) -> None:
    file = tmp_path / "all_known.py"
    all_known = MODULE.replace('builder.set_spout("none", PlainKafkaSpout(config("missing")))\n', "")
    file.write_text(all_known.format(servers=servers), "utf-8")
    done = CliRunner().invoke(main, ["lag", str(file)])
    assert (done.exit_code, done.stderr) == (0, "")


def test_rest_and_the_command_ask_for_a_topology_of_the_cluster(world: World, file: Path, servers: str) -> None:
    variables: dict[str, Any] = {}
    exec(file.read_text("utf-8"), variables)
    plan = PlanSummary.of_graph(compile_graph(variables["topology"], {})).document()
    world.nimbus("a")
    topology_id = world.client().submit(world.packed(plan=plan), "words")
    address = world.leader()
    with httpx.Client(base_url=f"http://{address}/api/v1", trust_env=False, timeout=60) as http:
        check(http.get(f"/topology/{topology_id}/lag").json(), servers)
        assert http.get("/topology/nothing-1-1/lag").status_code == 404
    done = CliRunner().invoke(main, ["lag", "words", "--json", "--nimbus", address])
    assert done.exit_code == 1, "of one spout it isn't known"
    check(json.loads(done.stdout), servers)


def test_a_spout_that_logs_in_is_asked_for_by_its_file_alone(servers: str) -> None:
    from storm_on_spark.cluster.rest.pages.lag import lag_page

    config = KafkaSpoutConfig.builder(servers, "lag-a").set_group_id("lag").set_prop("security_protocol", "SASL_SSL")
    builder = TopologyBuilder()
    builder.set_spout("secret", PlainKafkaSpout(config.set_prop("sasl_plain_password", "hush").build()))
    plan = PlanSummary.of_graph(compile_graph(builder.create_topology(), {}))
    assert "hush" not in json.dumps(plan.document())
    (found,) = lag_page(plan).values()
    assert found.error_info == (
        "the spout speaks SASL_SSL to Kafka, and its login is in the topology's code alone: ask by storm-spark lag FILE"
    )
