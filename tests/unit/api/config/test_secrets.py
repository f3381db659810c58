"""Secrets are told by names and by what values look like; what only sounds like one stays visible."""

from __future__ import annotations

import json
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from storm_on_spark.api.config import KEYS
from storm_on_spark.api.config.secrets import HIDDEN, hidden, is_secret, scrubbed, without_secrets

SECRET_KEYS = [
    "storm.zookeeper.auth.payload",
    "storm.zookeeper.topology.auth.payload",
    "storm.zookeeper.auth.password",
    "storm.zookeeper.superACL",
    "my.db.password",
    "my.db.passwd",
    "db.pwd",
    "DB_PWD",
    "ssh.passphrase",
    "MY_API_TOKEN",
    "fs.s3a.secret.key",
    "fs.s3a.access.key",
    "fs.s3a.session.token",
    "spark.hadoop.fs.azure.account.key.acct.dfs.core.windows.net",
    "fs.azure.sas.container.acct",
    "spark.hadoop.fs.azure.sas.c.acct",
    "fs.azure.account.oauth2.client.secret",
    "fs.gs.auth.service.account.private.key",
    "kafka.ssl.keystore.passwd",
    "kafka.sasl.password",
    "kafka.sasl.jaas.config",
    "aws.access.key",
    "aws.signing.key",
    "encryption.key",
    "my.encryptionKey",
    "x.privateKey",
    "ssl.key-store-password",
    "javax.net.ssl.keyStorePassword",
    "eventhubs.sharedAccessKey",
    "topology.auto-credentials",
    "spark.authenticate.secret",
]

ORDINARY_KEYS = [
    "topology.workers",
    "topology.message.timeout.secs",
    "nimbus.seeds",
    "nimbus.auth.token.file",
    "nimbus.auth.digest.file",
    "storm.tls.key.file",
    "my.keys",
    "my.primary.key",
    "partition.key",
    "text.tokenizer.language",
    "my.tokens.per.second",
    "secretary.name",
    "compass.direction",
    "bypass.cache",
    "spinner.colour",
    "fs.s3a.aws.credentials.provider",
    "kafka.ssl.truststore.location",
    "spark.kubernetes.authenticate.oauthTokenFile",
    "password.length",
    "token.enabled",
    "sasquatch.sightings",
]

SECRET_VALUES = [
    ("jdbc:postgresql://ann:hush@db.example/sales", "jdbc:postgresql://ann:*****@db.example/sales"),
    ("redis://:hush@cache:6379/0", "redis://:*****@cache:6379/0"),
    ("jdbc:mysql://db/sales?user=ann&password=hush", "jdbc:mysql://db/sales?user=ann&password=*****"),
    (
        "jdbc:sqlserver://db;user=ann;Password=hush;encrypt=true",
        "jdbc:sqlserver://db;user=ann;Password=*****;encrypt=true",
    ),
    (
        'org.apache.kafka.common.security.plain.PlainLoginModule required username="ann" password="hush hush";',
        'org.apache.kafka.common.security.plain.PlainLoginModule required username="ann" password=*****;',
    ),
    (
        "DefaultEndpointsProtocol=https;AccountName=a;AccountKey=c2VjcmV0",
        "DefaultEndpointsProtocol=https;AccountName=a;AccountKey=*****",
    ),
    ("https://a.blob.core.windows.net/c?sv=2023&sig=abc%2F1%3D", "https://a.blob.core.windows.net/c?sv=2023&sig=*****"),
    ("https://b.s3.amazonaws.com/k?X-Amz-Signature=0f0f0f", "https://b.s3.amazonaws.com/k?X-Amz-Signature=*****"),
    ("-----BEGIN RSA PRIVATE KEY-----\nMIIE\n-----END RSA PRIVATE KEY-----\n", "*****\n"),
    ("-----BEGIN OPENSSH PRIVATE KEY-----\ncut off", "*****"),
    ("AKIAIOSFODNN7EXAMPLE", "*****"),
    ("wJalrXUtnFEMI/K7MDENG7bPxRfiCYEXAMPLEKEY", "*****"),
    ("A" * 86 + "==", "*****"),
    ("ghp_" + "a1B2" * 9, "*****"),
    ("xoxb-123456789012-abcdef", "*****"),
    ("Bearer abcdefgh12345678", "Bearer *****"),
    ("eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2lnbmF0dXJl", "*****"),
    (
        "connecting to http://ann:hush@proxy:3128 failed: refused",
        "connecting to http://ann:*****@proxy:3128 failed: refused",
    ),
]

ORDINARY_VALUES = [
    "",
    "localhost:6627",
    "hdfs://namenode:8020/user/ann/checkpoints",
    "s3a://bucket/path@2024/file",
    "http://ann@example.com/",
    "http://example.com:8080/a:b/c@d",
    "jdbc:postgresql://db.example:5432/sales?user=ann&ssl=true",
    "mailto:ann@example.com",
    "/etc/storm/token",
    "da39a3ee5e6b4b0d3255bfef95601890afd80709",
    "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
    "/Data/Warehouse/2024/Sales/Region7/Part01",
    "averyveryveryveryverylongordinaryidentif",
    "-----BEGIN CERTIFICATE-----\nMIIE\n-----END CERTIFICATE-----\n",
    "org.apache.hadoop.fs.s3a.SimpleAWSCredentialsProvider",
    "SELECT a FROM b WHERE c = 5",
    "bearer of news",
    "10.0.0.1:2181,10.0.0.2:2181",
    "-Xmx1g -Dpassenger=5",
    "*****",
]


@pytest.mark.parametrize("key", SECRET_KEYS)
def test_keys_of_secrets_are_neither_kept_nor_shown(key: str) -> None:
    conf = {key: "hush", "c": {"d": {key: "hush", "e": 1}}}
    assert is_secret(key)
    assert without_secrets(conf) == {"c": {"d": {"e": 1}}}
    assert hidden(conf) == {key: HIDDEN, "c": {"d": {key: HIDDEN, "e": 1}}}
    assert hidden({key: 1234}) == {key: HIDDEN}, "a password of digits is a number in YAML"


@pytest.mark.parametrize("key", ORDINARY_KEYS)
def test_what_only_sounds_like_a_secret_stays(key: str) -> None:
    assert not is_secret(key)
    for value in (1, "a", ["b"], {"c": 2.5}, None):
        assert without_secrets({key: value}) == hidden({key: value}) == {key: value}


@pytest.mark.parametrize(("value", "expected"), SECRET_VALUES)
def test_values_that_look_like_secrets(value: str, expected: str) -> None:
    assert scrubbed(value) == expected
    assert scrubbed(expected) == expected, "once is enough"
    conf = {"my.setting": value, "plain": 1}
    assert without_secrets(conf) == {"plain": 1}
    assert hidden(conf) == {"my.setting": expected, "plain": 1}
    # A list without one of its parts would say something else: the whole of it comes with the code.
    assert without_secrets({"my.list": ["a", {"b": value}], "plain": 1}) == {"plain": 1}
    assert hidden({"my.list": ["a", {"b": value}]}) == {"my.list": ["a", {"b": expected}]}


@pytest.mark.parametrize("value", ORDINARY_VALUES)
def test_ordinary_values_stay(value: str) -> None:
    assert scrubbed(value) == value
    assert (
        without_secrets({"a": value, "b": [value]}) == hidden({"a": value, "b": [value]}) == {"a": value, "b": [value]}
    )


@pytest.mark.parametrize("key", [key for key in KEYS.values() if key.default is not None], ids=lambda key: key.name)
def test_no_default_of_ours_is_taken_for_a_secret(key: object) -> None:
    name, default = key.name, key.default  # type: ignore[attr-defined]
    if not is_secret(name):
        assert hidden({name: default}) == {name: default}


@pytest.mark.slow
@given(st.text(max_size=200))
def test_it_is_done_once_whatever_the_text_is(text: str) -> None:
    assert scrubbed(scrubbed(text)) == scrubbed(text)


@pytest.mark.parametrize(
    "unit", ["a", "a:", "://", "://a:", "=", "password=", "eyJ", "-----BEGIN A PRIVATE KEY-----", "A1a/", "bearer "]
)
def test_long_texts_take_little_time(unit: str) -> None:
    text = unit * (1_000_000 // len(unit))
    began = time.process_time()
    scrubbed(text)
    assert time.process_time() - began < 5


RUNS = [
    *('"password":"', '"pwd" :', '\\"token\\":\\"', '"secret":"\\'),
    *("eyJ-", "eyJ.eyJ-", "eyJaaaaaaaa.", "xoxb-", "glpat-", "ghp_", "SG.aaaaaaaaaaaaaaaa.", "Bearer ", "basic basic"),
    *(
        'token="',
        "token='",
        "token=token=",
        "a://b:",
        "://",
        "://:",
        "-----BEGIN PRIVATE KEY",
        "-----BEGIN RSA PRIVATE KEY-----",
    ),
    *("AKIA", "a/", "A+", "= ", "password = ", "password   ", "x" * 86, "sig=\"'", "hvs.", "npm_", "\n", " ", "k-"),
]


@pytest.mark.parametrize("run", RUNS)
def test_the_search_takes_time_in_proportion_to_the_text(run: str) -> None:
    """By the steps of the search: the processor time of four times the text, against that of the text."""

    def took(size: int) -> float:
        text = (run * (size // len(run) + 1))[:size]
        times = []
        for _ in range(3):
            began = time.process_time()
            scrubbed(text)
            times.append(time.process_time() - began)
        return min(times)

    # A quadratic search takes sixteen times as long; a search of a microsecond is not measured.
    assert took(160_000) < 9 * took(40_000) + 0.05


def test_of_a_very_long_text_secrets_at_the_edge_of_what_is_left_out_are_hidden() -> None:
    token = "eyJ" + "a" * 3000 + ".eyJ" + "b" * 6000 + "." + "c" * 3000
    for before in range(110_000, 140_000, 2_500):
        text = " " * before + token + " " * (400_000 - before) + "password='" + "h" * 1500 + "'" + " " * before
        shown = scrubbed(text)
        assert len(shown) < 300_000
        assert not any(part in shown for part in ("aaaa", "bbbb", "cccc", "hhhh"))


def test_a_key_whose_beginning_would_be_left_out_is_hidden() -> None:
    lines = "\n".join(["k" * 64] * 3000)
    text = f"{'x ' * 100_000}-----BEGIN RSA PRIVATE KEY-----\n{lines}\n-----END RSA PRIVATE KEY-----\n{'y ' * 100_000}"
    assert "kkkk" not in scrubbed(text)


@pytest.mark.parametrize("secret", ["hush", 'hu"sh', "hu'sh", "hu\\sh", "hush\\", "hu, sh", 1234, None])
@pytest.mark.parametrize("key", ["password", "db_password", "access_token", "apikey"])
def test_secrets_in_json_and_in_what_python_prints_are_hidden(key: str, secret: object) -> None:
    document = {"a": 1, key: secret, "b": [{"c": "d"}]}
    written = json.dumps(document)
    for text in (written, json.dumps(written), repr(document), written.replace(": ", ":")):
        found = scrubbed(text)
        assert HIDDEN in found
        assert all(part not in found for part in ("hu", "sh", "1234", "null", "None"))
        assert scrubbed(found) == found
    assert json.loads(scrubbed(written).replace(HIDDEN, "0")) == {**document, key: 0}
