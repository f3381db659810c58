"""The leader's rounds for streams and jobs of one name, on a tree in memory; containers are simulated."""

from __future__ import annotations

from typing import Any, cast

import pytest

from storm_on_spark.xd.admin.leader import Leader
from storm_on_spark.xd.admin.picture import Picture
from storm_on_spark.xd.tree import nodes
from storm_on_spark.xd.tree.nodes import ContainerNode, Definition, Deployment, Kind, Order, StatusNode
from tests.unit.xd.memory_tree import MemoryTree


def allocated(tree: MemoryTree) -> set[str]:
    """Returns the modules that containers have, without those of departed ones."""
    there = tree.children(nodes.CONTAINERS)
    return {name for each in there for name in tree.children(f"{nodes.ALLOCATED}/{each}")}


def rounds(tree: MemoryTree, leader: Leader) -> None:
    """Has the leader go on until nothing changes; containers take their modules."""
    while True:
        before = dict(tree.nodes)
        leader.round(cast(Any, None), 1)
        for container in tree.children(nodes.CONTAINERS):
            for name in tree.children(f"{nodes.ALLOCATED}/{container}"):
                path = f"{nodes.ALLOCATED}/{container}/{name}/status"
                if path not in tree.nodes:
                    tree.put(path, StatusNode(state="deployed"))
        if tree.nodes == before:
            return


def state(tree: MemoryTree, kind: Kind) -> str | None:
    found = tree.value(f"{nodes.DEPLOYMENTS[kind]}/same/status", StatusNode)
    return None if found is None else found.state


def test_a_stream_and_a_job_of_one_name_know_nothing_of_each_other() -> None:
    tree = MemoryTree()
    leader = Leader(cast(Any, tree), cast(Any, tree))
    for container in ("c1", "c2"):
        tree.put(f"{nodes.CONTAINERS}/{container}", ContainerNode(host="h", ip="1", pid=1))
        tree.put(f"{nodes.ALLOCATED}/{container}")
    tree.put(f"{nodes.STREAMS}/same", Definition(definition="time | log"))
    tree.put(f"{nodes.JOBS}/same", Definition(definition="timestampfile"))
    number = 0

    def order(action: Any, kind: Kind) -> None:
        nonlocal number
        order = Order(action=action, stream="same", kind=kind)
        tree.put(f"{nodes.REQUESTED}/{nodes.REQUEST}{number:010}", order)
        number += 1
        rounds(tree, leader)

    stream, job = {"same.source.time.1", "same.sink.log.1"}, {"same.job.timestampfile.1"}
    order("deploy", "stream")
    assert (allocated(tree), state(tree, "stream"), state(tree, "job")) == (stream, "deployed", None)
    order("deploy", "job")
    assert (allocated(tree), state(tree, "stream"), state(tree, "job")) == (stream | job, "deployed", "deployed")
    assert set(tree.children(nodes.REQUESTED)) == stream | job
    order("undeploy", "stream")
    assert (allocated(tree), state(tree, "stream"), state(tree, "job")) == (job, None, "deployed")
    order("deploy", "stream")
    for container in ("c1", "c2"):
        del tree.nodes[f"{nodes.CONTAINERS}/{container}"]
        for path in [path for path in tree.nodes if path.startswith(f"{nodes.ALLOCATED}/{container}/")]:
            if path.endswith("/status"):
                del tree.nodes[path]
    rounds(tree, leader)
    assert (state(tree, "stream"), state(tree, "job")) == ("incomplete", "incomplete")
    tree.put(f"{nodes.CONTAINERS}/c3", ContainerNode(host="h", ip="1", pid=1))
    tree.put(f"{nodes.ALLOCATED}/c3")
    rounds(tree, leader)
    assert (allocated(tree), state(tree, "stream"), state(tree, "job")) == (stream | job, "deployed", "deployed")
    order("undeploy", "stream")
    order("undeploy", "job")
    assert allocated(tree) == set()
    assert tree.children(nodes.REQUESTED) == tree.children(nodes.STREAM_DEPLOYMENTS) == []
    assert tree.children(nodes.JOB_DEPLOYMENTS) == []


@pytest.mark.parametrize(
    ("definition", "properties"),
    [("time | log", {"module.time.count": "many"}), ("time |", {}), ("time | log", {"module.time.criteria": "grou("})],
)
def test_a_deployment_that_makes_no_sense_holds_up_no_other(
    definition: str, properties: dict[str, str], caplog: pytest.LogCaptureFixture
) -> None:
    tree = MemoryTree()
    leader = Leader(cast(Any, tree), cast(Any, tree))
    tree.put(f"{nodes.CONTAINERS}/c1", ContainerNode(host="h", ip="1", pid=1))
    tree.put(f"{nodes.ALLOCATED}/c1")
    # As another release, or somebody's hand, may have written it.
    tree.put(f"{nodes.STREAMS}/bad", Definition(definition=definition))
    tree.put(f"{nodes.STREAM_DEPLOYMENTS}/bad", Deployment(generation=1, properties=properties))
    tree.put(f"{nodes.STREAM_DEPLOYMENTS}/bad/modules")
    tree.put(f"{nodes.STREAMS}/same", Definition(definition="time | log"))
    tree.put(f"{nodes.REQUESTED}/{nodes.REQUEST}0000000000", Order(action="deploy", stream="same"))
    rounds(tree, leader)
    assert state(tree, "stream") == "deployed"
    [warning] = [record for record in caplog.records if record.levelname == "WARNING"]
    assert "The deployment of stream bad is left alone" in warning.getMessage()


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("request-0000000000", b"nonsense"),
        ("request-0000000000", b'{"action":"dance","stream":"same"}'),
        ("request-0000000000", b'{"action":"deploy","stream":"a/../b"}'),
        ("request-0000000000", b'{"action":"deploy","stream":""}'),
        ("request-0000000000", b'{"action":"deploy","stream":"other","properties":{"module.time.count":"many"}}'),
        ("request-0000000000", b'{"action":"deploy","stream":"other","properties":{"module.time.count":"20000"}}'),
        ("request-0000000000", b'{"action":"deploy","stream":"broken"}'),
        ("request-mine", b'{"action":"deploy","stream":"same"}'),
        ("request-99999999999999999999", b'{"action":"deploy","stream":"other"}'),
    ],
)
@pytest.mark.parametrize("with_child", [False, True])
def test_an_order_that_makes_no_sense_holds_up_no_other(
    name: str, value: bytes, with_child: bool, caplog: pytest.LogCaptureFixture
) -> None:
    tree = MemoryTree()
    leader = Leader(cast(Any, tree), cast(Any, tree))
    tree.put(f"{nodes.CONTAINERS}/c1", ContainerNode(host="h", ip="1", pid=1))
    tree.put(f"{nodes.ALLOCATED}/c1")
    for stream, text in (("same", "time | log"), ("other", "time | log"), ("broken", "time |")):
        tree.put(f"{nodes.STREAMS}/{stream}", Definition(definition=text))
    tree.put(f"{nodes.REQUESTED}/{name}", value)
    if with_child:
        # It can't be removed, so it is left alone.
        tree.put(f"{nodes.REQUESTED}/{name}/child")
    tree.put(f"{nodes.REQUESTED}/{nodes.REQUEST}0000000001", Order(action="deploy", stream="same"))
    rounds(tree, leader)
    assert state(tree, "stream") == "deployed"
    assert (f"{nodes.REQUESTED}/{name}" in tree.nodes) == with_child
    warnings = [record.getMessage() for record in caplog.records if record.name.endswith("admin.leader")]
    [warning] = [each for each in warnings if "is not carried out" in each]
    assert name in warning


def test_a_deployed_stream_has_all_of_its_modules_before_their_own_nodes_are_there() -> None:
    tree = MemoryTree()
    tree.put(f"{nodes.CONTAINERS}/c1", ContainerNode(host="h", ip="1", pid=1))
    tree.put(f"{nodes.ALLOCATED}/c1")
    tree.put(f"{nodes.STREAMS}/same", Definition(definition="time | log"))
    tree.put(f"{nodes.REQUESTED}/{nodes.REQUEST}{0:010}", Order(action="deploy", stream="same"))
    rounds(tree, Leader(cast(Any, tree), cast(Any, tree)))
    picture = Picture(cast(Any, tree))
    deployed = picture.deployed("stream", "same")
    assert deployed is not None
    view = picture.deployment_view(deployed, picture.containers())
    assert (view.state, view.modules) == ("deployed", ("sink.log.1.c1", "source.time.1.c1"))
