"""Somebody writes to ZooKeeper who doesn't know the cluster's secret: nothing of his runs, no token comes to him."""

from __future__ import annotations

import contextlib
import logging
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from guarded import Attacker, Guarded, write_secret
from hand_written import wait_until

from storm_on_spark.cluster.daemons.nimbus import Nimbus
from storm_on_spark.cluster.errors import AuthenticationError, ClusterError, RecordError
from storm_on_spark.cluster.paths import ASSIGNMENTS
from storm_on_spark.cluster.zookeeper import ZooKeeperServer

TOKEN, NEW = "0123456789abcdef-TOKEN-of-old", "0123456789abcdef-TOKEN-of-new"

Make = Callable[..., Guarded]


@pytest.fixture
def make(zookeeper: ZooKeeperServer, root: str, tmp_path: Path) -> Iterator[Make]:
    made: list[Guarded] = []

    def begin(**conf: Any) -> Guarded:
        made.append(Guarded(zookeeper.connect_string, tmp_path, root, **conf))
        return made[0]

    yield begin
    for cluster in made:
        cluster.close()


@pytest.fixture
def token(tmp_path: Path) -> Path:
    return write_secret(tmp_path / "token", TOKEN)


@pytest.fixture
def attack() -> Iterator[Callable[[Guarded], Attacker]]:
    attackers: list[Attacker] = []

    def begin(cluster: Guarded) -> Attacker:
        attackers.append(Attacker(cluster))
        return attackers[-1]

    yield begin
    for attacker in attackers:
        attacker.close()


def test_without_a_secret_it_is_a_way_in(make: Make, attack: Callable[[Guarded], Attacker]) -> None:
    """What the others here protect from does happen."""
    cluster = make()
    cluster.nimbus("n1")
    supervisor = cluster.supervisor("s1")
    attacker = attack(cluster)
    attacker.register()
    attacker.topology("evil-1-1", supervisor.supervisor_id, 6700)
    assert cluster.runs("evil-1-1")
    assert any("code.zip" in text for text in attacker.heard)


def test_nothing_of_an_attackers_runs_and_no_token_reaches_him(
    make: Make, attack: Callable[[Guarded], Attacker], token: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    cluster = make(**{"nimbus.auth.token.file": str(token), "topology.min.replication.count": 2})
    cluster.nimbus("n1")
    cluster.nimbus("n2")
    supervisor = cluster.supervisor("s1")
    healthy = cluster.submit("words")
    pid = cluster.runs(healthy)

    attacker = attack(cluster)
    attacker.register()
    attacker.offer(healthy)
    # A topology of his, for a free slot.
    attacker.topology("evil-1-1", supervisor.supervisor_id, 6701)
    # A signed one, under another name and in another slot.
    for folder in ("code", "storms", "assignments"):
        attacker.write(attacker.read(folder, healthy), folder, "copied-2-2")
    # The healthy one's assignment: not signed, of another path, signed and changed, nothing at all.
    signed = attacker.read("assignments", healthy)
    wrong = [
        attacker.read("assignments", "evil-1-1"),
        attacker.read("assignments", "copied-2-2").replace(b'"port":6700', b'"port":6701'),
        b"",
        attacker.read("storms", healthy),
    ]
    for data in wrong:
        attacker.write(data, "assignments", healthy)
        # Every daemon reads each of them, and takes none for an assignment that is gone.
        assert all(healthy in snapshot.unread(ASSIGNMENTS) for snapshot in cluster.read())
        assert cluster.runs(healthy) == pid
    attacker.write(signed, "assignments", healthy)
    # What it follows now is its cluster, and it never ended.
    cluster.responds(healthy)
    assert cluster.runs(healthy) == pid

    # Another supervisor fetches the code, and has the attacker's address beside those of Nimbuses.
    second = cluster.supervisor("s2", (6710, 6711))
    with cluster.client() as client:
        wait_until(lambda: client.cluster()["supervisors"] == 2, "both are there")
        client.rebalance("words", 0)
        cluster.runs(healthy, but=pid)
        cluster.supervisors.pop("s1").stop(drivers=True)
        wait_until(lambda: len(second.drivers()) == 1, "the other supervisor has it", 40)
        cluster.responds(healthy)
        # His server as the one that has the logs, and as the one that leads.
        attacker.show_logs(second.supervisor_id, second.ports)
        link = client.topology(healthy)["logLink"]
        assert attacker.address not in link
        attacker.write(b'{"format":1,"address":"%s","epoch":9,"since":1.0}' % attacker.address.encode(), "leader-info")
        for call in (client.cluster, client.topologies, lambda: client.deactivate("words")):
            # Everybody who can write there can stop things; that is not what this is about.
            with contextlib.suppress(ClusterError):
                call()
        with pytest.raises(RecordError, match="this StormBase is not signed with the cluster's secret"):
            client.topology("evil-1-1")
    assert cluster.owner("evil-1-1") is None
    assert cluster.owner("copied-2-2") is None
    assert attacker.heard == [], "nobody even asked"
    for what in ("storms/evil-1-1: this StormBase is not signed", "nimbuses/127.0.0.1"):
        assert what in caplog.text
    assert "signature of this Assignment is wrong" in caplog.text
    assert TOKEN not in caplog.text


def test_old_records_written_again_start_nothing(
    make: Make, attack: Callable[[Guarded], Attacker], token: Path
) -> None:
    cluster = make(**{"nimbus.auth.token.file": str(token)})
    cluster.nimbus("n1")
    cluster.supervisor("s1")
    topology_id = cluster.submit("words")
    attacker = attack(cluster)
    kept = {folder: attacker.read(folder, topology_id) for folder in ("code", "storms", "assignments")}
    pid = cluster.runs(topology_id)
    with cluster.client() as client:
        client.rebalance("words", 0)
        second = cluster.runs_as_wanted(topology_id)
        assert second != pid
        attacker.write(kept["assignments"], "assignments", topology_id)
        attacker.write(kept["storms"], "storms", topology_id)
        wait_until(lambda: not client.topologies(), "the old one says nothing")
        assert cluster.runs(topology_id) == second
        for folder in ("assignments", "storms"):
            attacker.remove(folder, topology_id)
        wait_until(lambda: cluster.owner(topology_id) is None, "it is gone, as anybody can remove nodes")
        wait_until(lambda: not cluster.state.children("code", topology_id), "all of it")
        # Between the two removals the leader may have assigned it once more.
        wait_until(lambda: cluster.has_seen_the_end_of(topology_id), "every process has seen that")
        for folder, data in kept.items():
            attacker.write(data, folder, topology_id)
        # It was, and is no more: what stands there now is ignored by every process that has seen that.
        deadline = time.monotonic() + 4
        while time.monotonic() < deadline:
            assert cluster.owner(topology_id) is None
            time.sleep(0.1)


def test_a_cluster_moves_to_a_new_secret_without_a_stop(make: Make, token: Path) -> None:
    cluster = make(**{"nimbus.auth.token.file": str(token)})
    cluster.nimbus("n1")
    cluster.nimbus("n2")
    supervisor = cluster.supervisor("s1")
    topology_id = cluster.submit("words")
    pid = cluster.runs(topology_id)
    old_client = write_secret(token.with_name("old"), TOKEN)
    new_client = write_secret(token.with_name("new"), NEW)

    def is_asked(file: Path) -> bool:
        with cluster.client(**{"nimbus.auth.token.file": str(file), "storm.nimbus.retry.times": 0}) as client:
            try:
                return len(client.topologies()) == 1
            except AuthenticationError:
                return False

    def keys() -> set[str]:
        folders = ("storms", "assignments", "code", "nimbuses", "supervisors")
        found = {data for folder in folders for name in cluster.state.children(folder) if (data := raw(folder, name))}
        found.add(raw("leader-info"))
        return {text.partition('"key":"')[2][:8] for text in found}

    def raw(*parts: str) -> str:
        found = cluster.state.get_bytes(*parts)
        return "" if found is None else found[0].decode()

    (before,) = keys()
    write_secret(token, TOKEN, NEW)
    wait_until(lambda: is_asked(old_client) and is_asked(new_client), "both are known")
    write_secret(token, NEW, TOKEN)
    wait_until(lambda: before not in keys(), "all is signed with the new one", 40)
    assert len(keys()) == 1
    write_secret(token, NEW)
    wait_until(lambda: is_asked(new_client) and not is_asked(old_client), "the old one is known no more")
    cluster.responds(topology_id)
    assert cluster.runs(topology_id) == pid
    assert supervisor.drivers() == {6700: pid}


def test_open_doors_are_told_of_once_a_start(make: Make, token: Path, caplog: pytest.LogCaptureFixture) -> None:
    said = "Everybody who can write to ZooKeeper"
    cluster = make()
    cluster.nimbus("n1")
    assert caplog.text.count(said) == 1
    cluster.supervisor("s1")
    assert caplog.text.count(said) == 2
    caplog.clear()
    shut: list[dict[str, Any]] = [
        {"nimbus.auth.token.file": str(token)},
        {"storm.zookeeper.auth.scheme": "digest", "storm.zookeeper.auth.payload": "storm:hush"},
    ]
    for number, conf in enumerate(shut):
        # Another root: nodes keep the access list that they were made with.
        other = {**cluster.conf, **conf, "storm.zookeeper.root": f"{cluster.conf['storm.zookeeper.root']}-{number}"}
        with Nimbus({**other, "storm.local.dir": str(cluster.folder / f"shut-{number}")}, port=0):
            pass
    assert said not in caplog.text
    assert "hush" not in caplog.text
