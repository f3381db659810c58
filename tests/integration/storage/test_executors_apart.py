"""Executors that share no directory with the driver, nor with each other: all they have in common is a store.

Workers of Spark's standalone cluster stand for machines. Each has its own mount namespace, with empty file
systems over the folder of temporary files, the cache with the jars, its own working directories and the folder of this
test.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from processes import environment

from storm_on_spark.cluster.standalone import StandaloneCluster
from storm_on_spark.runtime.processes.sessions import kill_session
from storm_on_spark.spark.session import jars
from storm_on_spark.spark.session.folders.dirs import SHORT_TEMPORARY
from storm_on_spark.testing.servers.hdfs import HdfsServer
from storm_on_spark.testing.servers.s3 import S3Server

HERE = Path(__file__).parent
UNSHARE = shutil.which("unshare")
COUNT = 200
"""Messages of each of the two spout tasks, of which few are pending at a time: it takes some micro-batches."""
OTHER_MACHINE = """
set -e
keep=$1; shift
work=$1; shift
cd "$keep"
for hidden in $1; do mount -t tmpfs tmpfs "$hidden"; done; shift
# Only the folder of the cluster is seen through the one that hides it.
mkdir -p "$keep"
mount --no-canonicalize --bind . "$keep"
cd "$keep"
for own in $work; do mkdir -p "$own"; mount -t tmpfs tmpfs "$own"; done
exec "$@"
"""

pytestmark = pytest.mark.skipif(
    not sys.platform.startswith("linux")
    or os.geteuid() != 0
    or UNSHARE is None
    or HERE.is_relative_to(tempfile.gettempdir()),
    reason="needs root and unshare, for mounts of its own, and a checkout outside of the temporary files",
)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StandaloneCluster]:
    """Both machines, for all tests here."""
    folder = tmp_path_factory.mktemp("machines") / "spark"

    def machine(host: str) -> Sequence[str]:
        own = f"{folder / host} {folder / host}-local"
        # Innermost first, so that each is there when it is hidden. Beside a session of Spark, tests have a temporary
        # folder of their own.
        places = {Path(tempfile.gettempdir()), tmp_path_factory.getbasetemp(), Path(SHORT_TEMPORARY)}
        temporary = sorted(places, key=lambda path: -len(path.parts))
        hidden = " ".join(map(str, [*temporary, jars.cache(), HERE]))
        return (
            str(UNSHARE),
            "--mount",
            "--propagation",
            "private",
            "sh",
            "-c",
            OTHER_MACHINE,
            "-",
            str(folder),
            own,
            hidden,
        )

    with StandaloneCluster(folder, cores=CORES, machine=machine) as cluster:
        yield cluster


CORES = 4
"""Of each machine: a spout's host holds one, and when one of two machines is gone, the other one has both hosts."""


class Driver:
    """One run of the topology."""

    def __init__(
        self, folder: Path, cluster: StandaloneCluster, checkpoint: str, conf: Mapping[str, Any], pending: int
    ) -> None:
        (folder / "driver").mkdir()
        settings = {
            "count": COUNT,
            "pending": pending,
            "folder": str(folder / "driver"),
            "checkpoint": checkpoint,
            "conf": dict(conf),
            "master": cluster.master,
            # Not all of what the cluster recommends: that names jars of this machine.
            "spark": {key: value for key, value in cluster.conf.items() if "ClassPath" not in key and ".fs." not in key}
            | {key: value for key, value in conf.items() if key.startswith("spark.")},
            "machines": 2,
        }
        (folder / "settings.json").write_text(json.dumps(settings))
        # A live process needs a short path for its socket.
        self.temporary = Path(tempfile.mkdtemp(dir=SHORT_TEMPORARY))
        self.out, self.log = folder / "driver.out", folder / "driver.log"
        with self.out.open("wb") as out, self.log.open("wb") as log:
            self.process = subprocess.Popen(
                [sys.executable, str(HERE / "apart.py"), str(folder / "settings.json")],
                env={**environment(self.temporary), **cluster.environment, "XDG_STATE_HOME": str(folder / "logs")},
                cwd=folder / "driver",
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=log,
                start_new_session=True,
            )

    @property
    def said(self) -> list[Any]:
        return [json.loads(line) for line in self.out.read_text().splitlines()]

    def until_acked(self, wanted: int) -> None:
        deadline = time.monotonic() + 300
        while max((0, *self.said)) < wanted:
            assert self.process.poll() is None, self.log.read_text()[-3000:]
            assert time.monotonic() < deadline, self.log.read_text()[-3000:]
            time.sleep(0.1)

    def result(self) -> dict[str, Any]:
        assert self.process.wait(400) == 0, self.log.read_text()[-3000:]
        found: dict[str, Any] = self.said[-1]
        return found

    def close(self) -> None:
        kill_session(self.process.pid)
        self.process.wait()
        shutil.rmtree(self.temporary, ignore_errors=True)


def _exact_without_a_shared_directory(
    folder: Path, cluster: StandaloneCluster, checkpoint: str, conf: Mapping[str, Any], pending: int = 50
) -> dict[str, Any]:
    driver = Driver(folder, cluster, checkpoint, conf, pending)
    try:
        # More than one spout has: so both have emitted, wherever they are.
        driver.until_acked(COUNT + 1)
        cluster.kill_worker("127.0.0.2")
        assert max(driver.said) < 2 * COUNT, "there was something left to do"
        found = driver.result()
    finally:
        driver.close()
        if "127.0.0.2" not in cluster.workers:
            cluster.start_worker("127.0.0.2", wait=False)
    assert (found["status"], found["acked"], found["failed"], found["pending"]) == ("COMPLETED", 2 * COUNT, 0, 0)
    assert found["counts"] == [2 * COUNT // 10] * 10
    # What a failure further on is explained by.
    print(driver.log.read_text()[-6000:])
    return found


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_spouts_and_bolts_on_machines_that_share_only_s3_survive_the_loss_of_one(
    tmp_path: Path, cluster: StandaloneCluster, s3_server: S3Server
):
    conf = {**s3_server.conf, "topology.spouts.placement": "executors"}
    found = _exact_without_a_shared_directory(tmp_path, cluster, f"{s3_server.uri}/apart", conf)
    assert found["spouts"] == found["bolts"], "spouts ran on both machines"
    _ran_on_both(found)


def _ran_on_both(found: Mapping[str, Any]) -> None:
    assert len(found["bolts"]) == 2, "bolts ran on both machines"
    assert found["driver"] not in found["bolts"]


# On S3 the spouts are on other machines, too; a driver on HDFS is killed in `test_stored_topology.py`.
@pytest.mark.soak
@pytest.mark.timeout(600)
def test_bolts_on_machines_that_share_only_hdfs_with_the_driver_survive_the_loss_of_one(
    tmp_path: Path, cluster: StandaloneCluster, hdfs_server: HdfsServer
):
    conf = {"spark.hadoop.dfs.replication": "2"}
    found = _exact_without_a_shared_directory(tmp_path, cluster, f"{hdfs_server.uri}/tmp/apart", conf)
    assert found["spouts"] == [found["driver"]]
    _ran_on_both(found)


# On S3 in one process: `test_stored_topology.py`; on machines that share a directory: `test_real_time_elsewhere.py`.
@pytest.mark.soak
@pytest.mark.timeout(600)
def test_live_processes_on_machines_that_share_only_s3_survive_the_loss_of_one(
    tmp_path: Path, cluster: StandaloneCluster, s3_server: S3Server
):
    conf = {**s3_server.conf, "topology.profile": "realtime"}
    found = _exact_without_a_shared_directory(tmp_path, cluster, f"{s3_server.uri}/live-apart", conf, pending=1)
    assert found["spouts"] == [found["driver"]]
    assert found["driver"] in found["bolts"], "the first live process is beside the driver"
    assert len(found["bolts"]) > 1, "the other one is on a machine"
