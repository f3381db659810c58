"""Logging in to a real ZooKeeper: by a digest of its own, and by SASL with the users of a JAAS configuration."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from kazoo.client import KazooClient
from kazoo.exceptions import NoAuthError

from storm_on_spark.api.errors import SetupError
from storm_on_spark.cluster.errors import ClusterError, UnavailableError
from storm_on_spark.cluster.paths import NIMBUSES, STORMS
from storm_on_spark.cluster.records import NimbusSummary
from storm_on_spark.cluster.state import ClusterState
from storm_on_spark.cluster.zookeeper import ZooKeeperServer, ZooKeeperSession, ZooKeeperSettings
from storm_on_spark.cluster.zookeeper import client as client_module

JAAS = """\
Server {
    org.apache.zookeeper.server.auth.DigestLoginModule required
    user_storm="sesame"
    user_other="hush";
};
"""
SUMMARY = NimbusSummary(host="localhost", port=1, started_at=0.0, version="1")


@pytest.fixture(scope="module")
def with_users(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ZooKeeperServer]:
    """A server that knows users by SASL."""
    jaas = tmp_path_factory.mktemp("jaas") / "jaas.conf"
    jaas.write_text(JAAS)
    jaas.chmod(0o600)
    options = [f"-Djava.security.auth.login.config={jaas}"]
    config = ["authProvider.1=org.apache.zookeeper.server.auth.SASLAuthenticationProvider"]
    with ZooKeeperServer(tick=0.2, config=config, jvm_options=options) as server:
        yield server


def session(server: ZooKeeperServer, root: str, scheme: str | None, payload: str | None) -> ZooKeeperSession:
    return ZooKeeperSession(
        ZooKeeperSettings(
            hosts=server.connect_string,
            root=root,
            session_timeout_secs=3.0,
            connection_timeout_secs=5.0,
            retry_interval_secs=0.2,
            auth_scheme=scheme,
            auth_payload=payload,
        )
    )


@pytest.mark.parametrize("scheme", ["digest", "sasl"])
def test_only_its_user_reads_and_writes(with_users: ZooKeeperServer, scheme: str, tmp_path: Path) -> None:
    root = f"/{scheme}/storm"
    with session(with_users, root, scheme, "storm:sesame") as ours:
        ours.ensure_folders()
        state = ClusterState(ours)
        state.create_ephemeral(SUMMARY, NIMBUSES, "localhost:1")
        assert state.get(NimbusSummary, NIMBUSES, "localhost:1") is not None
        (acl,) = ours.client.get_acls(ours.paths.of(NIMBUSES))[0]
        assert acl.id.scheme == scheme
        assert acl.id.id.partition(":")[0] == "storm"
        for other in ((scheme, "other:hush"), (None, None)):
            with session(with_users, root, *other) as stranger:
                theirs = ClusterState(stranger)
                with pytest.raises(ClusterError, match="ZooKeeper refused: NoAuthError"):
                    theirs.get(NimbusSummary, NIMBUSES, "localhost:1")
                with pytest.raises(ClusterError, match="ZooKeeper refused: NoAuthError"):
                    theirs.create_ephemeral(SUMMARY, NIMBUSES, "evil:1")
                with pytest.raises(ClusterError, match="ZooKeeper refused: NoAuthError"):
                    theirs.children(STORMS)
        plain = KazooClient(with_users.connect_string)
        plain.start()
        try:
            with pytest.raises(NoAuthError):
                plain.set(ours.paths.of(NIMBUSES), b"x")
        finally:
            plain.stop()
            plain.close()
    # A session after that one has the same rights.
    with session(with_users, root, scheme, "storm:sesame") as again:
        assert ClusterState(again).children(STORMS) == []


def test_a_wrong_password_is_refused_and_not_shown(
    with_users: ZooKeeperServer, caplog: pytest.LogCaptureFixture
) -> None:
    with pytest.raises(UnavailableError, match="does not log in user 'storm' by SASL") as refused:
        session(with_users, "/wrong/storm", "sasl", "storm:opensaysme").start()
    assert "opensaysme" not in str(refused.value) + caplog.text


def test_without_the_package_it_is_said(with_users: ZooKeeperServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client_module.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(SetupError, match=r"sasl needs pure-sasl"):
        session(with_users, "/none/storm", "sasl", "storm:sesame")
