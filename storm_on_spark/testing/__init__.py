"""The test kit: one bolt in milliseconds, a whole topology on real Spark, and the effects of failures.

One component, without Spark:

>>> from storm_on_spark import BaseBasicBolt, Fields
>>> class Split(BaseBasicBolt):
...     def execute(self, tup, collector):
...         for word in tup["sentence"].split():
...             collector.emit([word])
...     def declare_output_fields(self, declarer):
...         declarer.declare(Fields("word"))
>>> run_bolt(Split(), [make_tuple(["to be"], ["sentence"])]).values()
[('to',), ('be',)]

A topology, with its spouts replaced:

>>> captured = run_topology(topology, {"sentences": ["to be", "or not"]})            # doctest: +SKIP
>>> sorted(captured.values("split")), captured.failed()                              # doctest: +SKIP
([('be',), ('not',), ('or',), ('to',)], [])

A crash of the spout's process is an item like any other: `{"sentences": ["to be", CRASH(), "or not"]}`.
"""

from __future__ import annotations

from storm_on_spark.runtime.batches.clock import ManualClock
from storm_on_spark.testing.components.bench import make_context
from storm_on_spark.testing.components.bolt_tester import BoltTester, run_bolt
from storm_on_spark.testing.components.collectors import (
    RecordingBasicCollector,
    RecordingBatchCollector,
    RecordingBatchSpoutCollector,
    RecordingCollector,
    RecordingSpoutCollector,
)
from storm_on_spark.testing.components.spout_tester import SpoutTester, run_spout
from storm_on_spark.testing.faults.leaks import no_leaks
from storm_on_spark.testing.faults.processes import (
    descendants,
    executors,
    kill_executor,
    kill_one,
    kill_python_worker,
    kill_spout_host,
    python_workers,
    spout_hosts,
    wait_gone,
)
from storm_on_spark.testing.records import BatchEmission, BatchSpoutEmission, CapturedOutcome, CapturedTuple, Emission
from storm_on_spark.testing.running.capture import Capture, CaptureBolt, CaptureHook, read_capture, with_capture
from storm_on_spark.testing.running.sources import CRASH, EOF, GATE, PAUSE, ListSpout, On, crash, crashes, open_gate
from storm_on_spark.testing.running.topologies import Captured, RunningTopology, run_topology, running_topology
from storm_on_spark.testing.running.tracked import TrackedTopology, tracked_wait
from storm_on_spark.testing.tuples import make_tick_tuple, make_timer_tuple, make_tuple

__all__ = [
    "CRASH",
    "EOF",
    "GATE",
    "PAUSE",
    "BatchEmission",
    "BatchSpoutEmission",
    "BoltTester",
    "Capture",
    "CaptureBolt",
    "CaptureHook",
    "Captured",
    "CapturedOutcome",
    "CapturedTuple",
    "Emission",
    "ListSpout",
    "ManualClock",
    "On",
    "RecordingBasicCollector",
    "RecordingBatchCollector",
    "RecordingBatchSpoutCollector",
    "RecordingCollector",
    "RecordingSpoutCollector",
    "RunningTopology",
    "SpoutTester",
    "TrackedTopology",
    "crash",
    "crashes",
    "descendants",
    "executors",
    "kill_executor",
    "kill_one",
    "kill_python_worker",
    "kill_spout_host",
    "make_context",
    "make_tick_tuple",
    "make_timer_tuple",
    "make_tuple",
    "no_leaks",
    "open_gate",
    "python_workers",
    "read_capture",
    "run_bolt",
    "run_spout",
    "run_topology",
    "running_topology",
    "spout_hosts",
    "tracked_wait",
    "wait_gone",
    "with_capture",
]
