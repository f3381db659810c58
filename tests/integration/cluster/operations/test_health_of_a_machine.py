"""A supervisor on a machine that is not fit loses its topologies, and gets some again when the machine is fit."""

from __future__ import annotations

from pathlib import Path

import pytest
from hand_written import wait_until

from storm_on_spark.cluster.daemons import supervisor as daemon
from storm_on_spark.cluster.zookeeper import ZooKeeperServer
from storm_on_spark.testing.simulated.cluster import SimulatedCluster


def test_topologies_leave_an_unfit_machine(
    zookeeper: ZooKeeperServer, root: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(daemon, "HEALTH_SECS", 0.5)
    checks, ill = tmp_path / "checks", tmp_path / "ill"
    checks.mkdir(mode=0o755)
    script = checks / "disk"
    script.write_text(f"#!/bin/sh\ntest ! -e {ill} || {{ echo ERROR the disk is full; exit 1; }}\n")
    script.chmod(0o755)
    with SimulatedCluster(zookeeper.connect_string, tmp_path, root) as cluster:
        cluster.nimbus("n1")
        old = cluster.supervisor("s1", **{"storm.health.check.dir": str(checks)}).supervisor_id
        topology = cluster.submit("words")
        first = cluster.runs(topology)
        new = cluster.supervisor("s2").supervisor_id
        client = cluster.client()

        def unfit() -> dict[str, str]:
            return {row["id"]: row["unhealthy"] for row in client.supervisors()}

        wait_until(lambda: unfit() == {old: "", new: ""}, "both are fit")
        ill.touch()
        wait_until(lambda: unfit() == {old: "disk: failed (ERROR the disk is full)", new: ""}, "one is not")
        cluster.runs(topology, but=first)
        owner = cluster.owner(topology)
        assert owner is not None
        assert owner.supervisor_id == new

        ill.unlink()
        wait_until(lambda: unfit() == {old: "", new: ""}, "it is fit again")
        # What it said goes with it.
        ill.touch()
        wait_until(lambda: unfit()[old] != "", "it is not")
        cluster.supervisors.pop("s1").stop()
        wait_until(lambda: not cluster.state.children("unhealthy"), "no trace of it")
