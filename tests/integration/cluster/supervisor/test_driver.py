"""Real drivers: Spark runs the topologies, and what dies continues where it stopped."""

from __future__ import annotations

import contextlib
import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hand_written import ROOT, HandWritten, wait_until
from msgspec.structs import replace

from storm_on_spark.cluster.daemons.supervisor import Supervisor
from storm_on_spark.cluster.paths import CHECKPOINTS
from storm_on_spark.cluster.records import CheckpointInfo
from storm_on_spark.cluster.supervisor.slots import Phase
from storm_on_spark.cluster.zookeeper import ZooKeeperServer
from storm_on_spark.runtime.processes.sessions import session_members
from storm_on_spark.spark.checkpoint.directory import read_manifest
from storm_on_spark.testing.servers.s3 import S3MissingError, S3Server

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
    supervisor = Supervisor(cluster.conf_of(**{"supervisor.spare.drivers": getattr(request, "param", 0)}))
    supervisor.start()
    yield supervisor
    pids = supervisor.drivers().values()
    supervisor.stop(drivers=True)
    assert not [pid for leader in pids for pid in session_members(leader)], "processes are left"


def notes(folder: Path, kind: str) -> list[dict[str, Any]]:
    file = folder / kind
    return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []


def check_exact(folder: Path) -> None:
    """Numbers come in order and each counts once, whatever died: n of them have the sum n (n - 1) / 2."""
    for progress in notes(folder, "progress"):
        assert progress["total"] == progress["seen"] * (progress["seen"] - 1) // 2


@pytest.mark.parametrize("supervisor", [1], indirect=True)
def test_broken_code_says_what_is_broken_and_word_count_comes_to_its_end_on_a_spare_driver(
    cluster: HandWritten, supervisor: Supervisor, tmp_path: Path
) -> None:
    text = tmp_path / "text"
    text.write_text("to be or not to be\n" * 20)
    count, broken = "word-count-1-1700000000", "broken-2-1700000001"
    file = tmp_path / "broken.py"
    file.write_text("import a_module_that_nobody_has\n")
    cluster.write_topology(count, ROOT / "jobs" / "word_count.py", {"word.count.input": str(text)})
    cluster.write_topology(broken, file, {})
    cluster.assign(broken, supervisor.supervisor_id, 6701)
    wait_until(lambda: cluster.state.errors(broken).get("__system"), "an error", START_SECS)
    cluster.unassign(broken)
    message = cluster.state.errors(broken)["__system"][0].message
    assert "broken.py:1: ModuleNotFoundError" in message
    assert "a_module_that_nobody_has" in message
    wait_until(lambda: any(spare.ready for spare in supervisor.spares.warm), "a warm spare driver", START_SECS)
    spare = supervisor.spares.warm[0].process.pid
    supervisor.spares.count = 0
    cluster.assign(count, supervisor.supervisor_id)
    wait_until(lambda: cluster.info(count).get("status") == "COMPLETED", "completion", START_SECS)
    info = cluster.info(count)
    assert (info["emitted"], info["acked"], info["failed"], info["pending"]) == (20, 20, 0, 0)
    assert supervisor.drivers()[6700] == spare, "the spare was not used"
    wait_until(lambda: supervisor.slots[6700].slot.phase is Phase.FINISHED, "the slot knows", 10)
    wait_until(lambda: not session_members(supervisor.drivers()[6700]), "the end of everything", 10)
    assert cluster.owner(count) is None


def test_a_driver_is_deactivated_and_killed_and_starts_on_its_state_or_on_none_when_it_is_told_to(
    cluster: HandWritten, supervisor: Supervisor, tmp_path: Path
) -> None:
    topology = "counting-1-1700000000"
    folder, checkpoint = tmp_path / "notes", tmp_path / "checkpoints" / "counting-1-1700000000"
    folder.mkdir()
    cluster.write_topology(topology, HERE / "counting_job.py", {"counting.notes": str(folder), "topology.workers": 1})

    def known() -> CheckpointInfo | None:
        found = cluster.state.get(CheckpointInfo, CHECKPOINTS, topology)
        return None if found is None else found[0]

    def refusals() -> list[str]:
        errors = cluster.state.errors(topology).get("__system", [])
        return [error.message for error in errors if "has state" in error.message]

    cluster.assign(topology, supervisor.supervisor_id)
    wait_until(lambda: known() is not None, "ZooKeeper knows that there is state", START_SECS)
    first = known()
    assert first is not None
    assert first.identity == read_manifest(checkpoint).storm_id
    wait_until(lambda: len(notes(folder, "progress")) > 3, "progress", START_SECS)
    owner = cluster.owner(topology)
    assert owner is not None
    kinds = " ".join(Path(f"/proc/{pid}/cmdline").read_text() for pid in session_members(owner.pid))
    assert all(part in kinds for part in ("java", "spout_host", "worker_daemon")), "a driver's session has all of it"

    cluster.set_status(topology, "INACTIVE")
    wait_until(lambda: cluster.info(topology)["status"] == "INACTIVE", "deactivation")
    wait_until(lambda: cluster.info(topology)["pending"] == 0, "what was under way is done")
    emitted = cluster.info(topology)["emitted"]
    cluster.set_status(topology, "ACTIVE")
    wait_until(lambda: cluster.info(topology)["emitted"] > emitted, "activation")

    cluster.unassign(topology)
    wait_until(lambda: cluster.owner(topology) is None, "its end")

    # The disk stays with the machine that died.
    checkpoint.rename(tmp_path / "elsewhere")
    cluster.assign(topology, supervisor.supervisor_id)
    wait_until(refusals, "an empty checkpoint is refused", START_SECS)
    assert f"there is nothing at {checkpoint}" in refusals()[0]
    assert first.identity in refusals()[0]
    wait_until(lambda: cluster.info(topology)["status"] == "FAILED", "its status says so")
    assert cluster.info(topology)["error"] == refusals()[0]
    assert not checkpoint.exists(), "what was refused was not touched"

    # It comes back: the supervisor tries again by itself, and the topology continues where it stopped.
    (tmp_path / "elsewhere").rename(checkpoint)
    wait_until(lambda: len(notes(folder, "begun")) == 2, "it continues", START_SECS)
    assert notes(folder, "begun")[1]["next"] > 0
    (closed,) = notes(folder, "closed")
    assert closed["failed"] == 0
    before = len(notes(folder, "progress"))
    wait_until(lambda: len(notes(folder, "progress")) > before + 3, "progress", START_SECS)
    check_exact(folder)
    cluster.unassign(topology)
    wait_until(lambda: cluster.owner(topology) is None, "its end")

    # The next launch is told to begin from zero.
    launch = cluster.launches + 1
    cluster.write(replace(first, from_scratch=launch), CHECKPOINTS, topology)
    assert cluster.assign(topology, supervisor.supervisor_id).launch == launch
    wait_until(lambda: len(notes(folder, "begun")) == 3, "it begins from zero", START_SECS)
    assert notes(folder, "begun")[2]["next"] == 0
    wait_until(lambda: (now := known()) is not None and now.identity not in ("", first.identity), "new state")
    # Once only: a driver that dies after that goes on.
    owner = cluster.owner(topology)
    assert owner is not None
    before = len(notes(folder, "progress"))
    wait_until(lambda: len(notes(folder, "progress")) > before + 3, "progress", START_SECS)
    os.kill(owner.pid, signal.SIGKILL)
    wait_until(lambda: len(notes(folder, "begun")) == 4, "the spout is opened again", START_SECS)
    assert not session_members(owner.pid)
    assert notes(folder, "begun")[3]["next"] > 0
    before = len(notes(folder, "progress"))
    wait_until(lambda: len(notes(folder, "progress")) > before + 3, "progress", START_SECS)

    cluster.unassign(topology)
    again = supervisor.drivers()[6700]
    assert again != owner.pid
    wait_until(lambda: not session_members(again), "the end of everything")
    assert cluster.owner(topology) is None
    check_exact(folder)
    temporary = tmp_path / "s1" / "supervisor" / "slots" / "6700" / "tmp"
    wait_until(lambda: not temporary.exists(), "temporary files go", 10)


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_topology_in_a_store_goes_on_at_another_supervisor_when_its_driver_is_killed(
    cluster: HandWritten, supervisor: Supervisor, tmp_path: Path
) -> None:
    topology = "counting-1-1700000000"
    folder = tmp_path / "notes"
    folder.mkdir()
    s3 = S3Server(tmp_path / "s3")
    try:
        s3.start()
    except S3MissingError as error:
        pytest.skip(str(error))
    other = Supervisor(cluster.conf_of("s2", **{"supervisor.spare.drivers": 0}))
    with contextlib.closing(s3):
        conf = {"counting.notes": str(folder), "topology.workers": 1, **s3.conf}
        conf["topology.checkpoint.dir"] = f"{s3.uri}/counting"
        for name in ("s1", "s2"):
            cluster.write_topology(topology, HERE / "counting_job.py", conf, supervisor=name)
        cluster.assign(topology, supervisor.supervisor_id)
        wait_until(lambda: len(notes(folder, "progress")) > 3, "progress", START_SECS)
        owner = cluster.owner(topology)
        assert owner is not None
        other.start()
        try:
            os.kill(owner.pid, signal.SIGKILL)
            cluster.assign(topology, other.supervisor_id)
            # What the killed driver had started may note some progress after it.
            wait_until(lambda: len(notes(folder, "begun")) > 1, "its start elsewhere", 2 * START_SECS)
            before = len(notes(folder, "progress"))
            wait_until(lambda: len(notes(folder, "progress")) > before, "progress elsewhere", 2 * START_SECS)
        finally:
            other.stop(drivers=True)

    begun = [one["next"] for one in notes(folder, "begun")]
    assert begun[0] == 0 < begun[-1], "it went on, and did not begin from zero"
    check_exact(folder)
    assert not (tmp_path / "checkpoints").exists(), "nothing was kept in a directory"
