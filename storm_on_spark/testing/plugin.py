"""Fixtures for pytest.

Use them by `pytest_plugins = ["storm_on_spark.testing.plugin"]` in the top-level `conftest.py`.

`spark_session` is one local session for the whole test run, `local_cluster` a `LocalCluster` on it that ends the test's
topologies, and `nothing_left_behind` fails a test that leaks. `kafka_server` is one Kafka broker for the whole test
run.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from storm_on_spark.testing.faults.leaks import no_leaks, own_temporary_folder

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from storm_on_spark.connectors.kafka.server import KafkaServer
    from storm_on_spark.spark.local_cluster import LocalCluster


@pytest.fixture(scope="session")
def spark_session() -> Iterator[SparkSession]:
    """One local session, with two cores and its own folder for temporary files."""
    from storm_on_spark.spark.session import local_session, stop_session

    # Not in one of pytest's folders, whose paths are too long for the socket of real time.
    with (
        tempfile.TemporaryDirectory(prefix="storm-test-", ignore_cleanup_errors=True) as folder,
        own_temporary_folder(Path(folder)),
    ):
        spark = local_session("local[2]")
        yield spark
        stop_session(spark)


@pytest.fixture
def nothing_left_behind(spark_session: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Fails a test that leaves a thread, a process, a running query or a temporary file behind."""
    tmp_path_factory.getbasetemp()  # pytest's own folder, created by the first test that requests one
    # Longer than the default: a busy machine ends processes late, and only a failing test waits this long.
    with no_leaks(spark_session, timeout=30):
        yield


@pytest.fixture
def local_cluster(spark_session: SparkSession, nothing_left_behind: None) -> Iterator[LocalCluster]:
    """A cluster on the session of the test run; it ends topologies that the test leaves running."""
    from storm_on_spark.spark.local_cluster import LocalCluster

    with LocalCluster(spark_session) as cluster:
        yield cluster


@pytest.fixture(scope="session")
def kafka_server() -> Iterator[KafkaServer]:
    """One real Kafka broker for the whole test run; a test that restarts it must leave it running."""
    from storm_on_spark.connectors.kafka.server import KafkaServer

    with KafkaServer() as server:
        yield server
