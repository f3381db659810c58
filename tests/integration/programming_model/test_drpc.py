"""DRPC through Spark, with a real server."""

from __future__ import annotations

import json
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest
from waiting import eventually

from lab.benchmarks.studies import drpc_clients
from storm_on_spark import LocalCluster, LocalDRPC
from storm_on_spark.cluster.drpc.server import DRPCServer, Ports
from storm_on_spark.cluster.security.proofs import TokenAuth
from storm_on_spark.cluster.security.tokens import Tokens
from storm_on_spark.drpc.connection import DRPCConnection
from storm_on_spark.testing import crashes

sys.path.insert(0, str(Path(__file__).parents[3] / "jobs" / "storm_starter"))


@pytest.mark.representative
def test_reach_is_answered_in_real_time(local_cluster: LocalCluster) -> None:
    import reach_topology

    expected = {
        page: len({follower for tweeter in tweeters for follower in reach_topology.FOLLOWERS.get(tweeter, ())})
        for page, tweeters in {**reach_topology.TWEETERS, "notaurl.com": []}.items()
    }
    with LocalDRPC() as drpc, ThreadPoolExecutor(4) as callers:
        local_cluster.submit_topology("reach", {}, reach_topology.builder().create_local_topology(drpc))
        found = list(callers.map(lambda page: drpc.execute("reach", page), list(expected) * 5))
        auth = TokenAuth(Tokens.from_file(drpc.invocations.token_file))
        assert httpx.get(f"{drpc.url}/drpc/reach/foo.com/blog/1", auth=auth, timeout=30).text == "16"
        local_cluster.kill_topology("reach", 0)
    assert found == [str(count) for count in expected.values()] * 5


def test_a_topology_serves_several_servers_of_its_configuration_and_their_next_ones(
    local_cluster: LocalCluster, tmp_path: Path
) -> None:
    import basic_drpc

    token = tmp_path / "token"
    token.write_text("0123456789abcdef0123456789abcdef")
    token.chmod(0o600)
    conf = {"nimbus.auth.token.file": str(token)}
    # Two hosts, of which one can't be reached; the port is that of the first server for good.
    with DRPCServer(conf, Ports(0, 0, 0)) as server:
        port = server.invocations.port
        everywhere = {**conf, "drpc.servers": ["127.0.0.9", "127.0.0.1"], "drpc.invocations.port": port}
        local_cluster.submit_topology("basic", everywhere, basic_drpc.build(everywhere))
        assert server.execute("exclamation", "first") == "first!"
    with DRPCServer(conf, Ports(0, port, 0)) as server:
        assert server.execute("exclamation", "second") == "second!"
    local_cluster.kill_topology("basic", 0)


def test_a_state_of_trident_is_asked_while_it_counts(local_cluster: LocalCluster) -> None:
    import rows
    import trident_word_count

    sentences = [rows.sentence(number)[0] for number in range(rows.DEFAULTS[rows.COUNT])]
    the = sum(sentence.split().count("the") for sentence in sentences)
    with LocalDRPC() as drpc:
        local_cluster.submit_topology("counts", trident_word_count.conf, trident_word_count.topology({}, drpc))
        eventually(lambda: json.loads(drpc.execute("words", "the")) == [[the]])
        assert json.loads(drpc.execute("words", "no such words")) == [[0]]
        local_cluster.kill_topology("counts", 0)


@pytest.mark.slow
def test_64_clients_are_answered_once_each_while_processes_die_and_other_clients_leave_or_wait_in_vain(
    local_cluster: LocalCluster, tmp_path: Path
) -> None:
    dies_at, count = [400], 800

    def others() -> None:
        waiting = DRPCConnection(drpc.calls, "DistributedRPC")
        waiting.ask("execute", "nobody", "x")
        for _ in range(20):
            leaving = DRPCConnection(drpc.calls, "DistributedRPC")
            leaving.ask("execute", drpc_clients.FUNCTION, "left")
            leaving.close()
        waited.append(waiting)

    waited: list[DRPCConnection] = []
    with LocalDRPC({"drpc.request.timeout.secs": 100}) as drpc:
        local_cluster.submit_topology("clients", {}, drpc_clients.build(drpc, tmp_path, dies_at))
        found = drpc_clients.asked_elsewhere(drpc.calls, 64, range(count), others)
        assert (found.answered, found.wrong, found.errors) == (count, [], {})
        counted, times = map(int, drpc.execute(drpc_clients.FUNCTION, drpc_clients.TOTAL).split())
        assert (counted - count in (0, 1), times - count in range(21)) == (True, True), (counted, times)
        assert [crashes(tmp_path / f"crash-{number}") for number in dies_at] == [1]
        assert waited[0].answer("execute") is None
        waited[0].close()
        local_cluster.kill_topology("clients", 0)
