"""Streams joined by channels, and taps, in containers that are killed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from kazoo.client import KazooClient
from waiting import eventually

from lab.streams.cluster import Cluster, numbers
from storm_on_spark.cluster.zookeeper.server import ZooKeeperServer

pytestmark = [pytest.mark.integration]

MESSAGES = 600


def test_channels_and_taps_outlive_redeployments_and_kills(tmp_path: Path) -> None:
    def out(name: str) -> Path:
        return tmp_path / "out" / name

    streams = {
        "source": f"rate --messagesPerSecond=150 --maxMessages={2 * MESSAGES} "
        "| odd:filter --expression='payload.length() > 0' > queue:numbers",
        # Readers of a topic, and taps, see what comes from now on: they are deployed before it.
        "everyone": f"topic:all > file --dir={out('everyone')}",
        "again": f"topic:all > file --dir={out('again')}",
        "first": f"queue:work > file --dir={out('first')}",
        "second": f"queue:work > file --dir={out('second')}",
        "both": "queue:numbers > topic:all",
        "tap": f":source.odd > file --dir={out('tap')}",
        "spy": f"tap:queue:numbers > file --dir={out('spy')}",
        "worker": "topic:all > queue:work",
    }
    expected = list(range(2 * MESSAGES))
    with ZooKeeperServer(tmp_path / "zookeeper", tick=0.2) as server, Cluster(tmp_path, server.connect_string) as xd:
        xd.start(admins=1, containers=2)
        for name, definition in streams.items():
            xd.create(name, definition)
            if name != "source":
                xd.deploy(name)
        client = KazooClient(server.connect_string)
        client.start()
        assert sorted(client.get_children("/xd/taps")) == ["spy", "tap"]
        data, stat = client.get("/xd/taps/tap")
        assert json.loads(data) == {"definition": streams["tap"]}
        assert stat.ephemeralOwner == 0
        xd.deploy("source")
        eventually(lambda: len(numbers(out("first"))) > 20 and numbers(out("second")) and numbers(out("tap")), xd.logs)

        # Both sides of a channel, and what is tapped, are deployed again.
        for name in ("both", "source", "tap"):
            xd.ask("DELETE", f"/streams/deployments/{name}")
            assert sorted(client.get_children("/xd/taps")) == (["spy"] if name == "tap" else ["spy", "tap"])
            xd.deploy(name)

        # The container of the tap dies.
        container = xd.modules()["tap.sink.file.1"]
        xd.kill_container(container)
        xd.start(containers=1)
        eventually(lambda: xd.modules().get("tap.sink.file.1", container) != container, xd.logs)

        # A reader of a queue dies, and does not come back: the other one has the rest.
        xd.kill_container(eventually(lambda: xd.modules().get("second.sink.file.1"), xd.logs))
        xd.ask("DELETE", "/streams/deployments/second")

        shared = ["first", "second"]
        eventually(lambda: sum(len(numbers(out(name))) for name in shared) >= len(expected), xd.logs)
        for name in ("everyone", "again", "spy"):
            eventually(lambda: len(numbers(out(name))) >= len(expected), xd.logs)  # noqa: B023 # called at once
            assert numbers(out(name)) == expected, name
        eventually(lambda: len(numbers(out("tap"))) >= len(expected), xd.logs)
        assert numbers(out("tap")) == expected
        # What the dead reader had written without committing it is taken back when it starts again.
        xd.deploy("second")
        eventually(lambda: sorted([*numbers(out("first")), *numbers(out("second"))]) == expected, xd.logs)
        client.stop()
        client.close()
