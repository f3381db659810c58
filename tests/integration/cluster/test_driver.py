"""Real drivers: Spark runs the topologies, and what dies goes on where it was."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hand_written import ROOT, HandWritten, wait_until

from storm_on_spark.cluster.supervisor.daemon import Supervisor
from storm_on_spark.cluster.supervisor.slots import Phase
from storm_on_spark.cluster.zookeeper import ZooKeeperServer
from storm_on_spark.runtime.processes import session_members

pytestmark = pytest.mark.spark

HERE = Path(__file__).parent
START_SECS = 120
"""A start takes some 15 s on two cores that have nothing else to do."""


@pytest.fixture
def cluster(zookeeper: ZooKeeperServer, root: str, tmp_path: Path) -> Iterator[HandWritten]:
    cluster = HandWritten(zookeeper.connect_string, tmp_path, root)
    yield cluster
    cluster.close()


@pytest.fixture
def supervisor(cluster: HandWritten, request: pytest.FixtureRequest) -> Iterator[Supervisor]:
    """A supervisor; a parameter is the number of spare drivers."""
    supervisor = Supervisor(cluster.conf(**{"supervisor.spare.drivers": getattr(request, "param", 0)}))
    supervisor.start()
    yield supervisor
    pids = supervisor.drivers().values()
    supervisor.stop(drivers=True)
    assert not [pid for leader in pids for pid in session_members(leader)], "processes are left"


def notes(folder: Path, kind: str) -> list[dict[str, Any]]:
    file = folder / kind
    return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []


def test_a_driver_is_deactivated_killed_and_goes_on_with_exact_state(
    cluster: HandWritten, supervisor: Supervisor, tmp_path: Path
) -> None:
    topology = "counting-1-1700000000"
    folder = tmp_path / "notes"
    folder.mkdir()
    cluster.submit(topology, HERE / "counting_job.py", {"counting.notes": str(folder), "topology.workers": 1})
    cluster.assign(topology, supervisor.supervisor_id)
    wait_until(lambda: len(notes(folder, "progress")) > 3, "progress", START_SECS)
    owner = cluster.owner(topology)
    assert owner is not None
    kinds = " ".join(Path(f"/proc/{pid}/cmdline").read_text() for pid in session_members(owner.pid))
    assert all(part in kinds for part in ("java", "spout_host", "worker_daemon")), "a driver's session has all of it"

    cluster.set_status(topology, "INACTIVE")
    wait_until(lambda: cluster.info(topology)["status"] == "INACTIVE", "deactivation", 20)
    wait_until(lambda: cluster.info(topology)["pending"] == 0, "what was under way is done", 30)
    emitted = cluster.info(topology)["emitted"]
    cluster.set_status(topology, "ACTIVE")
    wait_until(lambda: cluster.info(topology)["emitted"] > emitted, "activation", 20)

    before = len(notes(folder, "progress"))
    os.kill(owner.pid, signal.SIGKILL)
    wait_until(lambda: len(notes(folder, "begun")) == 2, "the spout is opened again", START_SECS)
    assert not session_members(owner.pid)
    wait_until(lambda: len(notes(folder, "progress")) > before + 3, "progress", START_SECS)
    first, second = notes(folder, "begun")
    assert first["next"] == 0 < second["next"], "it went on, and did not begin anew"

    cluster.unassign(topology)
    again = supervisor.drivers()[6700]
    assert again != owner.pid
    wait_until(lambda: not session_members(again), "the end of everything", 20)
    assert cluster.owner(topology) is None
    # Numbers come in order and each counts once, whatever died: n of them have the sum n (n - 1) / 2.
    for progress in notes(folder, "progress"):
        assert progress["total"] == progress["seen"] * (progress["seen"] - 1) // 2
    (closed,) = notes(folder, "closed")
    assert closed["failed"] == 0
    temporary = tmp_path / "s1" / "supervisor" / "slots" / "6700" / "tmp"
    wait_until(lambda: not temporary.exists(), "temporary files go", 10)


@pytest.mark.parametrize("supervisor", [1], indirect=True)
def test_broken_code_says_what_is_broken_and_word_count_comes_to_its_end_on_a_spare_driver(
    cluster: HandWritten, supervisor: Supervisor, tmp_path: Path
) -> None:
    text = tmp_path / "text"
    text.write_text("to be or not to be\n" * 20)
    count, broken = "word-count-1-1700000000", "broken-2-1700000001"
    file = tmp_path / "broken.py"
    file.write_text("import a_module_that_nobody_has\n")
    cluster.submit(count, ROOT / "jobs" / "word_count.py", {"word.count.input": str(text)})
    cluster.submit(broken, file, {})
    cluster.assign(broken, supervisor.supervisor_id, 6701)
    wait_until(lambda: cluster.state.errors(broken).get("__system"), "an error", START_SECS)
    cluster.unassign(broken)
    message = cluster.state.errors(broken)["__system"][0].message
    assert "broken.py:1: ModuleNotFoundError" in message
    assert "a_module_that_nobody_has" in message
    wait_until(lambda: any(spare.ready for spare in supervisor._spares._spares), "a warm spare driver", START_SECS)
    spare = supervisor._spares._spares[0].process.pid
    supervisor._spares._count = 0
    cluster.assign(count, supervisor.supervisor_id)
    wait_until(lambda: cluster.info(count).get("status") == "COMPLETED", "completion", START_SECS)
    info = cluster.info(count)
    assert (info["emitted"], info["acked"], info["failed"], info["pending"]) == (20, 20, 0, 0)
    assert supervisor.drivers()[6700] == spare, "the spare was not used"
    wait_until(lambda: supervisor._slots[6700].slot.phase is Phase.FINISHED, "the slot knows", 10)
    wait_until(lambda: not session_members(supervisor.drivers()[6700]), "the end of everything", 10)
    assert cluster.owner(count) is None
