"""Spouts on the executors of a real standalone cluster: where they are, and what the loss of an executor does."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from lengths import PATIENCE_SECS
from processes import environment

from storm_on_spark.cluster.standalone import StandaloneCluster
from storm_on_spark.runtime.processes.sessions import kill_session, started_at

DRIVER = Path(__file__).parent / "placed.py"
COUNT = 2000
"""Messages of each of the two spout tasks."""


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StandaloneCluster]:
    with StandaloneCluster(tmp_path_factory.mktemp("spark")) as cluster:
        yield cluster


class Driver:
    """One run of the topology."""

    def __init__(self, folder: Path, cluster: StandaloneCluster, **conf: Any) -> None:
        self.folder = folder
        settings = {
            "count": COUNT,
            "rate": 500,
            "folder": str(folder),
            "checkpoint": str(folder / "checkpoint"),
            "conf": conf,
            "master": cluster.master,
            "spark": cluster.conf,
        }
        (folder / "settings.json").write_text(json.dumps(settings))
        self.log = folder / "driver.log"
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                [sys.executable, str(DRIVER), str(folder / "settings.json")],
                env={**environment(folder / "tmp"), **cluster.environment, "XDG_STATE_HOME": str(folder / "logs")},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                start_new_session=True,
            )

    def notes(self, what: str) -> list[dict[str, Any]]:
        file = self.folder / "notes"
        lines = file.read_text().splitlines() if file.exists() else []
        return [note for note in map(json.loads, lines) if note["what"] == what]

    def acked(self, task: int | str = "*") -> list[int]:
        return [int(line) for file in self.folder.glob(f"acks-{task}") for line in file.read_text().split()]

    def until(self, condition: Callable[[], Any], seconds: float = PATIENCE_SECS) -> Any:
        deadline = time.monotonic() + seconds
        while not (found := condition()):
            assert self.process.poll() is None, self.log.read_text()[-3000:]
            assert time.monotonic() < deadline, self.log.read_text()[-3000:]
            time.sleep(0.1)
        return found

    def result(self) -> dict[str, Any]:
        out, _ = self.process.communicate(timeout=180)
        assert self.process.returncode == 0, self.log.read_text()[-3000:]
        found: dict[str, Any] = json.loads(out.splitlines()[-1])
        return found

    def close(self) -> None:
        kill_session(self.process.pid)
        self.process.communicate()


@pytest.fixture
def drive(tmp_path: Path, cluster: StandaloneCluster) -> Iterator[Callable[..., Driver]]:
    drivers: list[Driver] = []

    def start(**conf: Any) -> Driver:
        drivers.append(Driver(tmp_path, cluster, **conf))
        return drivers[-1]

    yield start
    for driver in drivers:
        driver.close()


# With S3 in the place of a directory, `test_executors_apart.py` shows that, too.
@pytest.mark.soak
def test_spouts_are_spread_and_go_on_elsewhere_when_an_executor_is_lost(
    drive: Callable[..., Driver], cluster: StandaloneCluster
) -> None:
    # So that a slow machine, too, has something left to emit when the executor is killed.
    driver = drive(**{"topology.max.spout.pending": 400, "topology.message.timeout.secs": 600})
    driver.until(lambda: len(driver.notes("opened")) == 2)
    at = {_machine(note): note for note in driver.notes("opened")}
    assert sorted(at) == sorted(cluster.workers), "each worker has one of the spouts"
    driver.until(lambda: len(driver.acked()) > COUNT // 2)
    lost = sorted(at)[0]
    for executor in cluster.executors(lost):
        os.kill(executor, signal.SIGKILL)
    assert len(driver.acked(at[lost]["task"])) < COUNT, "there was something left to lose"
    again = driver.until(lambda: driver.notes("opened")[2:])[0]
    assert again["task"] == at[lost]["task"]
    result = driver.result()
    assert result["status"] == "COMPLETED"
    assert result["counts"] == _expected()
    assert result["pending"] == 0
    assert any("ended unexpectedly" in error for error in result["errors"])
    assert set(driver.acked()) == set(range(2 * COUNT)), "each message was acked"
    assert [note["acked"] for note in driver.notes("closed")] == [COUNT, COUNT], "and counted once in the spouts' state"
    assert not driver.notes("failed")
    for note in driver.notes("opened"):
        assert started_at(note["pid"]) is None, "no host is left"


def _machine(note: dict[str, Any]) -> str:
    """Returns the worker in whose folder a process was started."""
    return Path(note["folder"]).parents[1].name


def _expected() -> dict[str, int]:
    numbers = range(2 * COUNT)
    return dict(Counter(str(word) for number in numbers for word in (number % 10, 10 + number % 3)))
