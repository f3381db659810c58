"""Records below `/xd` in a real ZooKeeper: what is not signed with the cluster's secret does not count."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator

import pytest

from storm_on_spark.cluster.errors import FormatError
from storm_on_spark.cluster.records import encode
from storm_on_spark.cluster.security.keyring import Keyring
from storm_on_spark.cluster.security.tokens import Tokens
from storm_on_spark.cluster.state import Fence
from storm_on_spark.cluster.zookeeper import ZooKeeperServer, ZooKeeperSession, ZooKeeperSettings
from storm_on_spark.cluster.zookeeper.tree import Tree
from storm_on_spark.xd.admin.definitions import ZooKeeperDefinitions
from storm_on_spark.xd.admin.leader import Leader
from storm_on_spark.xd.modules.local_registry import ModuleRegistryError
from storm_on_spark.xd.tree import jobs, nodes
from storm_on_spark.xd.tree.mirror import Mirror
from storm_on_spark.xd.tree.modules import ClusterRegistry
from storm_on_spark.xd.tree.session import tree_id, xd_session

RECORDS: dict[str, nodes.Node] = {
    f"{nodes.STREAMS}/a": nodes.Definition(definition="time | log"),
    f"{nodes.JOBS}/a": nodes.Definition(definition="filejdbc --tableName=a"),
    f"{nodes.CONTAINERS}/a": nodes.ContainerNode(host="h", ip="127.0.0.1", pid=1),
    f"{nodes.TAPS}/a": nodes.TapNode(definition="tap:stream:b > log"),
    f"{nodes.STREAM_DEPLOYMENTS}/a": nodes.Deployment(generation=1),
    f"{nodes.JOB_DEPLOYMENTS}/a": nodes.Deployment(generation=1),
    f"{nodes.REQUESTED}/request-0000000001": nodes.Order(action="deploy", stream="a"),
    f"{nodes.REQUESTED}/a.source.time.1": nodes.ModuleNode(count=1, sequence=1, instances=1, generation=1),
    f"{nodes.ALLOCATED}/a": nodes.ModuleNode(count=1, sequence=1, instances=1, generation=1),
    f"{nodes.ALLOCATED}/b": jobs.RunNode(),
    f"{nodes.ALLOCATED}/c": jobs.ReportNode(status="COMPLETED", started=1.0),
    f"{nodes.ALLOCATED}/d": nodes.StatusNode(state="deployed"),
    f"{nodes.ALLOCATED}/e": nodes.Metadata(options={}, properties={}),
    f"{nodes.ROOT}/executions": jobs.ExecutionNode(job="a", definition="b", status="STARTING", created=1.0),
}


@pytest.fixture(scope="module")
def server() -> Iterator[ZooKeeperServer]:
    with ZooKeeperServer() as server:
        yield server


def _session(server: ZooKeeperServer, token: str) -> ZooKeeperSession:
    settings = ZooKeeperSettings(hosts=server.connect_string, root=nodes.ROOT)
    return xd_session(settings, Keyring(Tokens((token,))))


@pytest.fixture
def session(server: ZooKeeperServer) -> Iterator[ZooKeeperSession]:
    with _session(server, "0123456789abcdef") as session:
        session.ensure_folders()
        yield session
        session.client.delete(nodes.ROOT, recursive=True)


@pytest.mark.parametrize("path", RECORDS)
def test_a_record_counts_only_with_the_signature_for_its_path_and_kind(session: ZooKeeperSession, path: str) -> None:
    node, other = RECORDS[path], Keyring(Tokens(("fedcba9876543210",)))
    kind, tree = type(node), Tree(session)
    right = session.keyring.encode(node, path)
    assert tree.believed(kind, right, path) == node
    wrong = {
        "unsigned": encode(node),
        "of another secret": other.seal(kind.__name__, encode(node), path),
        "moved": session.keyring.encode(node, f"{path}x"),
        "another kind": session.keyring.seal("Other", encode(node), path),
        "changed": right.replace(b'"record":{', b'"record":{"more":1,'),
    }
    assert {name: tree.believed(kind, data, path) for name, data in wrong.items()} == dict.fromkeys(wrong)


def test_an_older_record_does_not_come_back(session: ZooKeeperSession) -> None:
    definitions, path = ZooKeeperDefinitions(Tree(session)), f"{nodes.STREAMS}/a"
    definitions.create("a", "time | log")
    old = session.client.get(path)[0]
    definitions.remove("a")
    definitions.create("a", "http | log")
    assert definitions.get("a") == "http | log"
    session.client.set(path, old)
    with pytest.raises(FormatError, match="no definition of stream 'a'"):
        definitions.get("a")


def test_a_refused_record_is_logged_once_with_its_path(
    session: ZooKeeperSession, caplog: pytest.LogCaptureFixture
) -> None:
    session.client.create(f"{nodes.STREAMS}/evil", b'{"definition":"time | log"}')
    definitions = ZooKeeperDefinitions(Tree(session))
    with caplog.at_level(logging.WARNING):
        assert definitions.all() == definitions.all() == {}
    said = [each.getMessage() for each in caplog.records if "is not signed" in each.getMessage()]
    assert len(said) == 1
    assert said[0].startswith(f"{nodes.STREAMS}/evil: this Definition is not signed with the cluster's secret")


def test_an_unsigned_module_is_not_found(session: ZooKeeperSession) -> None:
    session.client.create(f"{nodes.MODULES}/sink.evil", b"{}", makepath=True)
    with pytest.raises(ModuleRegistryError, match="is not signed"):
        ClusterRegistry(Tree(session)).sha256("sink", "evil")


def test_a_request_is_carried_out_once_and_only_if_it_is_signed(session: ZooKeeperSession) -> None:
    ZooKeeperDefinitions(Tree(session)).create("a", "time | log")
    session.client.create("/xd/lock", b"")
    fence = Fence(1, "/xd/lock", session.client.get(nodes.ADMINS)[1].version)
    changed, path = threading.Event(), f"{nodes.REQUESTED}/request-0000000000"
    deployment = f"{nodes.STREAM_DEPLOYMENTS}/a"
    order = nodes.Order(action="deploy", stream="a")
    with Mirror(Tree(session), on_change=changed.set) as mirror:
        leader = Leader(mirror, Tree(session))

        def until_taken() -> None:
            for _ in range(100):
                changed.clear()
                leader.round(fence, session.session_id)
                if not mirror.children(nodes.REQUESTED) or session.client.exists(path) is None:
                    break
                changed.wait(0.3)
            assert session.client.exists(path) is None
            while mirror.stat(path) is not None:
                changed.wait(0.1)

        def write(value: bytes) -> None:
            session.client.create(path, value)
            while mirror.stat(path) is None:
                changed.wait(0.1)
            until_taken()

        write(encode(order))
        assert session.client.exists(deployment) is None
        signed = session.keyring.encode(order, path, (1, 1))
        write(signed)
        assert session.client.exists(deployment) is not None
        for name in ("modules", "status"):
            if session.client.exists(f"{deployment}/{name}"):
                session.client.delete(f"{deployment}/{name}")
        session.client.delete(deployment)
        while mirror.stat(deployment) is not None:
            changed.wait(0.1)
        write(signed)
        assert session.client.exists(deployment) is None


def test_an_installation_is_known_by_its_tree(session: ZooKeeperSession) -> None:
    tree = Tree(session)
    first, made = tree_id(tree), session.client.exists(nodes.ROOT)
    assert first == f"{made.ctime:x}-{made.czxid:x}"
    session.client.delete(nodes.ROOT, recursive=True)
    assert tree_id(tree) == ""
    session.ensure_folders()
    assert tree_id(tree) not in ("", first)
