"""A DRPC server, or a topology that answers, as a process that a test may kill. It ends when its stdin does.

    python drpc_process.py server HOST CALLS_PORT INVOCATIONS_PORT [TIMEOUT_SECS]     prints its two ports
    python drpc_process.py topology INVOCATIONS_PORT HOST...                          prints each request that it keeps

The function is `f`: "keep..." is never answered, and everything else at once.
"""

from __future__ import annotations

import sys
import threading

from storm_on_spark import BaseBasicBolt, Fields
from storm_on_spark.api.config import effective_conf
from storm_on_spark.cluster.drpc.server import DRPCServer, Ports
from storm_on_spark.drpc import LinearDRPCTopologyBuilder
from storm_on_spark.plan.compile import compile_graph
from storm_on_spark.runtime.in_process import InProcessTopology


class Exclaim(BaseBasicBolt):
    def execute(self, tup, collector):
        if tup[1].startswith("keep"):
            print(tup[1], flush=True)
        else:
            collector.emit([tup[0], tup[1] + "!"])

    def declare_output_fields(self, declarer):
        declarer.declare(Fields("id", "result"))


def main() -> None:
    kind, *words = sys.argv[1:]
    if kind == "server":
        host, calls, invocations, *timeout = words
        conf = {"drpc.bind.address": host, "drpc.request.timeout.secs": int(timeout[0]) if timeout else 600}
        with DRPCServer(conf, Ports(int(calls), int(invocations), 0)) as server:
            print(server.calls.port, server.invocations.port, flush=True)
            sys.stdin.read()
        return
    port, *hosts = words
    builder = LinearDRPCTopologyBuilder("f")
    builder.add_bolt(Exclaim())
    conf = effective_conf({"drpc.servers": hosts, "drpc.invocations.port": int(port)})
    run = InProcessTopology(compile_graph(builder.create_remote_topology(), conf), "f")
    ended = threading.Event()
    threading.Thread(target=lambda: (sys.stdin.read(), ended.set()), daemon=True).start()
    run.run(lambda: not ended.is_set())


if __name__ == "__main__":
    main()
