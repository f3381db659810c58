"""Trident's exactly once on Spark: an opaque spout and opaque states in other systems, while processes are killed."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import psutil
import pytest
from lengths import PATIENCE_SECS

from storm_on_spark import SetupError
from storm_on_spark.testing.servers.redis import RedisServer

sys.path.insert(0, str(Path(__file__).parent))  # as its driver does
from trident_counts import connect

HERE = Path(__file__).parent
COUNT = 4_000
MOST = 200
"""Messages of a batch in each of two partitions, at most; each attempt has another random number of them."""


class Run:
    """A topology whose driver is started again and again."""

    def __init__(self, folder: Path, redis: Any, port: int) -> None:
        self.redis, self.database = redis, folder / "states.db"
        self.settings, self.log = folder / "settings.json", folder / "driver.log"
        given = {"count": COUNT, "most": MOST, "port": port, "database": str(self.database), "conf": {}}
        self.settings.write_text(json.dumps({**given, "checkpoint": str(folder / "checkpoint")}))

    def start(self) -> subprocess.Popen[bytes]:
        with self.log.open("ab") as log:
            command = [sys.executable, "-c", "import sys, trident_counts; trident_counts.main(sys.argv[1])"]
            return subprocess.Popen(
                [*command, str(self.settings)],
                stdout=subprocess.PIPE,
                stderr=log,
                start_new_session=True,
                env={**os.environ, "PYTHONPATH": str(HERE)},
            )

    def written(self) -> int:
        return int(self.redis.hlen("numbers"))

    def until_written(self, driver: subprocess.Popen[bytes], wanted: int) -> None:
        deadline = time.monotonic() + PATIENCE_SECS
        while self.written() < wanted:
            assert driver.poll() is None, self.log.read_text()[-3000:]
            assert time.monotonic() < deadline, f"{self.written()} of {wanted} are written"
            time.sleep(0.02)
        assert self.written() < COUNT, "the fault comes in the middle"

    def times(self) -> Counter[int]:
        """How many numbers were counted how many times."""
        found = self.redis.hgetall("numbers").items()
        return Counter(json.loads(text)[1] for key, text in found if key.startswith(b"["))

    def rests(self) -> dict[int, int]:
        with sqlite3.connect(self.database) as connection:
            found = connection.execute("SELECT entry_key, entry_value FROM storm_states").fetchall()
        return {json.loads(key)[0]: json.loads(text)[1] for key, text in found if key.startswith("[")}


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_opaque_states_have_each_message_once_after_workers_and_a_driver_were_killed(tmp_path: Path) -> None:
    try:
        server = RedisServer()
    except SetupError as error:
        pytest.skip(f"a real Redis can't be had here: {error}")
    with server:
        run = Run(tmp_path, connect(server.port), server.port)
        driver = run.start()
        run.until_written(driver, COUNT // 5)
        workers = [child for child in psutil.Process(driver.pid).children(recursive=True) if is_worker(child)]
        assert workers, "there are Python workers"
        for worker in workers:
            worker.kill()
        run.until_written(driver, COUNT // 2)
        with driver:
            os.kill(driver.pid, signal.SIGKILL)
        assert driver.returncode == -signal.SIGKILL
        driver = run.start()
        output, _ = driver.communicate(timeout=PATIENCE_SECS)
        assert driver.returncode == 0, run.log.read_text()[-3000:]
        assert json.loads(output.splitlines()[-1]) == {"status": "COMPLETED"}
        assert run.times() == {1: COUNT}
        assert run.rests() == dict(Counter(number % 7 for number in range(COUNT)))


def is_worker(process: psutil.Process) -> bool:
    """Returns whether a process is a Python worker of Spark's, and not the daemon that forks them."""
    try:
        return any("daemon" in part for part in process.cmdline()) and any(
            "daemon" in part for part in process.parent().cmdline()
        )
    except psutil.Error:
        return False
