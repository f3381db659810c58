"""Logins at a real broker: SASL PLAIN and SCRAM, with and without TLS, by kafka-python and by Kafka's own client."""

from __future__ import annotations

import contextlib
import logging
import secrets
from collections.abc import Iterator, Mapping
from typing import Any

import pytest
import trustme
from cryptography.hazmat.primitives import serialization
from kafka import KafkaAdminClient
from kafka_broker import Kafka, read, records
from waiting import eventually

from storm_on_spark import Fields, SetupError, TopologyBuilder
from storm_on_spark.api.sink import SinkContext
from storm_on_spark.connectors.kafka import (
    KafkaBolt,
    KafkaSpout,
    KafkaSpoutConfig,
    KafkaSpoutError,
    PlainKafkaBolt,
    PlainKafkaSpout,
    SimpleRecordTranslator,
)
from storm_on_spark.connectors.kafka.server import KafkaServer
from storm_on_spark.testing import BoltTester, SpoutTester, make_tuple, running_topology
from storm_on_spark.xd.bus.journal import Message, Record
from storm_on_spark.xd.bus.kafka import Clients, KafkaBus, Seals
from storm_on_spark.xd.bus.port import ChannelFeed, Place
from storm_on_spark.xd.dsl import Channel

SECRET = 'h"u\\sh'
WRONG = "not-the-pass"
_MODULES = "org.apache.kafka.common.security"
LOGINS = ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512 over TLS", "TLS"]


class Secured:
    """A broker with doors for logins."""

    def __init__(self, server: KafkaServer, authority: str) -> None:
        self.server = server
        self._authority = authority

    def servers(self, login: str) -> str:
        return self.server.servers_of({"TLS": "TLS"}.get(login, "BOTH" if "TLS" in login else "SASL"))

    def settings(self, login: str, password: str = SECRET, authority: str | None = None) -> dict[str, Any]:
        trust = {"ssl_cafile": authority or self._authority}
        if login == "TLS":
            return {"security_protocol": "SSL", **trust}
        with_tls = login.endswith("TLS")
        return {
            "security_protocol": "SASL_SSL" if with_tls else "SASL_PLAINTEXT",
            "sasl_mechanism": login.split()[0],
            "sasl_plain_username": "ann",
            "sasl_plain_password": password,
            **(trust if with_tls else {}),
        }

    def spout(self, login: str, topic: str, settings: Mapping[str, Any]) -> KafkaSpoutConfig:
        builder = KafkaSpoutConfig.builder(self.servers(login), topic).set_group_id(f"group-{topic}")
        builder.set_record_translator(SimpleRecordTranslator(message, Fields("message")))
        for name, value in settings.items():
            builder.set_prop(name, value)
        return builder.build()


def message(record):
    return [record.value]


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    folder = tmp_path_factory.mktemp("tls")
    authority = trustme.CA()
    issued = authority.issue_cert("127.0.0.1")
    key = serialization.load_pem_private_key(issued.private_key_pem.bytes(), None)
    form = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    chain = b"".join(blob.bytes() for blob in issued.cert_chain_pems)
    (folder / "broker.pem").write_bytes(key.private_bytes(*form) + chain)
    authority.cert_pem.write_to_path(folder / "ca.pem")
    escaped = SECRET.replace("\\", "\\\\").replace('"', '\\"').replace("\\", "\\\\")
    properties = ["sasl.enabled.mechanisms=PLAIN,SCRAM-SHA-256,SCRAM-SHA-512"]
    for door in "sasl", "both":
        properties += [
            f"listener.name.{door}.plain.sasl.jaas.config={_MODULES}.plain.PlainLoginModule required "
            f'user_ann="{escaped}";',
            *(
                f"listener.name.{door}.{kind}.sasl.jaas.config={_MODULES}.scram.ScramLoginModule required;"
                for kind in ("scram-sha-256", "scram-sha-512")
            ),
        ]
    for door in "both", "tls":
        properties += [
            f"listener.name.{door}.ssl.keystore.type=PEM",
            f"listener.name.{door}.ssl.keystore.location={folder / 'broker.pem'}",
        ]
    doors = {"SASL": "SASL_PLAINTEXT", "BOTH": "SASL_SSL", "TLS": "SSL"}
    with KafkaServer(properties=tuple(properties), listeners=doors) as server:
        with KafkaAdminClient(bootstrap_servers=server.bootstrap_servers) as admin:
            # One request for each: a broker takes a user once in a request.
            for kind in "SCRAM_SHA_256", "SCRAM_SHA_512":
                assert admin.alter_user_scram_credentials([_scram(kind)]) == {"ann": None}
        yield Secured(server, str(folder / "ca.pem"))


def _scram(kind: str) -> Any:
    from kafka.admin import ScramMechanism, UserScramCredentialUpsertion

    return UserScramCredentialUpsertion("ann", ScramMechanism[kind], SECRET, iterations=4096)


@pytest.fixture(scope="module")
def kafka(secured: Secured) -> Kafka:
    return Kafka(secured.server)


@pytest.mark.parametrize("login", LOGINS)
def test_spout_and_bolt_in_plain_python_log_in(secured: Secured, kafka: Kafka, login: str) -> None:
    topic, settings = kafka.topic(), secured.settings(login)
    bolt = PlainKafkaBolt(secured.servers(login)).with_topic_selector(topic).with_producer_properties(settings)
    with BoltTester(bolt) as tester:
        tester.execute(make_tuple(["to be"], ["message"]))
        assert len(tester.collector.acked) == 1
    with SpoutTester(PlainKafkaSpout(secured.spout(login, topic, settings))) as tester:
        (found,) = read(tester, 1)
    assert found.values == ("to be",)


@pytest.mark.parametrize("login", LOGINS)
def test_the_message_bus_of_streams_logs_in(secured: Secured, kafka: Kafka, login: str) -> None:
    properties = {name.replace("_", "."): value for name, value in secured.settings(login).items()}
    clients = Clients((secured.servers(login),), properties)
    seals, queue = Seals(secrets.token_bytes(32)), Channel("queue", kafka.topic())
    with contextlib.ExitStack() as stack:
        bus = KafkaBus(clients, seals, replication=1, channel_partitions=1, most_bytes=1 << 20)
        stack.callback(bus.close)
        source = bus.port(Place("s-1-1", "time", output=queue))
        stack.callback(source.close)
        source.open()
        source.commit(Record((Message("to be", {}),), {}, (), (), "1x1"), {})
        reader = bus.port(Place("s-1-1", "log", input=ChannelFeed(queue)))
        stack.callback(reader.close)
        reader.open()
        (found,) = eventually(lambda: list(reader.next(10)))
        assert found.message.payload == "to be"


def test_spouts_and_bolts_of_spark_log_in(nothing_left_behind, spark_session, secured: Secured, kafka: Kafka) -> None:
    pairs = [
        ("PLAIN", "SCRAM-SHA-512 over TLS"),
        ("SCRAM-SHA-512 over TLS", "SCRAM-SHA-256"),
        ("TLS", "PLAIN"),
        ("SCRAM-SHA-256", "TLS"),
    ]
    builder = TopologyBuilder()
    targets = []
    for number, (reads, writes) in enumerate(pairs):
        source, target = kafka.topic(), kafka.topic()
        targets.append(target)
        kafka.send(source, f"by {reads}")
        builder.set_spout(f"spout-{number}", KafkaSpout(secured.spout(reads, source, secured.settings(reads))))
        bolt = KafkaBolt(secured.servers(writes)).with_topic_selector(target)
        bolt.with_producer_properties(secured.settings(writes))
        builder.set_bolt(f"bolt-{number}", bolt).shuffle_grouping(f"spout-{number}")
    with running_topology(builder.create_topology(), spark=spark_session, capture=[]):
        found: dict[str, list[bytes]] = {}

        def complete() -> bool:
            found.update({target: [each.value for each in records(secured.server, target)] for target in targets})
            return all(found.values())

        eventually(complete, "all records")
    assert [found[target] for target in targets] == [[f"by {reads}".encode()] for reads, _ in pairs]


@pytest.mark.parametrize("login", ["PLAIN", "SCRAM-SHA-512 over TLS"])
def test_a_wrong_password_is_refused_in_words_and_said_nowhere(
    spark_session, secured: Secured, kafka: Kafka, caplog: pytest.LogCaptureFixture, login: str
) -> None:
    caplog.set_level(logging.INFO)
    topic, servers = kafka.topic(), secured.servers(login)
    settings = {**secured.settings(login, WRONG), "bootstrap_timeout_ms": 1500}
    told = []

    with SpoutTester(PlainKafkaSpout(secured.spout(login, topic, settings))) as tester:
        eventually(lambda: tester.next_tuple() or tester.collector.errors, "that it says so")
        told.append(str(tester.collector.errors[0]))

    bolt = PlainKafkaBolt(servers).with_topic_selector(topic).with_producer_properties(settings)
    with BoltTester(bolt) as bench:
        bench.execute(make_tuple(["to be"], ["message"]))
        assert len(bench.collector.failed) == 1
        told.append(str(bench.collector.errors[0]))

    with pytest.raises(KafkaSpoutError) as refused:
        KafkaSpout(secured.spout(login, topic, settings)).read(spark_session)
    told.append(str(refused.value))

    native = KafkaBolt(servers).with_topic_selector(topic)
    native.with_producer_properties(secured.settings(login, WRONG))
    with pytest.raises(SetupError, match="Authentication failed") as refused_here:
        native.open_sink(SinkContext(spark_session, "test"))

    for text in told:
        assert f"the broker refuses the login of 'ann' by {login.split()[0]}" in text
    assert WRONG not in " ".join(
        [*told, str(refused_here.value), caplog.text, repr(secured.spout(login, topic, settings))]
    )


def test_a_broker_of_another_authority_is_refused(spark_session, secured: Secured, kafka: Kafka, tmp_path) -> None:
    trustme.CA().cert_pem.write_to_path(tmp_path / "other.pem")
    settings = secured.settings("TLS", authority=str(tmp_path / "other.pem"))
    bolt = KafkaBolt(secured.servers("TLS")).with_topic_selector(kafka.topic()).with_producer_properties(settings)
    with pytest.raises(SetupError, match="certi"):
        bolt.open_sink(SinkContext(spark_session, "test"))
