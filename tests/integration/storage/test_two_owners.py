"""A driver that stands still and is replaced: no message is acked that the next driver knows nothing of."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import psutil
import pytest
from lengths import PATIENCE_SECS
from waiting import eventually

from storm_on_spark.runtime.processes.sessions import kill_session
from storm_on_spark.testing.faults.machines import WITH_OWN_PROCESS_IDS
from storm_on_spark.testing.servers.s3 import S3Server

DRIVER = Path(__file__).parent / "queueing.py"
COUNT = 8000
_RACE = "CONCURRENT_STREAM_LOG_UPDATE"
"""Spark's word for two drivers that write the same micro-batch."""

pytestmark = pytest.mark.skipif(
    not sys.platform.startswith("linux") or os.geteuid() != 0 or shutil.which("unshare") is None,
    reason="needs root and unshare, for process ids of its own",
)


def name_of(number: int) -> str:
    return f"{number:05d}"


class Driver:
    def __init__(self, folder: Path, name: str, before: tuple[str, ...] = ()) -> None:
        self.log = folder / f"{name}.log"
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                [*before, sys.executable, str(DRIVER), str(folder / "settings.json")],
                stdout=subprocess.PIPE,
                stderr=log,
                start_new_session=True,
            )

    def close(self) -> None:
        kill_session(self.process.pid)
        self.process.communicate()

    def said(self) -> str:
        return self.log.read_text()[-3000:]


# The rules: `test_live_topology.py`, `test_rounds.py`.
@pytest.mark.soak
@pytest.mark.timeout(600)
def test_what_a_driver_that_is_replaced_acks_is_in_the_state_of_the_next_one(tmp_path: Path, s3_server: S3Server):
    queue = tmp_path / "queue"
    queue.mkdir()
    for number in range(COUNT):
        (queue / name_of(number)).touch()
    conf = {**s3_server.conf, "topology.profile": "realtime"}
    settings = {"checkpoint": f"{s3_server.uri}/two-owners", "queue": str(queue), "conf": conf}
    (tmp_path / "settings.json").write_text(json.dumps(settings))

    def acked() -> int:
        return COUNT - len(os.listdir(queue))

    def takers() -> set[str]:
        return {name.partition(".")[2] for name in os.listdir(queue)} - {""}

    first = Driver(tmp_path, "first")
    # By then it has written micro-batches.
    eventually(lambda: acked() > 1000)
    [taker] = eventually(takers)
    frozen = [psutil.Process(first.process.pid)]
    frozen += frozen[0].children(recursive=True)
    for process in frozen:
        process.suspend()
    try:
        second = Driver(tmp_path, "second", WITH_OWN_PROCESS_IDS)
        try:
            eventually(lambda: takers() - {taker})
            at = acked()
            eventually(lambda: acked() > at + 100)
            for process in reversed(frozen):
                process.resume()
            assert first.process.wait(PATIENCE_SECS) != 0
            assert any(word in first.said() for word in ("was taken over by another driver", _RACE)), first.said()
            left = {int(name) for name in os.listdir(queue) if "." not in name}
            assert left, "the second one had something to do"
            for number in left:
                (queue / name_of(number)).unlink(missing_ok=True)
            # A broker gives what a client has taken, but not acked, to the next one when it is gone.
            for name in os.listdir(queue):
                if name.endswith(taker):
                    (queue / name).rename(queue / name.partition(".")[0])
            Path(f"{queue}.last").touch()
            output, _ = second.process.communicate(timeout=PATIENCE_SECS)
            assert second.process.returncode == 0, second.said()
        finally:
            second.close()
    finally:
        first.close()
    seen = json.loads(output.splitlines()[-1])
    assert sorted(set(range(COUNT)) - left - set(seen)) == []
