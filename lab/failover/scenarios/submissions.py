"""The leader dies in the middle of a submission; the storage of code fails."""

from __future__ import annotations

import contextlib
import signal
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final, get_args

from lab.failover.cluster import NOTHING, Cluster
from lab.failover.scenarios.leaders import running
from lab.suite.processes import wait_for
from storm_on_spark.api.errors import StormError
from storm_on_spark.cluster.nimbus.accepting.submission import Step
from storm_on_spark.testing.simulated.process import DaemonProcess

STEPS: Final = get_args(Step)
"""All steps of a submission, in order."""


def at_every_step(cluster: Cluster, times: int) -> None:
    """The leader dies at each step in turn."""
    for name in "abc":
        # Files that a dead leader left on its disk are removed after this period.
        cluster.nimbus(name, {"nimbus.code.sync.freq.secs": 2})
    running(cluster, "", 1)
    for step in STEPS:
        kill_leader_at(cluster, step)
    cluster.expect_untouched()
    for nimbus in cluster.nimbuses:
        folder = nimbus.folder / "local" / "nimbus" / "code"
        wanted = set(cluster.watched)
        wait_for(
            lambda: {path.name for path in folder.iterdir() if path.name[0] != "."} == wanted,  # noqa: B023
            f"nothing else than {wanted} is in {folder}",
        )


def kill_leader_at(cluster: Cluster, step: str, conf: Mapping[str, Any] = NOTHING) -> None:
    """Makes the leader kill itself at a step of a submission; the client does not know and continues."""
    leader = cluster.leader()
    leader.arm(step, "kill")
    name = f"submitted-{step}"
    topology_id = cluster.submit(cluster.client(), name, conf)
    wait_for(lambda: leader.exit_code is not None, f"the leader dies when it has {step}")
    cluster.expect(leader.exit_code == -signal.SIGKILL, f"it ended with {leader.exit_code}")
    cluster.expect(f"step {step} of" in leader.said, f"it did not come to {step}")
    cluster.injected(f'SIGKILL of the leader at step "{step}"', f"exit code {leader.exit_code}, {topology_id} is in")
    cluster.again(leader)
    wait_for(lambda: not cluster.names("submissions"), "nothing is half done")
    same = [each for each in cluster.names("storms") if each.startswith(name)]
    cluster.expect(same == [topology_id], f"there are {same}")
    cluster.wait_until_writing(name)
    cluster.expect_progress()
    cluster.kill_topology(cluster.client(), topology_id)


def storage(cluster: Cluster, times: int) -> None:
    """The leader can't keep code, then another Nimbus can't."""
    running(cluster, topologies=1)
    fail_storage_of_leader(cluster)
    fail_storage_of_follower(cluster)
    cluster.expect_untouched()


def _folder_of(nimbus: DaemonProcess) -> Path:
    return nimbus.folder / "local" / "nimbus" / "code"


@contextlib.contextmanager
def broken(folder: Path) -> Iterator[None]:
    """Puts a file in place of a folder, until the end of the context."""
    away = folder.with_name(f"{folder.name}-away")
    folder.rename(away)
    folder.write_text("no folder")
    try:
        yield
    finally:
        folder.unlink()
        away.rename(folder)


def fail_storage_of_leader(cluster: Cluster) -> None:
    """A file is in place of the leader's folder of code: the client is told."""
    leader = cluster.leader()
    with broken(_folder_of(leader)):
        expect_refusal(cluster, "the leader's storage of code fails")
    wait_for(lambda: not cluster.names("submissions"), "what was begun is cleaned up")


def expect_refusal(cluster: Cluster, fault: str) -> None:
    """Submits a topology that can't be accepted, and expects the leader to say so and to survive."""
    leader = cluster.leader()
    try:
        cluster.submit(cluster.client(retries=2), "unkept")
        cluster.expect(False, "a topology whose code can't be kept was taken in")
    except StormError as error:
        cluster.injected(fault, f"the client was told: {error}"[:300])
    cluster.expect(set(cluster.names("storms")) == set(cluster.acknowledged), "there is a topology")
    cluster.expect(leader.exit_code is None, "the leader died of it")
    cluster.expect_progress()


def fail_storage_of_follower(cluster: Cluster) -> None:
    """The same with another Nimbus: a submission has one copy less."""
    leader = cluster.leader()
    follower = next(nimbus for nimbus in cluster.nimbuses if nimbus is not leader)
    with broken(_folder_of(follower)):
        began = time.time()
        wait = {"topology.min.replication.count": 3, "topology.max.replication.wait.time.sec": 2}
        topology_id = cluster.submit(cluster.client(leader), "two-of-three", wait)
        took = time.time() - began
        cluster.expect(took >= 2, f"it was in after {took:.1f} s, with fewer copies than it asked for")
        copies = cluster.names("code", topology_id)
        cluster.expect(follower.name not in copies, "a copy is announced that there is not")
        proof = f"taken in with {len(copies)} of 3 copies after {took:.1f} s"
        cluster.injected("another Nimbus' storage fails", proof)
        cluster.expect_progress()
    wait_for(lambda: len(cluster.names("code", topology_id)) == 3, "the third copy")
    cluster.wait_until_writing("two-of-three")
    cluster.kill_topology(cluster.client(), topology_id)
