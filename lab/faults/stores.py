"""Stores for the checkpoint instead of a directory: real servers on this machine that outlive every fault."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from storm_on_spark.runtime.storage import StoragePlace
from storm_on_spark.runtime.storage.hdfs import hdfs_place
from storm_on_spark.runtime.storage.s3 import s3_place
from storm_on_spark.testing.servers.hdfs import HdfsServer
from storm_on_spark.testing.servers.s3 import S3Server

KINDS = ("local", "s3", "hdfs")
_HDFS = {"dfs.replication": "2"}


@dataclass(frozen=True)
class Store:
    """A folder of a store."""

    url: str
    place: StoragePlace
    conf: Mapping[str, str]
    """Spark's settings for it."""


@dataclass(frozen=True)
class Server:
    """A running store."""

    kind: str
    uri: str
    settings: Mapping[str, str]
    """Hadoop's."""

    def folder(self, name: str) -> Store:
        """Returns a folder of it."""
        url = f"{self.uri}/{name}"
        place = (s3_place if self.kind == "s3" else hdfs_place)(url, self.settings.get)
        return Store(url, place, {f"spark.hadoop.{key}": value for key, value in self.settings.items()})


@contextlib.contextmanager
def server(kind: str, folder: Path) -> Iterator[Server | None]:
    """Starts a store; yields None for a directory.

    Args:
        kind: one of `KINDS`.
        folder: for the server's files.

    Raises:
        SetupError: it can't be started here.
    """
    if kind == "s3":
        with S3Server(folder) as s3:
            yield Server(kind, s3.uri, s3.settings)
    elif kind == "hdfs":
        with HdfsServer(folder) as hdfs:
            yield Server(kind, hdfs.uri, _HDFS)
    else:
        yield None
