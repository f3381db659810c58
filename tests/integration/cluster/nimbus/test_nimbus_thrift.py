"""The Thrift service of a Nimbus in this process, asked by thriftpy2's own client as streamparse asks."""

from __future__ import annotations

import json
import os
import socket
import struct
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import httpx
import pytest
import trustme
from thriftpy2.protocol import TBinaryProtocolFactory
from thriftpy2.rpc import make_client
from thriftpy2.thrift import TApplicationException
from thriftpy2.transport import TFramedTransportFactory
from world import World, wait_for

from storm_on_spark.api.errors import SetupError
from storm_on_spark.cluster.daemons.nimbus import Nimbus
from storm_on_spark.cluster.records import ErrorRecord, StormBase
from storm_on_spark.cluster.thrift.interface import interface

pytestmark = pytest.mark.integration


@contextmanager
def asking(nimbus: Nimbus) -> Iterator[Any]:
    host, _, port = nimbus.address.partition(":")
    client = make_client(
        interface().Nimbus,
        host,
        int(port),
        proto_factory=TBinaryProtocolFactory(),
        trans_factory=TFramedTransportFactory(),
        timeout=20_000,
    )
    try:
        yield client
    finally:
        client.close()


@pytest.fixture
def nimbus(world: World) -> Nimbus:
    nimbus = world.nimbus("a")
    wait_for(lambda: (leader := world.view.snapshot().leader) and leader.address == nimbus.address, "a leader")
    wait_for(lambda: (leader := nimbus.view.snapshot().leader) and leader.address == nimbus.address, "its leadership")
    return nimbus


@pytest.fixture
def words(world: World, nimbus: Nimbus) -> StormBase:
    world.idle_supervisor("s")
    topology_id = world.client(nimbus).submit(world.packed(), "words", {"topology.workers": 2})
    found = wait_for(lambda: nimbus.view.snapshot().storms.get(topology_id), "the topology")
    wait_for(lambda: topology_id in nimbus.view.snapshot().assignments, "its slot")
    assert isinstance(found, StormBase)
    return found


def test_a_client_finds_the_leader_and_the_cluster(nimbus: Nimbus) -> None:
    with asking(nimbus) as client:
        leader = client.getLeader()
        assert (f"{leader.host}:{leader.port}", leader.isLeader) == (nimbus.address, True)
        cluster = client.getClusterInfo()
        assert [f"{each.host}:{each.port}" for each in cluster.nimbuses] == [nimbus.address]
        assert (cluster.topologies, cluster.supervisors) == ([], [])
        assert json.loads(client.getNimbusConf())["nimbus.seeds"] == ["localhost"]
        assert client.isTopologyNameAllowed("words")
        assert not client.isTopologyNameAllowed("a/b")


def test_rest_and_thrift_share_a_port(nimbus: Nimbus) -> None:
    with asking(nimbus) as client, httpx.Client(base_url=f"http://{nimbus.address}/api/v1", trust_env=False) as http:
        assert client.getClusterInfo().nimbuses[0].version == http.get("/cluster/summary").json()["stormVersion"]


def test_errors_are_those_that_methods_declare(nimbus: Nimbus, words: StormBase) -> None:
    with asking(nimbus) as client:
        for ask in (client.killTopology, client.activate, client.getTopologyInfoByName, client.getTopologyConf):
            with pytest.raises(interface().NotAliveException) as refused:
                ask("nothing")
            assert "nothing" in refused.value.msg
        for options in ({"topology_conf_overrides": "["}, {"topology_resources_overrides": {"a": {"cpu": 1.0}}}):
            with pytest.raises(interface().InvalidTopologyException):
                client.rebalance("words", interface().RebalanceOptions(**options))
        with pytest.raises(TApplicationException, match="can't wait -1 s"):
            client.killTopologyWithOpts("words", interface().KillOptions(wait_secs=-1))


def test_a_nimbus_that_does_not_lead_says_who_does(world: World, nimbus: Nimbus, words: StormBase) -> None:
    other = world.nimbus("b")
    wait_for(lambda: words.topology_id in other.view.snapshot().storms, "the other's view")
    with asking(other) as client:
        leader = client.getLeader()
        assert f"{leader.host}:{leader.port}" == nimbus.address
        with pytest.raises(TApplicationException, match=nimbus.address):
            client.killTopology("words")


@pytest.mark.parametrize(
    "sent", [struct.pack("!i", 1 << 21), struct.pack("!i", 0), b"\0\0\0\x02hi"], ids=["too long", "empty", "no call"]
)
def test_what_is_no_call_ends_the_connection(nimbus: Nimbus, sent: bytes, caplog: pytest.LogCaptureFixture) -> None:
    host, _, port = nimbus.address.partition(":")
    with socket.create_connection((host, int(port)), timeout=20) as connection:
        connection.sendall(sent)
        with suppress(ConnectionResetError):
            assert connection.recv(1) == b""
    wait_for(lambda: "A Thrift connection from" in caplog.text, "a line in the log")
    with asking(nimbus) as client:
        assert client.getLeader().isLeader


def test_a_cluster_with_a_secret_answers_no_thrift(world: World, tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("0123456789abcdef")
    token.chmod(0o600)
    nimbus = world.nimbus("a", **{"nimbus.auth.token.file": os.fspath(token)})
    host, _, port = nimbus.address.partition(":")
    with socket.create_connection((host, int(port)), timeout=20) as connection:
        message = b"\x80\x01\x00\x01\x00\x00\x00\x09getLeader\x00\x00\x00\x01\x00"
        connection.sendall(struct.pack("!i", len(message)) + message)
        assert connection.recv(100).startswith(b"HTTP/1.1 400")


def secret(file: Path, text: str) -> str:
    file.write_text(text)
    file.chmod(0o600)
    return os.fspath(file)


def test_a_nimbus_that_can_not_offer_its_transport_does_not_start(world: World, tmp_path: Path) -> None:
    ca = trustme.CA()
    certificate = ca.issue_cert("localhost")
    (tmp_path / "ca.pem").write_bytes(ca.cert_pem.bytes())
    chain = b"".join(each.bytes() for each in certificate.cert_chain_pems)
    (tmp_path / "cert.pem").write_bytes(chain)
    tls = {
        "storm.tls.certificate.file": os.fspath(tmp_path / "cert.pem"),
        "storm.tls.key.file": secret(tmp_path / "key.pem", certificate.private_key_pem.bytes().decode()),
        "storm.tls.ca.file": os.fspath(tmp_path / "ca.pem"),
    }
    digest = {
        "storm.thrift.transport": "org.apache.storm.security.auth.digest.DigestSaslTransportPlugin",
        "java.security.auth.login.config": secret(tmp_path / "jaas", 'StormServer { a.B required user_ann="pw"; };'),
    }
    with pytest.raises(SetupError, match="can't be offered: Thrift has no TLS here"):
        world.nimbus("a", **digest, **tls)
    with pytest.raises(SetupError, match=r"nimbus\.thrift\.transport: 'a\.Kerberos' is not supported"):
        world.nimbus("a", **{"nimbus.thrift.transport": "a.Kerberos"})


def test_a_client_says_how_many_errors_it_wants(world: World, nimbus: Nimbus, words: StormBase) -> None:
    for component, text in (("split", "first"), ("split", "second"), ("count", "only")):
        error = ErrorRecord(component=component, task=1, message=text, time=1.0, host="h", port=6700)
        world.state.add_error(words.topology_id, error)
    types = interface()
    choices = types.NumErrorsChoice
    due = {
        None: {"split": ["second", "first"], "count": ["only"]},
        choices.ALL: {"split": ["second", "first"], "count": ["only"]},
        choices.ONE: {"split": ["second"], "count": ["only"]},
        choices.NONE: {"split": [], "count": []},
    }
    with asking(nimbus) as client:
        for choice, expected in due.items():
            options = types.GetInfoOptions(num_err_choice=choice)
            for found in (
                client.getTopologyInfoWithOpts(words.topology_id, options),
                client.getTopologyInfoByNameWithOpts("words", options),
            ):
                assert {name: [each.error for each in errors] for name, errors in found.errors.items()} == expected
        with pytest.raises(TApplicationException, match=r"expected 0 \(ALL\), 1 \(NONE\) or 2 \(ONE\), given 7"):
            client.getTopologyInfoWithOpts(words.topology_id, types.GetInfoOptions(num_err_choice=7))


def test_there_is_no_blob_store(nimbus: Nimbus) -> None:
    types = interface()
    with asking(nimbus) as client:
        assert (client.listBlobs("").keys, client.isRemoteBlobExists("words")) == ([], False)
        with pytest.raises(types.AuthorizationException) as created:
            client.beginCreateBlob("words", types.SettableBlobMeta(acl=[]))
        assert "this cluster has no blob store: put files into the folder resources" in created.value.msg
        for ask in (client.getBlobMeta, client.beginUpdateBlob, client.beginBlobDownload, client.deleteBlob):
            with pytest.raises(types.KeyNotFoundException) as missing:
                ask("words")
            assert "there is no blob 'words'" in missing.value.msg
        for ask in (client.finishBlobUpload, client.cancelBlobUpload, client.downloadBlobChunk):
            with pytest.raises(types.AuthorizationException) as refused:
                ask("a session")
            assert "there is no session 'a session'" in refused.value.msg
