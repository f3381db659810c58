"""TLS of a cluster: which peers are trusted, and the errors about files that can't be used."""

from __future__ import annotations

import contextlib
import socket
import ssl
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest
import trustme

from storm_on_spark.api.errors import SetupError
from storm_on_spark.cluster.client.nimbus_client import NimbusClient
from storm_on_spark.cluster.code.distributors import fetch
from storm_on_spark.cluster.errors import UnavailableError
from storm_on_spark.cluster.http.auth import Authentication
from storm_on_spark.cluster.http.server import HttpServer, listen
from storm_on_spark.cluster.security.settings import SecuritySettings
from storm_on_spark.cluster.security.tls import Tls
from storm_on_spark.cluster.supervisor.logs import LogServer
from storm_on_spark.cluster.supervisor.settings import LogSettings


@dataclass
class Files:
    """A CA, and a host's certificate and key."""

    folder: Path
    ca: trustme.CA

    @property
    def conf(self) -> dict[str, Any]:
        return {
            "storm.tls.certificate.file": str(self.folder / "cert.pem"),
            "storm.tls.key.file": str(self.folder / "key.pem"),
            "storm.tls.ca.file": str(self.folder / "ca.pem"),
        }


def made(folder: Path, *names: str) -> Files:
    folder.mkdir()
    ca = trustme.CA()
    certificate = ca.issue_cert(*names)
    (folder / "cert.pem").write_bytes(b"".join(blob.bytes() for blob in certificate.cert_chain_pems))
    (folder / "key.pem").write_bytes(certificate.private_key_pem.bytes())
    (folder / "key.pem").chmod(0o600)
    ca.cert_pem.write_to_path(folder / "ca.pem")
    return Files(folder, ca)


@pytest.fixture
def files(tmp_path: Path) -> Files:
    return made(tmp_path / "ours", "127.0.0.1", "localhost")


def daemon_tls(conf: dict[str, Any]) -> Tls:
    return Tls.of_daemon(SecuritySettings.of(conf))


def client_tls(conf: dict[str, Any]) -> Tls:
    return Tls.of_client(SecuritySettings.of(conf))


@contextlib.contextmanager
def serving(conf: dict[str, Any]) -> Iterator[str]:
    async def app(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-type", b"application/json")]})
        await send({"type": "http.response.body", "body": b'{"topologies":[]}'})

    listener = listen("127.0.0.1", 0)
    address = f"127.0.0.1:{listener.getsockname()[1]}"
    with HttpServer(app, listener, tls=daemon_tls(conf).server):
        yield address


def client(address: str, **conf: Any) -> NimbusClient:
    return NimbusClient({"storm.nimbus.retry.times": 0, **conf}, seeds=[address])


def test_a_client_speaks_to_whom_its_ca_vouches_for(files: Files) -> None:
    with serving(files.conf) as address:
        with client(address, **{"storm.tls.ca.file": files.conf["storm.tls.ca.file"]}) as good:
            assert good.topologies() == []
        with fetch.client(tls=daemon_tls(files.conf)) as http:
            url = fetch.url_of(address, "t-1-1", "code.zip", "https")
            assert url is not None
            assert http.get(url).status_code == 200


def test_and_to_nobody_else(files: Files, tmp_path: Path) -> None:
    other = made(tmp_path / "other", "127.0.0.1")
    elsewhere = made(tmp_path / "elsewhere", "nimbus-7.example")
    ours = {"storm.tls.ca.file": files.conf["storm.tls.ca.file"]}
    theirs = {"storm.tls.ca.file": other.conf["storm.tls.ca.file"]}
    for server, trusted, reason in (
        (other.conf, ours, "CERTIFICATE_VERIFY_FAILED"),
        (files.conf, theirs, "CERTIFICATE_VERIFY_FAILED"),
        (elsewhere.conf, {"storm.tls.ca.file": elsewhere.conf["storm.tls.ca.file"]}, "CERTIFICATE_VERIFY_FAILED"),
        ({}, ours, "SSL"),
    ):
        with (
            serving(server) as address,
            client(address, **trusted) as stranger,
            pytest.raises(UnavailableError, match=reason),
        ):
            stranger.topologies()
    with serving(files.conf) as address, client(address) as plain, pytest.raises(UnavailableError):
        plain.topologies()
    # The system's own CAs vouch for nobody here.
    context = client_tls(ours).client
    assert context is not None
    assert context.verify_mode is ssl.CERT_REQUIRED
    assert context.check_hostname
    assert context.cert_store_stats()["x509_ca"] == 1


@pytest.mark.parametrize(("version", "taken"), [(ssl.TLSVersion.TLSv1_1, False), (ssl.TLSVersion.TLSv1_2, True)])
@pytest.mark.filterwarnings("ignore:ssl.TLSVersion:DeprecationWarning")
def test_no_older_tls(files: Files, version: ssl.TLSVersion, taken: bool) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.load_verify_locations(files.conf["storm.tls.ca.file"])
    # So that it is the server that refuses: systems forbid the old ones themselves.
    context.set_ciphers("ALL:@SECLEVEL=0")
    context.minimum_version = context.maximum_version = version
    with serving(files.conf) as address:
        host, _, port = address.rpartition(":")
        with (
            contextlib.nullcontext() if taken else pytest.raises(OSError),
            socket.create_connection((host, int(port)), timeout=10) as plain,
            context.wrap_socket(plain, server_hostname=host) as connection,
        ):
            assert connection.version() == "TLSv1.2"


def test_logs_of_drivers_too(files: Files, tmp_path: Path) -> None:
    log = tmp_path / "logs" / "t-1-1" / "6700" / "worker.log"
    log.parent.mkdir(parents=True)
    log.write_text("hello")
    with LogServer(LogSettings.of({}), Authentication(), tmp_path / "logs", "here", daemon_tls(files.conf)) as server:
        link = f"http://{server.address}/api/v1/log?file=t-1-1%2F6700%2Fworker.log"
        with client("127.0.0.1:1", **{"storm.tls.ca.file": files.conf["storm.tls.ca.file"]}) as good:
            # What a link says of HTTP does not matter.
            assert good.log(link, 0).data == b"hello"
        with pytest.raises(httpx.TransportError):
            httpx.get(link, trust_env=False)


def test_files_that_can_not_be_used_are_told_of_at_once(files: Files, tmp_path: Path) -> None:
    other = made(tmp_path / "other", "127.0.0.1")
    empty = tmp_path / "empty"
    empty.touch(mode=0o600)
    open_key = tmp_path / "open"
    open_key.write_bytes((files.folder / "key.pem").read_bytes())
    open_key.chmod(0o640)
    certificate, key, ca = "storm.tls.certificate.file", "storm.tls.key.file", "storm.tls.ca.file"
    none = str(tmp_path / "none")
    cases: list[tuple[dict[str, Any], str]] = [
        ({certificate: none}, rf"{certificate}: .*none can't be read: No such file"),
        ({key: none}, rf"{key}: .*none can't be read: No such file"),
        ({ca: none}, rf"{ca}: .*none can't be read: No such file"),
        ({key: other.conf[key]}, rf"{key}: .* is not the key of the certificate in "),
        ({key: str(open_key)}, rf"{key}: .*open can be read by others than its owner; chmod 600 "),
        ({certificate: str(empty)}, "hold no certificate and key as PEM"),
        ({key: str(empty)}, "hold no certificate and key as PEM"),
        ({ca: str(empty)}, rf"{ca}: .*empty holds no certificate"),
        ({ca: files.conf[key]}, rf"{ca}: .*key.pem holds no certificate"),
        ({ca: None}, rf"TLS needs {ca} too"),
        ({key: None}, rf"TLS needs {key} too"),
        ({certificate: None, ca: None}, rf"TLS needs {certificate} and {ca} too"),
    ]
    for change, message in cases:
        with pytest.raises(SetupError, match=message):
            daemon_tls({**files.conf, **change})
    assert daemon_tls({}).scheme == "http"
    assert daemon_tls(files.conf).scheme == client_tls(files.conf).scheme == "https"


def test_a_key_with_a_password_asks_nobody(files: Files) -> None:
    from cryptography.hazmat.primitives import serialization

    path = files.folder / "key.pem"
    key = serialization.load_pem_private_key(path.read_bytes(), None)
    encryption = serialization.BestAvailableEncryption(b"hush")
    path.write_bytes(key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, encryption))
    with pytest.raises(SetupError, match="has a password; a daemon can't enter one"):
        daemon_tls(files.conf)
