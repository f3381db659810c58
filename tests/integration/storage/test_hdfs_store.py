"""HDFS keeps the contract of a store, over a real client, name node and data nodes."""

from __future__ import annotations

import os
import time
import uuid
from collections.abc import Callable
from typing import Any
from urllib.parse import urlparse

import pytest
from hdfs_native import Client
from lengths import PATIENCE_SECS

from storm_on_spark.runtime.storage import Storage
from storm_on_spark.runtime.storage.hdfs import HdfsStorage, hdfs_place
from storm_on_spark.testing.servers.hdfs import HdfsServer
from storm_on_spark.testing.storage.contract import StorageContract


@pytest.fixture(autouse=True)
def nobody_else(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HADOOP_USER_NAME", "storm")


def _open(server: HdfsServer, timeout_secs: float = 60) -> HdfsStorage:
    place = hdfs_place(f"{server.uri}/tmp/{uuid.uuid4().hex}/checkpoint", {"dfs.replication": "2"}.get)
    return HdfsStorage(place, timeout_secs)


def _client(server: HdfsServer) -> Client:
    """A separate client: what it sees, others see."""
    return Client(server.uri, {})


def _folder(storage: HdfsStorage) -> str:
    return urlparse(storage.url).path


@pytest.fixture
def storage(hdfs_server: HdfsServer) -> Storage:
    return _open(hdfs_server)


class TestHdfs(StorageContract):
    pass


def test_a_name_is_made_once(storage: Storage):
    storage.create("segment", b"of one writer")
    with pytest.raises(FileExistsError):
        storage.create("segment", b"of another one")
    assert storage.read("segment") == b"of one writer"


def test_only_the_owner_can_read_what_is_there(storage: HdfsStorage, hdfs_server: HdfsServer):
    storage.create("spouts/1/a", b"x")
    client, folder = _client(hdfs_server), _folder(storage)
    assert {status.permission for status in client.list_status(folder, True)} == {0o700, 0o600}
    assert client.get_file_info(folder).permission == 0o700
    assert client.get_file_info(f"{folder}/spouts/1/a").owner == "storm"


def test_what_a_killed_writer_began_is_not_listed_and_can_be_removed(storage: HdfsStorage, hdfs_server: HdfsServer):
    storage.create("spouts/1/a", b"x")
    client = _client(hdfs_server)
    left = f"{_folder(storage)}/spouts/1/.{uuid.uuid4().hex}.tmp"
    writer = client.create(left)
    writer.write(b"half")

    assert [one.name for one in storage.list_folder(deep=True)] == ["spouts/1/a"]
    storage.remove_half_written()
    assert [status.path.rpartition("/")[2] for status in client.list_status(left.rpartition("/")[0])] == ["a"]


def test_a_folder_of_somebody_else_is_a_permission_error(hdfs_server: HdfsServer, monkeypatch: pytest.MonkeyPatch):
    theirs = _open(hdfs_server)
    theirs.create("a", b"")
    monkeypatch.setenv("HADOOP_USER_NAME", "bob")
    mine = HdfsStorage(hdfs_place(theirs.url, {}.get))
    with pytest.raises(PermissionError, match="Permission denied: user=bob"):
        mine.read("a")
    with pytest.raises(PermissionError, match="Permission denied: user=bob"):
        mine.create("b", b"")


def test_a_name_node_that_hangs_is_an_error_and_the_next_call_works_again(hdfs_server: HdfsServer):
    storage = _open(hdfs_server, timeout_secs=1)
    storage.put("a", b"1")
    hdfs_server.pause()
    try:
        with pytest.raises(TimeoutError, match="no answer from HDFS for 1 s"):
            storage.put("a", b"2")
    finally:
        hdfs_server.resume()
    assert _again(lambda: storage.read("a")) in (b"1", b"2"), "nobody knows whether the call took effect"
    # Of another name: the first call may still take effect, at any time.
    _again(lambda: storage.put("b", b"3"))
    assert _again(lambda: storage.read("b")) == b"3"


def _again(call: Callable[[], Any]) -> Any:
    """Calls until no call takes too long: one second may be too short for a slow machine."""
    deadline = time.monotonic() + PATIENCE_SECS
    while True:
        try:
            return call()
        except TimeoutError:
            assert time.monotonic() < deadline


def test_a_name_node_that_is_gone_is_an_os_error():
    settings = {"dfs.client.failover.max.attempts": "1"}
    gone = HdfsStorage(hdfs_place("hdfs://127.0.0.1:1/folder", settings.get))
    with pytest.raises(OSError, match=r"hdfs://127\.0\.0\.1:1/folder: .*refused"):
        gone.read("a")


def test_the_user_of_hadoop_is_named_where_nobody_else_is(hdfs_server: HdfsServer, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("HADOOP_USER_NAME")
    try:
        folder = f"/tmp/{uuid.uuid4().hex}"
        storage = hdfs_place(f"{hdfs_server.uri}{folder}", {}.get, "alice").open()
        storage.put("a", b"")
        assert _client(hdfs_server).get_file_info(f"{folder}/a").owner == "alice"
    finally:
        os.environ.pop("HADOOP_USER_NAME", None)
