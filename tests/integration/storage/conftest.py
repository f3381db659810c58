"""Servers of stores that the tests share."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import pytest

from storm_on_spark.testing.servers.hdfs import HdfsMissingError, HdfsServer
from storm_on_spark.testing.servers.s3 import S3MissingError, S3Server


@pytest.fixture(scope="session")
def s3_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Server]:
    try:
        with S3Server(tmp_path_factory.mktemp("s3")) as server:
            yield server
    except S3MissingError as error:
        pytest.skip(str(error))


@pytest.fixture(scope="session")
def hdfs_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HdfsServer]:
    hdfs_native = pytest.importorskip("hdfs_native")
    server = HdfsServer(tmp_path_factory.mktemp("hdfs"))
    try:
        server.start()
    except HdfsMissingError as error:
        pytest.skip(str(error))
    with contextlib.closing(server):
        # The root belongs to who started the server; this is everybody's.
        client = hdfs_native.Client(server.uri)
        client.mkdirs("/tmp")
        client.set_permission("/tmp", 0o777)
        yield server
