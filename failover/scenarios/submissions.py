"""The leader dies in the middle of a submission; the storage of code fails."""

from __future__ import annotations

import signal
import time
from typing import Final, get_args

from failover.cluster import Cluster, wait_for
from storm_on_spark.api.errors import StormError
from storm_on_spark.cluster.nimbus.submission import Step

STEPS: Final = get_args(Step)
"""All steps of a submission, in order."""


def at_every_step(cluster: Cluster, times: int) -> None:
    """The leader kills itself at each step in turn; the client knows nothing of it and goes on."""
    cluster.supervisor("s1", {"supervisor.slots.ports": [6700]})
    for name in "bc":
        # What a dead leader left on its disk goes after this period.
        cluster.nimbus(name, {"nimbus.code.sync.freq.secs": 2})
    others = list(cluster.nimbuses)
    for step in STEPS:
        # So that the next one of the queue is the one that is to die.
        fatal = cluster.nimbus(f"dies-{step}", {"nimbus.code.sync.freq.secs": 2}, at=step)
        wait_for(lambda: fatal.name in cluster.names("nimbuses"), "it is up")  # noqa: B023
        for other in others:
            other.kill()
            cluster.nimbuses.remove(other)
        leader = cluster.leader()
        cluster.expect(leader is fatal, f"{leader.name} leads")
        others = [cluster.nimbus(name, {"nimbus.code.sync.freq.secs": 2}) for name in "bc"]
        wait_for(lambda: len(cluster.names("nimbuses")) == 3, "three Nimbuses")
        client = cluster.client(fatal, *others)
        name = f"submitted-{step}"
        topology_id = cluster.submit(client, name)
        wait_for(lambda: fatal.exit_code is not None, f"the leader dies when it has {step}")  # noqa: B023
        cluster.expect(fatal.exit_code == -signal.SIGKILL, f"it ended with {fatal.exit_code}")
        cluster.expect(f"step {step} of" in fatal.said, f"it did not come to {step}")
        cluster.injected(f'SIGKILL of the leader at step "{step}"', f"exit code {fatal.exit_code}, {topology_id} is in")
        wait_for(lambda: not cluster.names("submissions"), "nothing is half done")
        same = [each for each in cluster.names("storms") if each.startswith(name)]
        cluster.expect(same == [topology_id], f"there are {same}")
        cluster.wait_until_writing(name)
        cluster.kill_topology(cluster.client(*others), topology_id)
    for other in others:
        folder = other.folder / "local" / "nimbus" / "code"
        wait_for(lambda: not [path for path in folder.iterdir() if path.name[0] != "."], f"nothing is in {folder}")  # noqa: B023


def storage(cluster: Cluster, times: int) -> None:
    """The leader can't keep code, then another Nimbus can't: where code belongs there is a file instead of a folder."""
    names = {name: cluster.nimbus(name) for name in "abc"}
    cluster.supervisor("s1")
    leader = cluster.leader()
    client = cluster.client(retries=2)
    code = leader.folder / "local" / "nimbus" / "code"
    away = code.with_name("code-away")
    code.rename(away)
    code.write_text("no folder")
    try:
        cluster.submit(client, "unkept")
        cluster.expect(False, "a topology whose code can't be kept was taken in")
    except StormError as error:
        cluster.injected("the leader's storage of code fails", f"the client was told: {error}"[:200])
    cluster.expect(not cluster.names("storms"), "there is a topology")
    cluster.expect(leader.exit_code is None, "the leader died of it")
    code.unlink()
    away.rename(code)
    wait_for(lambda: not cluster.names("submissions"), "what was begun is cleaned up")
    follower = next(nimbus for nimbus in names.values() if nimbus is not leader)
    code = follower.folder / "local" / "nimbus" / "code"
    away = code.with_name("code-away")
    code.rename(away)
    code.write_text("no folder")
    began = time.time()
    wait = {"topology.min.replication.count": 3, "topology.max.replication.wait.time.sec": 2}
    topology_id = cluster.submit(cluster.client(leader), "two-of-three", wait)
    took = time.time() - began
    cluster.expect(took >= 2, f"it was in after {took:.1f} s, with fewer copies than it asked for")
    copies = cluster.names("code", topology_id)
    cluster.expect(follower.name not in copies, "a copy is announced that there is not")
    cluster.injected("another Nimbus' storage fails", f"taken in with {len(copies)} of 3 copies after {took:.1f} s")
    code.unlink()
    away.rename(code)
    wait_for(lambda: len(cluster.names("code", topology_id)) == 3, "the third copy", 60)
    cluster.wait_until_writing("two-of-three")
