"""What is left over in ZooKeeper is found, and removed when that is asked for; what is in use is left alone."""

from __future__ import annotations

import json
from pathlib import Path

from click.testing import CliRunner, Result
from hand_written import wait_until

from storm_on_spark.cli.main import main
from storm_on_spark.cluster.paths import CODE, DRAINS, ERRORS, LOGCONFIGS, NAMES
from storm_on_spark.cluster.records import Drain, LogConfig, NameClaim
from storm_on_spark.cluster.zookeeper import ZooKeeperServer
from storm_on_spark.cluster.zookeeper.changes import Delete
from storm_on_spark.testing.simulated.cluster import SimulatedCluster

GONE = "gone-7-1700000000"


def test_orphans_are_found_and_removed(zookeeper: ZooKeeperServer, root: str, tmp_path: Path) -> None:
    with SimulatedCluster(zookeeper.connect_string, tmp_path, root) as cluster:
        nimbus = cluster.nimbus("n1")
        cluster.supervisor("s1")
        words = cluster.submit("words")
        driver = cluster.runs(words)

        def admin(*given: str) -> Result:
            return CliRunner().invoke(main, ["admin", *given, "--nimbus", nimbus.address, "--json"])

        def listed(*given: str) -> set[tuple[str, str, str]]:
            done = admin(*given)
            assert done.exit_code == 0, done.output
            return {(each["kind"], each["folder"], each["name"]) for each in json.loads(done.stdout)["problems"]}

        assert listed("check") == set()
        cluster.client().set_log_levels("words", {"a": ("INFO", 0)})
        cluster.state.put(LogConfig(topology_id=GONE, levels={}), LOGCONFIGS, GONE)
        cluster.state.put(b"", ERRORS, GONE)
        cluster.state.put(b"", ERRORS, GONE, "count")
        cluster.state.put(NameClaim(topology_id=GONE), NAMES, "gone")
        cluster.state.put(Drain(supervisor_id="away", who="me", time=0.0), DRAINS, "away")
        orphans = {("orphan", LOGCONFIGS, GONE), ("orphan", ERRORS, GONE), ("lost name", NAMES, "gone")}
        assert listed("check") == orphans | {("lost drain", DRAINS, "away")}
        # Without --yes nothing is changed.
        assert listed("repair") == listed("repair", "--dry-run") == orphans
        assert listed("repair", "--yes") == orphans
        assert listed("check") == {("lost drain", DRAINS, "away")}
        cluster.client().drain("away", undo=True)
        assert listed("check") == set()
        assert admin("repair", "--yes", "--dry-run").exit_code == 2
        # What is in use is as it was, and the name is free.
        assert cluster.runs(words) == driver
        assert set(cluster.client().log_levels("words")) == {"a"}
        cluster.submit("gone")

        # A topology whose code's record is gone is named, and left to a person. It goes at once: a Nimbus that has the
        # code would note that again, between its note and the record.
        notes = [Delete((CODE, words, name)) for name in cluster.state.children(CODE, words)]
        assert cluster.state.change(*notes, Delete((CODE, words))) is None
        wait_until(lambda: listed("check") == {("no code", "storms", words)}, "the topology without code")
        assert listed("repair", "--yes") == set()
