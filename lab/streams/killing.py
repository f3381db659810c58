"""Whether a message is lost or doubled while containers and leading admins are killed."""

from __future__ import annotations

import itertools
import json
import time
from pathlib import Path
from typing import Any

from kazoo.client import KazooClient

from lab.streams.buses import bus
from lab.streams.cluster import Cluster, eventually, numbers
from storm_on_spark.cluster.zookeeper.server import ZooKeeperServer

_RATE = 1_500


def kill(home: Path, messages: int, containers: int, every: float, transport: str = "local") -> dict[str, Any]:
    """Runs `rate | filter | file` and kills a container, then the leading admin, in turn; another takes its place.

    Returns:
        Seconds; kills of containers that ran a module, and of leading admins; messages that are missing and doubled.
    """
    out = home / "out"
    text = (
        f"rate --messagesPerSecond={_RATE} --maxMessages={messages} | filter --expression='payload.length() > 0' "
        f"| file --dir={out}"
    )
    killed = {"containers": 0, "leading_admins": 0}
    with (
        ZooKeeperServer(home / "zookeeper", tick=0.2) as server,
        bus(transport, home) as conf,
        Cluster(home, server.connect_string, conf=conf) as xd,
    ):
        xd.start(admins=2, containers=containers)
        xd.create("numbers", text)
        xd.deploy("numbers")
        client = KazooClient(server.connect_string)
        client.start()
        began = time.monotonic()
        for turn in itertools.count():
            # Counting reads all files, so it is done once a turn.
            time.sleep(every)
            if len(numbers(out)) >= messages:
                break
            if turn % 3 == 2:
                leading = json.loads(client.get("/xd/admins")[0])["leader"]
                url = next(url for url in xd.admins if url.endswith(leading))
                xd.admins.pop(url).kill()
                killed["leading_admins"] += 1
                xd.start(admins=1)
            else:
                busy = sorted(container for container in set(_modules(xd).values()) if container in xd.containers)
                if busy:
                    xd.kill_container(busy[turn % len(busy)])
                    killed["containers"] += 1
                    xd.start(containers=1)
        took = time.monotonic() - began
        client.stop()
        client.close()
        found = numbers(out)
    return {
        "transport": transport,
        "messages": messages,
        "seconds": round(took, 1),
        "killed": killed,
        "missing": messages - len(set(found)),
        "doubled": len(found) - len(set(found)),
        "exact": found == list(range(messages)),
    }


def _modules(xd: Cluster) -> dict[str, str]:
    return eventually(xd.modules)
