"""A checkpoint stays with the machine that died."""

from __future__ import annotations

import json
import shutil

from lab.failover.cluster import Cluster
from lab.failover.scenarios.drivers import host_of, owner_of
from lab.suite.processes import wait_for

_NAME = "kept"


def checkpoint(cluster: Cluster, times: int) -> None:
    """No topology silently begins from zero: an empty checkpoint, another one, the right one, and none on purpose."""
    cluster.nimbus("a")
    for name in ("s1", "s2"):
        cluster.supervisor(name)
    cluster.leader()
    wait_for(lambda: len(cluster.names("supervisors")) == 2, "the supervisors are up")
    client = cluster.client()
    topology_id = cluster.submit(client, _NAME, {"topology.min.replication.count": 1})
    cluster.wait_until_writing(_NAME)
    state = wait_for(lambda: cluster.node("checkpoints", topology_id), "ZooKeeper knows that there is state")
    assert state is not None
    here, away = cluster.checkpoint(_NAME), cluster.folder / "disk-of-the-dead"

    def refusal(part: str) -> str:
        def found() -> str | None:
            told = [error["error"] for errors in client.errors(topology_id).values() for error in errors]
            return next((text for text in reversed(told) if part in text), None)

        sentence = wait_for(found, f"a refusal that says: {part}")
        assert sentence is not None
        wait_for(lambda: client.topology(topology_id)["driverStatus"] == "FAILED", "its status says so")
        cluster.expect("--from-scratch" in sentence, f"no way out in: {sentence}")
        return sentence

    victim, pid = host_of(cluster, topology_id), owner_of(cluster, topology_id)
    cluster.kill_host(victim)
    here.rename(away)
    sentence = refusal(f"there is nothing at {here}")
    cluster.expect(host_of(cluster, topology_id) is not victim, "it was not assigned to another host")
    cluster.expect(not here.exists(), "something was written where nothing was")
    cluster.injected("loss of a host with the checkpoint on its disk", f"driver {pid}; then: {sentence}")

    shutil.copytree(away, here)
    manifest = here / "storm" / "manifest.json"
    manifest.write_text(json.dumps({**json.loads(manifest.read_text()), "storm_id": f"{_NAME}-ffffffffffff"}))
    before = (here / "writes").read_bytes()
    sentence = refusal(f"{here} holds another checkpoint, {_NAME}-ffffffffffff")
    cluster.expect((here / "writes").read_bytes() == before, "a driver worked on a checkpoint that is another's")
    cluster.injected("another checkpoint in its place", sentence)

    shutil.rmtree(here)
    away.rename(here)
    again = cluster.wait_until_writing(_NAME, but=pid)
    cluster.expect(cluster.node("checkpoints", topology_id) == state, "it is another state now")
    cluster.injected("the checkpoint comes back", f"driver {again} continues from it by itself")

    cluster.kill_host(host_of(cluster, topology_id))
    here.rename(away)
    cluster.again(victim)
    refusal(f"there is nothing at {here}")
    client.rebalance(_NAME, 0, from_scratch=True)
    fresh = cluster.wait_until_writing(_NAME)

    def of_new_state() -> str | None:
        identity = (cluster.node("checkpoints", topology_id) or {}).get("identity")
        return None if identity == state["identity"] else identity

    known = wait_for(of_new_state, "ZooKeeper knows of its new state")
    cluster.injected("loss of the checkpoint, given up by --from-scratch", f"driver {fresh} began {known}")
    cluster.kill_topology(client, topology_id)
    cluster.expect(not cluster.names("checkpoints"), "what it had is still noted")
    shutil.rmtree(away)
