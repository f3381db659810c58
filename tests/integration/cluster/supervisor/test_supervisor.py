"""Supervisors in a real ZooKeeper with real processes; the drivers do everything but work."""

from __future__ import annotations

import itertools
import json
import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hand_written import HandWritten, wait_until

from storm_on_spark.cluster.daemons.supervisor import Supervisor
from storm_on_spark.cluster.errors import ClusterError
from storm_on_spark.cluster.paths import ASSIGNMENTS, OWNERS, STORMS, SUPERVISORS
from storm_on_spark.cluster.records import SupervisorInfo
from storm_on_spark.cluster.supervisor.slots import Phase
from storm_on_spark.cluster.zookeeper import ZooKeeperServer
from storm_on_spark.runtime.processes.sessions import session_members
from storm_on_spark.testing.simulated.cluster import DRIVER

ID = "counting-1-1700000000"


@pytest.fixture
def cluster(zookeeper: ZooKeeperServer, root: str, tmp_path: Path) -> Iterator[HandWritten]:
    cluster = HandWritten(zookeeper.connect_string, tmp_path, root)
    yield cluster
    cluster.close()


Start = Callable[..., Supervisor]


@pytest.fixture
def start(cluster: HandWritten) -> Iterator[Start]:
    """Starts supervisors with simulated drivers, and ends them with their drivers."""
    running: list[Supervisor] = []

    def begin(name: str = "s1", **more: object) -> Supervisor:
        supervisor = Supervisor(cluster.conf_of(name, **more), driver=DRIVER)
        supervisor.start()
        running.append(supervisor)
        return supervisor

    yield begin
    for supervisor in running:
        pids = supervisor.drivers().values()
        supervisor.stop(drivers=True)
        assert not [pid for leader in pids for pid in session_members(leader)], "processes are left"


@pytest.fixture
def code(tmp_path: Path) -> Path:
    file = tmp_path / "nothing.py"
    file.write_text("raise AssertionError('nobody imports this')\n")
    return file


def run(cluster: HandWritten, supervisor: Supervisor, code: Path, **conf: object) -> int:
    """Has a topology run; returns its driver's process id."""
    cluster.write_topology(ID, code, conf)
    cluster.assign(ID, supervisor.supervisor_id)
    wait_until(lambda: cluster.info(ID).get("status") == "ACTIVE", "the topology runs")
    owner = cluster.owner(ID)
    assert owner is not None
    assert supervisor.drivers() == {6700: owner.pid}
    return owner.pid


def gone(pid: int) -> bool:
    return not session_members(pid)


def another(cluster: HandWritten, pid: int) -> bool:
    """Whether the topology runs on another driver than `pid`."""
    owner, beat = cluster.owner(ID), cluster.beat(ID)
    return owner is not None and beat is not None and owner.pid == beat.pid != pid


def test_a_supervisor_is_registered_and_its_id_stays(cluster: HandWritten, start: Start) -> None:
    supervisor = start()

    def info() -> SupervisorInfo:
        wait_until(lambda: cluster.state.get(SupervisorInfo, SUPERVISORS, supervisor.supervisor_id), "registration")
        found = cluster.state.get(SupervisorInfo, SUPERVISORS, supervisor.supervisor_id)
        assert found is not None
        return found[0]

    first = info()
    assert (first.host, first.slots) == ("127.0.0.1", (6700, 6701))
    wait_until(lambda: info().heartbeat_at > first.heartbeat_at, "another heartbeat")
    with pytest.raises(ClusterError, match=r"another supervisor runs in .*storm\.local\.dir"):
        Supervisor(cluster.conf_of())
    supervisor.stop()
    assert cluster.state.get(SupervisorInfo, SUPERVISORS, supervisor.supervisor_id) is None
    assert start().supervisor_id == supervisor.supervisor_id
    assert start("s2").supervisor_id != supervisor.supervisor_id


def test_statuses_reach_the_driver_and_an_assignment_that_goes_ends_it(
    cluster: HandWritten, start: Start, code: Path
) -> None:
    supervisor = start()
    pid = run(cluster, supervisor, code, **{"simulated.child": True})
    assert len(session_members(pid)) == 2
    for status, said in (("INACTIVE", "INACTIVE"), ("ACTIVE", "ACTIVE"), ("KILLED", "INACTIVE")):
        cluster.set_status(ID, status)  # type: ignore[arg-type]
        wait_until(lambda said=said: cluster.info(ID)["status"] == said, status)
    cluster.unassign(ID)
    wait_until(lambda: gone(pid), "the end of the driver and of its child")
    wait_until(lambda: cluster.owner(ID) is None, "its node goes")
    assert cluster.info(ID)["status"] == "KILLED"
    wait_until(lambda: supervisor.slots[6700].slot.phase is Phase.EMPTY, "an empty slot")
    slot = cluster.folder / "s1" / "supervisor" / "slots" / "6700"
    # A slot says that it is empty, and then cleans up.
    wait_until(lambda: not (slot / "code").exists(), "the end of the code")
    wait_until(lambda: not (slot / "driver.json").exists(), "the end of the driver's file")
    assert not (cluster.folder / "checkpoints" / ID / "storm" / "owner.json").exists(), "not given back"


def test_a_driver_goes_on_while_records_of_its_topology_are_damaged(
    cluster: HandWritten, start: Start, code: Path
) -> None:
    pid = run(cluster, start(), code)
    for folder, damage in itertools.product((ASSIGNMENTS, STORMS), (b"", b"{}")):
        kept, path = cluster.state.get_bytes(folder, ID), cluster.session.paths.of(folder, ID)
        assert kept is not None
        before = _damages_seen(cluster)
        cluster.session.client.set(path, damage)
        wait_until(lambda before=before: _damages_seen(cluster) > before, f"the driver sees {folder}", 20)  # type: ignore[misc]
        cluster.session.client.set(path, kept[0])
        # It follows its cluster again, and is the same one.
        for status in ("INACTIVE", "ACTIVE"):
            cluster.set_status(ID, status)  # type: ignore[arg-type]
            wait_until(lambda said=status: cluster.info(ID)["status"] == said, status, 20)  # type: ignore[misc]
        owner = cluster.owner(ID)
        assert owner is not None
        assert owner.pid == pid


def _damages_seen(cluster: HandWritten) -> int:
    return cluster.worker_log(ID).count("the topology continues as it is")


def test_a_driver_that_does_not_end_is_killed_with_what_it_started(
    cluster: HandWritten, start: Start, code: Path
) -> None:
    supervisor = start(**{"supervisor.worker.shutdown.sleep.secs": 1})
    pid = run(cluster, supervisor, code, **{"simulated.child": True, "simulated.deaf": True})
    # It would end by itself when it sees that its assignment is gone; it can't while it is stopped.
    os.kill(pid, signal.SIGSTOP)
    cluster.unassign(ID)
    wait_until(lambda: gone(pid), "the end of the driver and of its child")


@pytest.mark.representative
def test_a_killed_driver_is_started_again_at_once_and_its_child_is_no_orphan(
    cluster: HandWritten, start: Start, code: Path
) -> None:
    supervisor = start(**{"storm.zookeeper.session.timeout": 30_000})
    pid = run(cluster, supervisor, code, **{"simulated.child": True})
    os.kill(pid, signal.SIGKILL)
    wait_until(lambda: another(cluster, pid), "another driver, long before the old one's node expires", 25)
    assert gone(pid)


def test_a_driver_that_hangs_is_killed_and_started_again(cluster: HandWritten, start: Start, code: Path) -> None:
    supervisor = start(**{"supervisor.worker.timeout.secs": 2, "supervisor.worker.shutdown.sleep.secs": 1})
    cluster.write_topology(ID, code, {"simulated.hang": True})
    cluster.assign(ID, supervisor.supervisor_id)
    wait_until(lambda: cluster.owner(ID), "a driver")
    first = cluster.owner(ID)
    assert first is not None
    wait_until(lambda: (owner := cluster.owner(ID)) is not None and owner.pid != first.pid, "another")
    assert gone(first.pid)
    messages = [error.message for error in cluster.state.errors(ID)["__system"]]
    assert messages[0] == "the driver has had no heartbeat for 2 s; it is killed and started again"


def test_a_killed_supervisor_finds_its_driver_again(cluster: HandWritten, start: Start, code: Path) -> None:
    process = cluster.supervisor_process("s1")
    try:
        wait_until(lambda: cluster.state.children(SUPERVISORS), "a supervisor")
        (supervisor_id,) = cluster.state.children(SUPERVISORS)
        cluster.write_topology(ID, code, {})
        cluster.assign(ID, supervisor_id)
        wait_until(lambda: cluster.info(ID), "the topology runs")
    finally:
        process.kill()
    owner, before = cluster.owner(ID), cluster.info(ID)["emitted"]
    assert owner is not None
    wait_until(lambda: cluster.info(ID)["emitted"] > before, "the driver goes on without a supervisor")
    supervisor = start()
    assert supervisor.drivers() == {6700: owner.pid}
    wait_until(lambda: supervisor.known, "the supervisor reads the cluster")
    before = cluster.info(ID)["emitted"]
    wait_until(lambda: cluster.info(ID)["emitted"] > before, "the driver goes on")
    assert cluster.owner(ID) == owner
    assert supervisor.slots[6700].slot.phase is Phase.RUNNING
    # It is looked after as if it were a child.
    os.kill(owner.pid, signal.SIGKILL)
    wait_until(lambda: another(cluster, owner.pid), "another driver")


def test_a_new_launch_takes_the_place_of_the_old_one(cluster: HandWritten, start: Start, code: Path) -> None:
    supervisor = start()
    pid = run(cluster, supervisor, code)
    cluster.assign(ID, supervisor.supervisor_id)
    wait_until(lambda: another(cluster, pid), "another driver")
    assert gone(pid)
    beat = cluster.beat(ID)
    assert beat is not None
    assert beat.launch == 2


@pytest.mark.representative
def test_a_topology_that_moves_is_never_run_by_two(cluster: HandWritten, start: Start, code: Path) -> None:
    first, second = start("s1"), start("s2")
    pid = run(cluster, first, code)
    cluster.write_topology(ID, code, {}, supervisor="s2")
    cluster.assign(ID, second.supervisor_id, 6701)
    while not another(cluster, pid):
        owner = cluster.owner(ID)
        assert owner is None or owner.pid == pid or gone(pid), "the second owns it while the first still runs"
    assert gone(pid)
    assert second.drivers() == {6701: cluster.owner(ID).pid}  # type: ignore[union-attr]


def test_a_complete_topology_stays_complete_also_for_a_supervisor_that_comes_back(
    cluster: HandWritten, start: Start, code: Path
) -> None:
    supervisor = start()
    cluster.write_topology(ID, code, {"simulated.tuples": 20})
    cluster.assign(ID, supervisor.supervisor_id)
    wait_until(lambda: cluster.info(ID).get("status") == "COMPLETED", "completion")
    wait_until(lambda: supervisor.slots[6700].slot.phase is Phase.FINISHED, "the slot knows")
    pid = supervisor.drivers()[6700]
    assert gone(pid)
    supervisor.stop()
    supervisor = start()
    wait_until(lambda: supervisor.known, "the supervisor reads the cluster")
    wait_until(lambda: supervisor.slots[6700].slot.phase is Phase.FINISHED, "the slot knows")
    assert supervisor.drivers() == {6700: pid}


def test_code_that_was_changed_is_not_run_and_the_users_are_told(
    cluster: HandWritten, start: Start, code: Path
) -> None:
    supervisor = start()
    cluster.write_topology(ID, code, {})
    # In the only place where it is: the store that the supervisor fetches from.
    stored = [path for path in cluster.folder.rglob("code.zip") if "packed" not in path.parts]
    assert len(stored) == 1
    stored[0].write_bytes(stored[0].read_bytes()[:-1] + b"!")
    cluster.assign(ID, supervisor.supervisor_id)
    wait_until(lambda: cluster.state.errors(ID).get("__system"), "an error")
    wait_until(lambda: supervisor.slots[6700].slot.phase is Phase.BACKING_OFF, "a pause")
    assert supervisor.drivers() == {}
    assert cluster.owner(ID) is None


def test_a_topology_that_can_not_start_says_why_and_is_not_tried_without_a_pause(
    cluster: HandWritten, start: Start, code: Path
) -> None:
    supervisor = start()
    cluster.write_topology(ID, code, {"simulated.fail": "jobs.py:3: ImportError: no module named tensorflow"})
    cluster.assign(ID, supervisor.supervisor_id)
    wait_until(lambda: supervisor.slots[6700].slot.failures == 2, "two failures")
    errors = cluster.state.errors(ID)["__system"]
    assert errors[0].message == "jobs.py:3: ImportError: no module named tensorflow"
    assert cluster.info(ID)["status"] == "FAILED"
    assert "ImportError" in cluster.info(ID)["error"]
    assert cluster.worker_log(ID).count("taking ownership") == 0


def test_topologies_run_on_while_zookeeper_is_away(cluster: HandWritten, start: Start, code: Path, tmp_path) -> None:
    with ZooKeeperServer(tmp_path / "zookeeper") as server:
        own = HandWritten(server.connect_string, tmp_path / "own")
        supervisor = Supervisor(own.conf_of(), driver=DRIVER)
        supervisor.start()
        try:
            pid = run(own, supervisor, code)
            node = own.session.client.exists(own.session.paths.of(OWNERS, ID))
            server.kill()
            file = own.folder / "s1" / "supervisor" / "slots" / "6700" / "beat.json"

            def beats() -> int:
                return int(json.loads(file.read_text())["number"])

            before = beats()
            wait_until(lambda: beats() > before + 3, "the driver goes on")
            server.start()
            wait_until(lambda: own.session.wait_connected(0.1), "a connection")
            # Expire the driver's session, too: it takes its topology again.
            own.session.client.delete(own.session.paths.of(OWNERS, ID))
            wait_until(lambda: (owner := own.owner(ID)) is not None and owner.pid == pid, "ownership")
            again = own.session.client.exists(own.session.paths.of(OWNERS, ID))
            assert again.czxid > node.czxid
            owner_file = own.folder / "checkpoints" / ID / "storm" / "owner.json"
            wait_until(lambda: json.loads(owner_file.read_text())["epoch"] == again.czxid, "the checkpoint says so")
            assert supervisor.drivers() == {6700: pid}
            assert not gone(pid)
        finally:
            supervisor.stop(drivers=True)
            own.close()


def test_the_second_driver_on_a_checkpoint_ends_the_first_at_once(
    cluster: HandWritten, start: Start, code: Path
) -> None:
    """The first one is cut off from ZooKeeper, as far as one can be: it is not told of anything."""
    supervisor = start()
    pid = run(cluster, supervisor, code, **{"simulated.child": True})
    checkpoint = cluster.folder / "checkpoints" / ID
    from storm_on_spark.spark.checkpoint.owner import Owner, OwnerFence

    fence = OwnerFence(checkpoint, Owner(ID, 1 << 60, "another"))
    wait_until(lambda: gone(pid), "the end of the first")
    assert "was taken over by a driver" in cluster.worker_log(ID)
    assert fence.lost() is None
    # What the supervisor starts in its place comes too late as well, while the other is there.
    wait_until(lambda: "has a newer owner" in cluster.worker_log(ID), "the next is refused")
    assert fence.lost() is None
