"""A supervisor is drained: its topologies go elsewhere, and it gets none, whoever starts again meanwhile."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner
from hand_written import wait_until

from storm_on_spark.api.errors import NotAliveError
from storm_on_spark.cli.main import main
from storm_on_spark.cluster.zookeeper import ZooKeeperServer
from storm_on_spark.testing.simulated.cluster import SimulatedCluster


def test_topologies_move_and_none_comes_back(
    zookeeper: ZooKeeperServer, root: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with SimulatedCluster(zookeeper.connect_string, tmp_path, root) as cluster:
        nimbus = cluster.nimbus("n1")
        old = cluster.supervisor("s1", ports=(6700, 6701)).supervisor_id
        words, more = cluster.submit("words"), cluster.submit("more")
        first = cluster.runs(words), cluster.runs(more)
        client = cluster.client()
        ask = ["drain", old, "--nimbus", nimbus.address, "--json"]

        tried = CliRunner().invoke(main, [*ask, "--dry-run"])
        assert tried.exit_code == 0, tried.output
        assert {move["to_supervisor"] for move in json.loads(tried.stdout)["moves"]} == {""}, "there is no other"
        assert not client.supervisors()[0]["blacklisted"]

        # Without another slot they stay; with one, one of them goes.
        assert CliRunner().invoke(main, ask).exit_code == 0
        wait_until(lambda: client.supervisors()[0]["blacklisted"], "the drain is shown")
        new = cluster.supervisor("s2", ports=(6800,)).supervisor_id
        moved = lambda: {o.supervisor_id for t in (words, more) if (o := cluster.owner(t)) is not None}  # noqa: E731
        wait_until(lambda: moved() == {old, new}, "one has moved")

        # A Nimbus and the supervisor start again: it is still drained.
        nimbus = cluster.nimbus("n1")
        client = cluster.client()
        cluster.supervisor("s1", ports=(6700, 6701))
        cluster.supervisor("s2", ports=(6800, 6801))
        wait_until(lambda: moved() == {new}, "both have moved")
        assert cluster.runs(words, but=first[0]) != first[0]
        assert cluster.runs(more, but=first[1]) != first[1]
        third = cluster.client().submit(cluster.packed("third"), "third")
        wait_until(lambda: f"{third} waits for a slot: all 2 slots of 1 supervisors" in caplog.text, "it waits")
        assert cluster.owner(third) is None

        client.drain("127.0.0.1" if len(client.supervisors()) == 1 else old, undo=True)
        cluster.runs(third)
        owner = cluster.owner(third)
        assert owner is not None
        assert owner.supervisor_id == old
        assert [
            change.what.split(" supervisor")[0] for change in cluster.state.changes() if not change.topology_id
        ] == [
            "end the drain of",
            "drain",
        ]
        with pytest.raises(NotAliveError, match="there are"):
            client.drain("nobody")
        assert CliRunner().invoke(main, ["drain", "nobody", "--nimbus", nimbus.address]).exit_code == 1
