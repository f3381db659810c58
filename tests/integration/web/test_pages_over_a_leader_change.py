"""A page of a Nimbus stays open while the leader dies, and follows the new one."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from waiting import eventually

from storm_on_spark.cluster.daemons.nimbus import Nimbus
from storm_on_spark.cluster.zookeeper import ZooKeeperServer
from storm_on_spark.testing.simulated.cluster import SimulatedCluster
from storm_on_spark.web.nimbus import NimbusPages
from storm_on_spark.web.rendering import path


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[SimulatedCluster]:
    with (
        ZooKeeperServer(tick=0.2) as zookeeper,
        SimulatedCluster(zookeeper.connect_string, tmp_path, **{"storm.zookeeper.session.timeout": 2000}) as found,
    ):
        yield found


def test_a_page_goes_on_when_the_leader_dies(cluster: SimulatedCluster, browser: Any, tmp_path: Path) -> None:
    leader = cluster.nimbus_process("n1")
    eventually(lambda: cluster.client(leader).cluster()["nimbuses"][0]["is_leader"], "n1 leads")
    cluster.supervisor("s1")
    words = cluster.submit("words")
    with Nimbus({**cluster.conf, "storm.local.dir": str(tmp_path / "n2")}, port=0, pages=NimbusPages) as follower:
        context = browser.new_context()
        page, first = context.new_page(), context.new_page()
        loads: list[str] = []
        page.on("load", lambda: loads.append(page.url))
        eventually(
            lambda: page.goto(f"http://{follower.address}{path('topology', words)}").status == 200, "it is known"
        )
        first.goto(f"http://{follower.address}/ui/")
        loaded = len(loads)
        leader.kill()
        first.get_by_role("row").filter(has_text=follower.address).filter(has_text="Leader").wait_for()
        cluster.client(follower).deactivate("words")
        page.get_by_text("INACTIVE").first.wait_for()
        assert len(loads) == loaded, "the page is the one that was open"
        assert page.locator("#state").inner_text() == ""
        cluster.client(follower).activate("words")
        page.get_by_role("button", name="Deactivate").wait_for(state="attached")
        context.close()
