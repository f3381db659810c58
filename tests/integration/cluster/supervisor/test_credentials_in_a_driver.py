"""Credentials in a real driver: spouts and bolts have them from the start, get new ones, and none is left on disk.

Log levels reach them in the same run.
"""

from __future__ import annotations

import json
import logging
import os
import time
from pathlib import Path
from typing import Any

import pytest
from hand_written import HandWritten, wait_until
from secrets_on_disk import holding

from storm_on_spark.cluster.credentials import sealed
from storm_on_spark.cluster.daemons.supervisor import Supervisor
from storm_on_spark.cluster.paths import CREDENTIALS, LOGCONFIGS
from storm_on_spark.cluster.records import LogConfig, LogLevel
from storm_on_spark.cluster.zookeeper import ZooKeeperServer
from storm_on_spark.runtime.processes.sessions import session_members

pytestmark = pytest.mark.spark

HERE = Path(__file__).parent
START_SECS = 120
TOPOLOGY = "taking-1-1700000000"
FIRST, SECOND = "first-secret-value", "second-secret-value"


def notes(folder: Path, kind: str) -> list[dict[str, Any]]:
    file = folder / kind
    return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []


def push(cluster: HandWritten, token: str) -> None:
    """Writes credentials as a leader does."""
    path = cluster.session.paths.of(CREDENTIALS, TOPOLOGY)
    cluster.write(sealed({"token": token}, TOPOLOGY, path, cluster.keyring), CREDENTIALS, TOPOLOGY)


@pytest.mark.parametrize("profile", ["realtime", pytest.param("latency", marks=pytest.mark.soak)])
def test_a_spout_and_a_bolt_are_given_them_and_log_levels_wherever_they_are_executed(
    zookeeper: ZooKeeperServer, root: str, tmp_path: Path, profile: str
) -> None:
    token, folder, disk = tmp_path / "token", tmp_path / "notes", tmp_path / "cluster"
    token.write_text("0123456789abcdef" * 2)
    token.chmod(0o600)
    folder.mkdir()
    with HandWritten(zookeeper.connect_string, disk, root, **{"nimbus.auth.token.file": os.fspath(token)}) as cluster:
        supervisor = Supervisor(cluster.conf_of())
        supervisor.start()
        try:
            conf = {"credentials.notes": str(folder), "topology.workers": 1, "topology.profile": profile}
            cluster.write_topology(TOPOLOGY, HERE / "credentials_job.py", conf)
            push(cluster, FIRST)
            cluster.assign(TOPOLOGY, supervisor.supervisor_id)
            for kind in ("spout", "bolt"):
                wait_until(lambda kind=kind: notes(folder, kind), f"a tuple of the {kind}", START_SECS)
                (found,) = notes(folder, kind)
                assert found["start"] == found["token"] == len(FIRST), kind
            push(cluster, SECOND)
            for kind in ("spout", "bolt"):
                wait_until(lambda kind=kind: notes(folder, kind)[-1]["token"] == len(SECOND), f"the {kind}'s news")
            assert notes(folder, "bolt")[-1]["level"] == logging.NOTSET
            for until, level in ((time.time() + 3600, logging.DEBUG), (time.time() - 1, logging.NOTSET)):
                levels = {"taking": LogLevel(level="DEBUG", secs=4, until=until)}
                cluster.write(LogConfig(topology_id=TOPOLOGY, levels=levels), LOGCONFIGS, TOPOLOGY)
                wait_until(lambda level=level: notes(folder, "bolt")[-1]["level"] == level, f"level {level}")
            assert "log levels: taking=DEBUG" in cluster.worker_log(TOPOLOGY)
            (driver,) = supervisor.drivers().values()
            for pid in session_members(driver):
                for of_process in ("environ", "cmdline"):
                    content = Path(f"/proc/{pid}/{of_process}").read_bytes()
                    assert FIRST.encode() not in content
                    assert SECOND.encode() not in content
            acked = cluster.info(TOPOLOGY)["acked"]
            wait_until(lambda: cluster.info(TOPOLOGY)["acked"] > acked, "commits with the new ones")
            for secret in (FIRST, SECOND):
                assert secret not in json.dumps(cluster.info(TOPOLOGY))
                assert {Path(file).name for file in holding(disk, secret)} <= {"credentials.json"}
            cluster.unassign(TOPOLOGY)
            wait_until(lambda: not session_members(driver), "the end of everything")
            wait_until(lambda: not holding(tmp_path, FIRST) + holding(tmp_path, SECOND), "the end of the last file")
        finally:
            supervisor.stop(drivers=True)
