"""An admin whose copy of the tree lags behind refuses nothing that ZooKeeper allows."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from storm_on_spark.cluster.errors import TransitionError, UnavailableError
from storm_on_spark.cluster.zookeeper import ZooKeeperServer, ZooKeeperSettings
from storm_on_spark.cluster.zookeeper.tree import Tree
from storm_on_spark.xd.admin import runtime
from storm_on_spark.xd.admin.jobs.runtime import ClusterJobRuntime
from storm_on_spark.xd.modules.local_registry import LocalRegistry
from storm_on_spark.xd.tree import nodes
from storm_on_spark.xd.tree.jobs import ExecutionNode, execution_path
from storm_on_spark.xd.tree.mirror import Mirror
from storm_on_spark.xd.tree.session import xd_session

pytestmark = [pytest.mark.integration]

RUNS = ExecutionNode(job="load", definition="filejdbc", status="STARTED", created=1.0)
FAILED = ExecutionNode(job="load", definition="filejdbc", status="FAILED", created=1.0, ended=2.0)
DEPLOYED = nodes.Deployment(generation=1)


@pytest.fixture
def tree() -> Iterator[Tree]:
    with (
        ZooKeeperServer() as server,
        xd_session(ZooKeeperSettings(hosts=server.connect_string, root="/xd")) as session,
    ):
        for folder in (nodes.JOBS, nodes.JOB_DEPLOYMENTS, nodes.EXECUTIONS, nodes.REQUESTED):
            session.client.ensure_path(folder)
        yield Tree(session)


def test_what_another_admin_has_ended_can_be_restarted(tree: Tree, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runtime, "_TAKEN_SECS", 0.2)
    tree.put(nodes.Definition(definition="filejdbc"), f"{nodes.JOBS}/load")
    tree.put(RUNS, execution_path(5))
    changed, follows = threading.Event(), threading.Event()
    follows.set()

    def on_change() -> None:
        changed.set()
        follows.wait()

    with Mirror(tree, on_change=on_change) as mirror:
        # From the next change on the copy stays as it is.
        changed.clear()
        follows.clear()
        tree.put(nodes.Definition(definition="noop"), f"{nodes.JOBS}/other")
        assert changed.wait(10)
        try:
            refused_by(ClusterJobRuntime(tree, mirror, threading.Condition(), LocalRegistry()), tree)
        finally:
            follows.set()


def refused_by(jobs: ClusterJobRuntime, tree: Tree) -> None:
    """Checks what is refused while executions and deployments change behind the copy."""
    with pytest.raises(TransitionError, match="it is STARTED"):
        jobs.restart(5)
    tree.put(FAILED, execution_path(5))
    with pytest.raises(TransitionError, match="not currently deployed"):
        jobs.restart(5)
    tree.put(DEPLOYED, f"{nodes.JOB_DEPLOYMENTS}/load")
    # There is no leader: what has been asked of one was not refused.
    for act in (lambda: jobs.restart(5), lambda: jobs.undeploy("load")):
        with pytest.raises(UnavailableError, match="No leader has taken up"):
            act()
    assert jobs.execution(5).status == "STARTED"
    with pytest.raises(TransitionError, match="has ended already: FAILED"):
        jobs.stop(5)
