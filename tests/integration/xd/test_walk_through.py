"""The document of Spring XD's distributed runtime, walked through: node by node, and container by container."""

from __future__ import annotations

import contextlib
import json
import re
import threading
from pathlib import Path

import pytest
from kazoo.client import KazooClient
from nodes import Shell, listed, zookeeper_cli
from waiting import eventually

from lab.streams.cluster import Cluster, Node, numbers
from storm_on_spark.cluster.zookeeper.server import ZooKeeperServer
from storm_on_spark.runtime.processes.server import free_port

pytestmark = [pytest.mark.integration]


@pytest.mark.representative
def test_a_single_node_shows_its_whole_state_in_zookeeper(tmp_path: Path) -> None:
    port = free_port()
    node = Node(tmp_path, "node", "xd-singlenode", "--open", "--port", "0", "-c", f"zk.embedded.server.port={port}")
    with contextlib.closing(node), contextlib.ExitStack() as stack:
        assert node.line() == f"Zookeeper at: localhost:{port}"
        shell = stack.enter_context(Shell(node.line().split()[1]))
        top = zookeeper_cli(
            f"localhost:{port}",
            *("ls /xd", "ls /xd/streams", "ls /xd/deployments", "ls /xd/deployments/streams"),
            *("ls /xd/deployments/modules", "ls /xd/deployments/modules/allocated", "ls /xd/containers"),
        )
        assert listed(top[0]) == ["admins", "changes", "containers", "deployments", "jobs", "streams", "taps"]
        assert (top[1], top[3]) == ("[]", "[]")
        assert listed(top[2]) == ["jobs", "modules", "streams"]
        assert listed(top[4]) == ["allocated", "requested"]
        assert top[5] == top[6]
        (container,) = listed(top[5])

        assert shell('stream create ticktock --definition "time | log"') == ["Created new stream 'ticktock'"]
        created = zookeeper_cli(f"localhost:{port}", "get -s /xd/streams/ticktock", "ls /xd/deployments/streams")
        assert created[0] == '{"definition":"time | log"}'
        assert "ephemeralOwner = 0x0" in created
        assert "dataLength = 27" in created
        assert created[-1] == "[]"

        assert shell("stream deploy ticktock") == ["Deployed stream 'ticktock'"]
        stream, allocated = "/xd/deployments/streams/ticktock", "/xd/deployments/modules/allocated"
        deployed = zookeeper_cli(
            f"localhost:{port}",
            *("ls /xd/deployments/streams", f"ls {stream}", f"get {stream}/status", f"ls {stream}/modules"),
            *(f"ls {allocated}/{container}", f"ls {allocated}/{container}/ticktock.source.time.1"),
            f"get {allocated}/{container}/ticktock.sink.log.1/metadata",
            "ls /xd/deployments/modules/requested",
        )
        assert deployed[0] == "[ticktock]"
        assert listed(deployed[1]) == ["modules", "status"]
        assert deployed[2] == '{"state":"deployed"}'
        assert listed(deployed[3]) == [f"sink.log.1.{container}", f"source.time.1.{container}"]
        assert listed(deployed[4]) == ["ticktock.sink.log.1", "ticktock.source.time.1"]
        assert listed(deployed[5]) == ["metadata", "status"]
        assert json.loads(deployed[6])["options"] == {"name": "ticktock", "expression": "payload", "level": "INFO"}
        assert listed(deployed[7]) == ["ticktock.sink.log.1", "ticktock.source.time.1"]
        leafs = [f"{stream}/status", f"{allocated}/{container}/ticktock.source.time.1/status"]
        kept = [f"{allocated}/{container}", stream, f"{allocated}/{container}/ticktock.source.time.1"]
        stats = zookeeper_cli(f"localhost:{port}", *(f"stat {path}" for path in [*leafs, *kept]))
        owners = [line for line in stats if line.startswith("ephemeralOwner")]
        assert [owner == "ephemeralOwner = 0x0" for owner in owners] == [False, False, True, True, True]
        eventually(lambda: node.said.count("INFO sink.ticktock - 20") > 2, lambda: node.said)
        options = ["{name=ticktock, expression=payload, level=INFO}", "{fixedDelay=1, format=yyyy-MM-dd HH:mm:ss}"]
        assert shell.rows("runtime modules") == [
            ["ticktock.sink.log.1", container, options[0], "{count=1, sequence=1}"],
            ["ticktock.source.time.1", container, options[1], "{count=1, sequence=1}"],
        ]

        assert shell("stream undeploy ticktock") == ["Un-deployed stream 'ticktock'"]
        gone = zookeeper_cli(
            f"localhost:{port}", "ls /xd/deployments/streams", f"ls {allocated}/{container}",
            "ls /xd/deployments/modules/requested",
        )  # fmt: skip
        assert gone == ["[]", "[]", "[]"]
        assert shell.rows("stream list") == [["ticktock", "time | log", "undeployed"]]
        assert shell("stream destroy ticktock") == ["Destroyed stream 'ticktock'"]
        others = [line for line in node.said.splitlines() if " sink.ticktock - " not in line]
        assert not [line for line in others if " WARNING " not in line], "only streams and warnings are logged"


def test_a_cluster_heals_itself(tmp_path: Path) -> None:
    out = tmp_path / "out"
    with ZooKeeperServer(tmp_path / "zookeeper", tick=0.2) as server, Cluster(tmp_path, server.connect_string) as xd:
        xd.start(admins=2, containers=3)
        with Shell(next(iter(xd.admins))) as shell:
            headings = ["Container Id", "Host", "IP Address", "PID", "Groups", "Custom Attributes"]
            assert re.split(r" {2,}", shell("runtime containers")[0].strip()) == headings
            assert {row[0] for row in shell.rows("runtime containers")} == set(xd.containers)
            made = shell(f'stream create numbers --definition "rate --messagesPerSecond=50 | file --dir={out}"')
            assert made == ["Created new stream 'numbers'"]
            assert shell("stream deploy numbers") == ["Deployed stream 'numbers'"]
            (sink_name, sink, *_), (source_name, source, *_) = shell.rows("runtime modules")
            assert (sink_name, source_name) == ("numbers.sink.file.1", "numbers.source.rate.1")
        assert source != sink
        eventually(lambda: numbers(out), xd.logs)

        # The container with the source dies: another one goes on.
        xd.kill_container(source)
        eventually(lambda: xd.modules().get("numbers.source.rate.1", source) != source, xd.logs)
        before = len(numbers(out))
        eventually(lambda: len(numbers(out)) > before + 10, xd.logs)

        # None is left.
        for container in list(xd.containers):
            xd.kill_container(container)
        warnings = [
            f"No containers available for redeployment of {name} for stream numbers" for name in ("rate", "file")
        ]
        eventually(lambda: all(any(text in node.said for node in xd.admins.values()) for text in warnings), xd.logs)
        eventually(lambda: xd.state("numbers") == "incomplete", xd.logs)

        # One comes, and heals it.
        xd.start(containers=1)
        eventually(lambda: xd.state("numbers") == "deployed", xd.logs)
        before = len(numbers(out))
        eventually(lambda: len(numbers(out)) > before + 10, xd.logs)

        # The leading admin dies in the middle of a deploy: it has not taken up yet what was asked for.
        xd.create("ticktock", "time | log")
        client = KazooClient(server.connect_string)
        client.start()
        leading = json.loads(client.get("/xd/admins")[0])["leader"]
        leader = next(url for url in xd.admins if url.endswith(leading))
        other = next(url for url in xd.admins if url != leader)
        xd.admins[leader].pause()
        requested = "/xd/deployments/modules/requested"
        asking = threading.Thread(
            target=lambda: xd.ask("POST", "/streams/deployments/ticktock", {}, other), name="asking"
        )
        asking.start()
        eventually(lambda: any("request-" in name for name in client.get_children(requested)), xd.logs)
        client.stop()
        client.close()
        xd.admins.pop(leader).kill()
        asking.join()
        eventually(lambda: xd.state("ticktock") == "deployed", xd.logs)

        # All is stopped, and started again.
        for node in [*xd.admins.values(), *xd.containers.values()]:
            node.close()
        xd.admins.clear()
        xd.containers.clear()
        server.stop()
        before = len(numbers(out))
        server.start()
        xd.start(admins=1, containers=1)
        eventually(lambda: {xd.state("numbers"), xd.state("ticktock")} == {"deployed"}, xd.logs)
        eventually(lambda: len(numbers(out)) > before + 10, xd.logs)

        xd.ask("DELETE", "/streams/deployments/numbers")
        found = numbers(out)
        # Each number once, in spite of all that.
        assert found == list(range(len(found)))
