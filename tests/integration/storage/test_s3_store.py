"""S3 keeps the contract of a store, over a real client and a server that speaks S3."""

from __future__ import annotations

import os
import subprocess
import sys
import uuid

import pytest

from storm_on_spark.runtime.storage import Storage
from storm_on_spark.runtime.storage.s3 import s3_place
from storm_on_spark.testing.servers.s3 import S3Server
from storm_on_spark.testing.storage.contract import StorageContract


@pytest.fixture
def storage(s3_server: S3Server) -> Storage:
    return s3_place(f"{s3_server.uri}/{uuid.uuid4().hex}/checkpoint", s3_server.settings.get).open()


class TestS3(StorageContract):
    pass


def test_credentials_come_from_the_environment_where_hadoop_has_none(
    s3_server: S3Server, monkeypatch: pytest.MonkeyPatch
):
    settings = {key: value for key, value in s3_server.settings.items() if not key.endswith(".key")}
    place = s3_place(f"{s3_server.uri}/environment", settings.get)
    assert place.access_key is None
    code = "import pickle, sys; s = pickle.load(sys.stdin.buffer).open(); s.put('a', b'1'); print(s.read('a'))"
    import pickle

    done = subprocess.run(
        [sys.executable, "-c", code],
        input=pickle.dumps(place),
        env={**os.environ, "AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test"},
        capture_output=True,
        timeout=60,
        check=True,
    )

    assert done.stdout == b"b'1'\n"


def test_a_server_that_is_gone_is_an_os_error(storage: Storage):
    gone = s3_place(
        "s3a://bucket/folder",
        {
            "fs.s3a.endpoint": "http://127.0.0.1:1",
            "fs.s3a.access.key": "a",
            "fs.s3a.secret.key": "b",
            "fs.s3a.endpoint.region": "us-east-1",
        }.get,
    ).open()
    with pytest.raises(OSError):
        gone.read("a")
