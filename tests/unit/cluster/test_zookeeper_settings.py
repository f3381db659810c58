from __future__ import annotations

import pytest

from storm_on_spark import Config
from storm_on_spark.api.errors import ConfigError
from storm_on_spark.cluster.zookeeper import ZooKeeperSettings

PREFIX = "storm.zookeeper."


def test_defaults_are_storms() -> None:
    assert ZooKeeperSettings.from_conf({}) == ZooKeeperSettings(
        hosts="localhost:2181",
        root="/storm",
        session_timeout_secs=20.0,
        connection_timeout_secs=15.0,
        retry_times=5,
        retry_interval_secs=1.0,
        retry_ceiling_secs=30.0,
    )


def test_everything_set() -> None:
    conf = Config(
        {
            f"{PREFIX}servers": ["a", "b:1", "::1", "[::2]:7", "[::3]"],
            f"{PREFIX}port": 3,
            f"{PREFIX}root": "/teams/storm",
            f"{PREFIX}session.timeout": 4000,
            f"{PREFIX}connection.timeout": 500,
            f"{PREFIX}retry.times": 0,
            f"{PREFIX}retry.interval": 10,
            f"{PREFIX}retry.intervalceiling.millis": 20,
            f"{PREFIX}auth.scheme": "digest",
            f"{PREFIX}auth.payload": "storm:sesame",
            "topology.workers": 3,
        }
    )
    settings = ZooKeeperSettings.from_conf(conf)
    assert settings.hosts == "a:3,b:1,[::1]:3,[::2]:7,[::3]:3"
    assert (settings.root, settings.session_timeout_secs, settings.connection_timeout_secs) == (
        "/teams/storm",
        4.0,
        0.5,
    )
    assert (settings.retry_times, settings.retry_interval_secs, settings.retry_ceiling_secs) == (0, 0.01, 0.02)
    assert (settings.auth_scheme, settings.auth_payload) == ("digest", "storm:sesame")
    assert "sesame" not in repr(settings)


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("servers", [], "storm.zookeeper.servers names no server"),
        ("servers", "localhost", "storm.zookeeper.servers must be a list of strings"),
        ("root", "storm", "must be an absolute path of a node such as /storm, not 'storm'"),
        ("root", "/", "must be an absolute path"),
        ("root", "/storm/", "must be an absolute path"),
        ("root", "/a/../b", "must be an absolute path"),
        ("session.timeout", 0, "must be an int of at least 1"),
        ("auth.scheme", "digest", "must be set together"),
        ("auth.payload", "storm:sesame", "must be set together"),
    ],
)
def test_refused(key: str, value: object, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        ZooKeeperSettings.from_conf({PREFIX + key: value})


@pytest.mark.parametrize(
    ("scheme", "payload", "message"),
    [
        ("kerberos", "storm:sesame", "auth.scheme.*digest.*sasl"),
        ("digest", "sesame", "auth.payload must be user:password"),
        ("digest", ":sesame", "auth.payload must be user:password"),
    ],
)
def test_authentication_that_cannot_be_used_is_refused_without_its_secret(
    scheme: str, payload: str, message: str
) -> None:
    with pytest.raises(ConfigError, match=message) as refused:
        ZooKeeperSettings.from_conf({f"{PREFIX}auth.scheme": scheme, f"{PREFIX}auth.payload": payload})
    assert "sesame" not in str(refused.value)
