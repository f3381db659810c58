"""Worker hooks, resources and registered metrics in Spark's processes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from storm_on_spark import BaseBasicBolt, BaseWorkerHook, TopologyBuilder
from storm_on_spark.testing import ListSpout

if TYPE_CHECKING:
    from conftest import Complete


class Name(BaseWorkerHook):
    def start(self, conf, context):
        assert context.get_resource("greeting") is None, "once in a process"
        context.set_resource("greeting", [conf["my.greeting"]])


class Greet(BaseBasicBolt):
    def prepare(self, conf, context):
        self.greeting = context.get_resource("greeting")
        self.greeted = context.register_counter("greeted")
        self.sizes = context.register_histogram("sizes")
        self.count = 0

    def execute(self, tup, collector):
        assert self.greeting == ["hello"]
        self.greeted.inc()
        self.sizes.update(len(tup[0]))
        self.count += 1


def test_hooks_and_metrics_in_sparks_processes(complete: Complete) -> None:
    words = ["a", "bb", "ccc"] * 20
    builder = TopologyBuilder()
    builder.set_spout("words", ListSpout([[word] for word in words], fields=["word"]))
    builder.set_bolt("greet", Greet(), 2).shuffle_grouping("words")
    builder.add_worker_hook(Name())
    info = complete(builder.create_topology(), {"my.greeting": "hello"})
    assert (info.acked, info.errors) == (len(words), ())
    metrics = info.components["greet"].metrics
    assert metrics["greeted"].value == len(words)
    assert len(metrics["greeted"].tasks) == 2
    assert metrics["sizes"].values["count"] == len(words)
    assert (metrics["sizes"].values["min"], metrics["sizes"].values["max"]) == (1.0, 3.0)
