"""A topology whose checkpoint is in a store: nothing is lost and nothing counts twice when its driver is killed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

import psutil
import pytest
from lengths import PATIENCE_SECS
from waiting import eventually

from storm_on_spark.runtime.processes.server import Server
from storm_on_spark.testing.servers.hdfs import HdfsServer
from storm_on_spark.testing.servers.s3 import S3Server

DRIVER = Path(__file__).parent / "killing.py"
LIVE = "storm_on_spark.runtime.live.processes.process"
COUNT = 1000
"""Messages; no micro-batch has more than a quarter of them, so that some are left when a driver is killed."""


class Driver:
    """One start of the topology."""

    def __init__(
        self,
        folder: Path,
        checkpoint: str,
        conf: Mapping[str, str],
        count: int,
        master: str = "local[2]",
        pending: int = COUNT // 4,
    ) -> None:
        self.acked = folder / "acked"
        settings = folder / "settings.json"
        given = {"checkpoint": checkpoint, "conf": dict(conf), "count": count, "acked": str(self.acked)}
        settings.write_text(json.dumps({**given, "pending": pending, "master": master}))
        self.log = folder / "driver.log"
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                [sys.executable, str(DRIVER), str(settings)], stdout=subprocess.PIPE, stderr=log, start_new_session=True
            )

    def until_acked(self, wanted: int, timeout: float = PATIENCE_SECS) -> None:
        deadline = time.monotonic() + timeout
        while self.number_acked() < wanted:
            assert self.process.poll() is None, self.log.read_text()[-3000:]
            assert time.monotonic() < deadline, f"{self.number_acked()} of {wanted} are acked"
            time.sleep(0.05)

    def number_acked(self) -> int:
        return self.acked.read_bytes().count(b"\n") if self.acked.exists() else 0

    def kill(self) -> None:
        os.kill(self.process.pid, signal.SIGKILL)
        assert self.process.wait() == -signal.SIGKILL
        self.process.stdout.close()

    def result(self, timeout: float = 200) -> dict[str, object]:
        output, _ = self.process.communicate(timeout=timeout)
        assert self.process.returncode == 0, self.log.read_text()[-3000:]
        return json.loads(output.splitlines()[-1])


def expected(count: int) -> dict[str, int]:
    counts: Counter[str] = Counter()
    for number in range(count):
        counts.update([str(number % 10), str(10 + number % 3)])
    return dict(counts)


def _exact_after_kills(folder: Path, checkpoint: str, conf: Mapping[str, str], kills: int) -> None:
    before = 0
    for _ in range(kills):
        driver = Driver(folder, checkpoint, conf, COUNT)
        driver.until_acked(before + COUNT // 6)
        driver.kill()
        before = driver.number_acked()
        assert before < COUNT, "it was killed in the middle"

    _check(Driver(folder, checkpoint, conf, COUNT).result(), folder, COUNT)


def _check(result: dict[str, object], folder: Path, count: int) -> None:
    assert result == {"counts": expected(count), "pending": 0}
    acked = [int(line) for line in (folder / "acked").read_text().split()]
    assert set(acked) == set(range(count))


def _live_process(driver: Driver) -> psutil.Process | None:
    of_driver = psutil.Process(driver.process.pid).children(recursive=True)
    return next((one for one in of_driver if LIVE in one.cmdline()), None)


def _exact_in_real_time(folder: Path, checkpoint: str, conf: Mapping[str, str], server: Server) -> None:
    conf, count = {**conf, "topology.profile": "realtime"}, 4000
    driver = Driver(folder, checkpoint, conf, count, pending=5)
    driver.until_acked(200)
    live = eventually(lambda: _live_process(driver), "there is a live process")
    driver.until_acked(driver.number_acked() + 200)
    live.kill()
    driver.until_acked(driver.number_acked() + 200)
    server.pause()
    time.sleep(3)
    held = driver.number_acked()
    time.sleep(1)
    assert driver.number_acked() == held, "nothing is acked that the store has not got"
    server.resume()
    driver.until_acked(held + 200)
    assert driver.number_acked() < count, "the driver is killed in the middle"
    driver.kill()
    _check(Driver(folder, checkpoint, conf, count, pending=200).result(), folder, count)


@pytest.mark.timeout(600)
def test_on_s3_in_real_time_the_state_is_exact_after_kills_and_while_the_store_stood_still(
    tmp_path: Path, s3_server: S3Server
):
    _exact_in_real_time(tmp_path, f"{s3_server.uri}/live", s3_server.conf, s3_server)


# A test of supervisors kills a driver on S3, and another one goes on: `test_driver.py`.
@pytest.mark.soak
@pytest.mark.timeout(600)
def test_on_s3_the_state_is_exact_after_the_driver_was_killed_twice(tmp_path: Path, s3_server: S3Server):
    _exact_after_kills(tmp_path, f"{s3_server.uri}/counting", s3_server.conf, kills=2)


@pytest.mark.soak
@pytest.mark.timeout(600)
def test_on_hdfs_the_state_is_exact_after_the_driver_was_killed(tmp_path: Path, hdfs_server: HdfsServer):
    _exact_after_kills(tmp_path, f"{hdfs_server.uri}/counting", {"spark.hadoop.dfs.replication": "2"}, kills=1)


# In a directory it is refused in `test_older_checkpoint.py`; on S3 a topology goes on in `test_driver.py`.
@pytest.mark.soak
@pytest.mark.timeout(600)
def test_on_s3_an_older_copy_of_the_checkpoint_is_refused_beside_newer_files(tmp_path: Path, s3_server: S3Server):
    _refused_when_put_back(tmp_path, f"{s3_server.uri}/put-back", s3_server.conf, s3_server.settings)


# HDFS renames and lists as a directory does, see `test_older_checkpoint.py`; S3 does not.
@pytest.mark.soak
@pytest.mark.timeout(600)
def test_on_hdfs_an_older_copy_of_the_checkpoint_is_refused_beside_newer_files(tmp_path: Path, hdfs_server: HdfsServer):
    conf = {"spark.hadoop.dfs.replication": "2"}
    _refused_when_put_back(tmp_path, f"{hdfs_server.uri}/put-back", conf, {"dfs.replication": "2"})


def _refused_when_put_back(folder: Path, checkpoint: str, conf: Mapping[str, str], client: Mapping[str, str]) -> None:
    settings = folder / "settings.json"
    given = {"checkpoint": checkpoint, "folder": str(folder / "files"), "conf": dict(conf), "client": dict(client)}
    settings.write_text(json.dumps(given))

    done = subprocess.run(
        [sys.executable, str(DRIVER.with_name("putting_back.py")), str(settings)], capture_output=True, timeout=400
    )

    assert done.returncode == 0, done.stderr.decode()[-3000:]
    first, second, older, own = json.loads(done.stdout.splitlines()[-1])
    assert (first, second, own) == ("ran", "ran", "ran")
    assert "older than what was written with it" in older
    lines = [line for file in (folder / "files").glob("*.json") for line in file.read_text().split("\n") if line]
    assert sorted(json.loads(line)["n"] for line in lines) == list(range(50))
