"""A Nimbus that does nothing but stand for election, in its own process: something to stop, kill and cut off.

It says on stdout what happens to it, one JSON object a line, and does what it reads on stdin: `write` writes with the
fence of its last leadership, whether or not it still leads.
"""

from __future__ import annotations

import json
import sys
import threading
import time

from storm_on_spark.cluster.errors import ClusterError
from storm_on_spark.cluster.leadership import ZooKeeperLeaderElector
from storm_on_spark.cluster.paths import COUNTER
from storm_on_spark.cluster.records import NimbusSummary
from storm_on_spark.cluster.state import ClusterState, Fence, Put
from storm_on_spark.cluster.zookeeper import ZooKeeperSession, ZooKeeperSettings


def main() -> None:
    """Stands for election until stdin ends."""
    hosts, root, port, session_timeout_secs = sys.argv[1:]
    fences: list[Fence] = []
    talking = threading.Lock()

    def say(event: str, **more: object) -> None:
        # Two threads talk, each in whole lines.
        with talking:
            print(json.dumps({"event": event, "at": time.time(), **more}), flush=True)

    def gained(fence: Fence) -> None:
        fences.append(fence)
        say("gained", epoch=fence.epoch)

    settings = ZooKeeperSettings(hosts, root, session_timeout_secs=float(session_timeout_secs), retry_interval_secs=5.0)
    with ZooKeeperSession(settings) as session:
        state = ClusterState(session)
        elector = ZooKeeperLeaderElector(
            session,
            NimbusSummary(host="localhost", port=int(port), started_at=time.time(), version="1"),
            gate=list,
            on_gained=gained,
            on_lost=lambda reason: say("lost", reason=reason),
            fetch=lambda missing: None,
        )
        elector.add_to_leader_lock_queue()
        for line in sys.stdin:
            believes = elector.is_leader()
            try:
                state.commit(fences[-1], Put((COUNTER,), line.strip().encode()))
                say("written", believes=believes)
            except ClusterError as error:
                say("refused", believes=believes, error=type(error).__name__)
        elector.close()


if __name__ == "__main__":
    main()
