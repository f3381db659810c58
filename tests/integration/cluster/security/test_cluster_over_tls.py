"""A cluster over TLS: Nimbuses, a supervisor, clients and the command line."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
import trustme
from click.testing import CliRunner
from guarded import Guarded, write_secret
from hand_written import wait_until

from storm_on_spark.cli.main import main
from storm_on_spark.cluster.client.nimbus_client import NimbusClient
from storm_on_spark.cluster.errors import UnavailableError
from storm_on_spark.cluster.zookeeper import ZooKeeperServer

TOKEN = "0123456789abcdef-TOKEN"


@pytest.fixture
def conf(tmp_path: Path) -> dict[str, Any]:
    ca = trustme.CA()
    certificate = ca.issue_cert("127.0.0.1", "localhost")
    (tmp_path / "cert.pem").write_bytes(b"".join(blob.bytes() for blob in certificate.cert_chain_pems))
    write_secret(tmp_path / "key.pem", certificate.private_key_pem.bytes().decode())
    ca.cert_pem.write_to_path(tmp_path / "ca.pem")
    return {
        "nimbus.auth.token.file": str(write_secret(tmp_path / "token", TOKEN)),
        "storm.tls.certificate.file": str(tmp_path / "cert.pem"),
        "storm.tls.key.file": str(tmp_path / "key.pem"),
        "storm.tls.ca.file": str(tmp_path / "ca.pem"),
    }


@pytest.fixture
def cluster(zookeeper: ZooKeeperServer, root: str, tmp_path: Path, conf: dict[str, Any]) -> Iterator[Guarded]:
    cluster = Guarded(zookeeper.connect_string, tmp_path, root, **conf, **{"topology.min.replication.count": 2})
    yield cluster
    cluster.close()


def test_everything_goes_over_tls(cluster: Guarded, conf: dict[str, Any]) -> None:
    for name in ("n1", "n2"):
        cluster.nimbus(name)
    cluster.supervisor("s1")
    # In only with two copies: one Nimbus has fetched it from the other, and the supervisor from one of them.
    topology_id = cluster.submit("words")
    cluster.responds(topology_id)
    with cluster.client() as client:
        wait_until(lambda: len(client.topology(topology_id)["logLink"]) > 0, "a log")
        link = client.topology(topology_id)["logLink"]
        assert link.startswith("https://")
        assert client.log(link, 0).size > 0
    address = next(iter(cluster.nimbuses.values())).address
    arguments = ["list", "--json", "--nimbus", address, "--token-file", conf["nimbus.auth.token.file"]]
    runner = CliRunner()
    done = runner.invoke(main, [*arguments, "-c", f"storm.tls.ca.file={conf['storm.tls.ca.file']}"])
    assert done.exit_code == 0, done.output
    assert topology_id in json.dumps(json.loads(done.stdout))
    # In the clear nobody answers.
    with pytest.raises(httpx.TransportError):
        httpx.get(f"http://{address}/api/v1/cluster/summary", trust_env=False)
    plain = {"nimbus.auth.token.file": conf["nimbus.auth.token.file"], "storm.nimbus.retry.times": 0}
    with NimbusClient(plain, seeds=[address]) as client, pytest.raises(UnavailableError):
        client.cluster()
