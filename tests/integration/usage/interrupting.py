"""A script that is interrupted while it starts and while it stops a topology; `python interrupting.py`.

Prints a line for each moment.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable

from storm_on_spark import BaseBasicBolt, BaseRichSpout, Fields, TopologyBuilder, compile_topology
from storm_on_spark.spark.running.topology import TopologyQuery
from storm_on_spark.spark.session import local_session

MOMENTS = (0.25, 0.75)
"""Parts of the time that a start or a stop takes: one for each of both handlers."""


class Numbers(BaseRichSpout):
    def open(self, conf, context, collector):
        self.collector, self.next = collector, 0

    def next_tuple(self):
        self.next += 1
        self.collector.emit([self.next], self.next)

    def declare_output_fields(self, declarer):
        declarer.declare(Fields("n"))


class Nothing(BaseBasicBolt):
    def execute(self, tup, collector):
        pass


def start() -> TopologyQuery:
    builder = TopologyBuilder()
    builder.set_spout("numbers", Numbers())
    builder.set_bolt("nothing", Nothing()).shuffle_grouping("numbers")
    return compile_topology(builder.create_topology(), {"topology.max.spout.pending": 500}).start()


def interrupted(secs: float, call: Callable[[], object]) -> str:
    """Calls, and interrupts it meanwhile or, if it ends before, then."""
    timer = threading.Timer(secs, os.kill, (os.getpid(), signal.SIGINT))
    try:
        timer.start()
        call()
        timer.join()
        time.sleep(60)
    except KeyboardInterrupt:
        return "heard"
    return "lost"


def main() -> None:
    spark = local_session()
    began = time.monotonic()
    start().stop()
    took = (time.monotonic() - began) / 2
    handlers = (signal.getsignal(signal.SIGINT), signal.default_int_handler)
    for handler, moment in zip(handlers, MOMENTS, strict=True):
        signal.signal(signal.SIGINT, handler)
        print("start", interrupted(moment * took, start), flush=True)
        for query in spark.streams.active:  # it was quicker
            query.stop()
        query = start()
        print("stop", interrupted(moment * took, query.stop), query.isActive, flush=True)
    spark.stop()


if __name__ == "__main__":
    main()
