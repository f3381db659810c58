"""Where S3 is, from the settings of Hadoop's s3a."""

from __future__ import annotations

import pytest

from storm_on_spark.api.errors import SetupError
from storm_on_spark.runtime.storage.s3 import S3Place, s3_place

KEYS = {"fs.s3a.access.key": "user", "fs.s3a.secret.key": "hush"}


def test_without_settings_it_is_amazons_with_what_the_machine_knows():
    assert s3_place("s3a://bucket/a/b", {}.get) == S3Place("bucket", "a/b")
    assert s3_place("s3a://bucket/a", {"fs.s3a.endpoint": "s3.amazonaws.com"}.get).endpoint is None


@pytest.mark.parametrize(
    ("endpoint", "ssl", "host", "encrypted"),
    [
        ("http://127.0.0.1:9000", None, "127.0.0.1:9000", False),
        ("https://store.example/", "false", "store.example", True),
        ("store.example:9000", "false", "store.example:9000", False),
        ("store.example", None, "store.example", True),
    ],
)
def test_an_endpoint_has_a_scheme_or_the_setting_for_ssl_counts(endpoint, ssl, host, encrypted):
    place = s3_place("s3a://b/c", {"fs.s3a.endpoint": endpoint, "fs.s3a.connection.ssl.enabled": ssl}.get)

    assert (place.endpoint, place.encrypted) == (host, encrypted)


def test_a_buckets_own_settings_go_before_those_of_all():
    settings = {**KEYS, "fs.s3a.bucket.b.access.key": "other", "fs.s3a.bucket.x.secret.key": "wrong"}

    place = s3_place("s3a://b/c", settings.get)

    assert (place.access_key, place.secret_key) == ("other", "hush")


def test_secrets_are_in_no_text():
    place = s3_place("s3a://b/c", {**KEYS, "fs.s3a.session.token": "token!"}.get)

    for text in (repr(place), str(place)):
        assert not any(secret in text for secret in ("user", "hush", "token!"))
    with pytest.raises(SetupError) as caught:
        s3_place("s3a://user:hush@/c", KEYS.get)
    assert "hush" not in str(caught.value)


@pytest.mark.parametrize("url", ["s3a://bucket", "s3a://bucket/", "s3a:///folder"])
def test_a_bucket_alone_is_no_folder(url):
    with pytest.raises(SetupError, match="must name a bucket and a folder"):
        s3_place(url, {}.get)


def test_half_of_the_credentials_are_an_error_that_names_the_settings():
    with pytest.raises(SetupError, match=r"fs\.s3a\.access\.key and fs\.s3a\.secret\.key"):
        s3_place("s3a://b/c", {"fs.s3a.access.key": "user"}.get)
