# Databricks notebook source
# MAGIC %md
# MAGIC # Tuning, and the time of a micro-batch
# MAGIC
# MAGIC The same topology with three settings, and where the time of its micro-batches goes. The figures are of the machine that runs this
# MAGIC notebook; [performance](../docs/performance.md) has measured ones.

# COMMAND ----------

# MAGIC %md
# MAGIC The next cell installs the package if it is not there: from the checkout that this notebook lies in. Put the path of a wheel in
# MAGIC place of `..` if you have one.

# COMMAND ----------

import importlib.util
import subprocess
import sys

if importlib.util.find_spec("storm_on_spark") is None:
    subprocess.run([sys.executable, "-m", "pip", "install", "--quiet", ".."], check=True)

# COMMAND ----------

# MAGIC %md
# MAGIC ## A topology to measure
# MAGIC
# MAGIC A spout that never ends, a bolt that works a little, and one that counts.

# COMMAND ----------

from collections import Counter

from storm_on_spark import BaseBasicBolt, BaseRichSpout, Fields, TopologyBuilder, compile_topology


class Numbers(BaseRichSpout):
    def open(self, conf, context, collector):
        self.collector, self.next = collector, 0

    def next_tuple(self):
        self.next += 1
        self.collector.emit([self.next], self.next)

    def declare_output_fields(self, declarer):
        declarer.declare(Fields("n"))


class Digits(BaseBasicBolt):
    def execute(self, tup, collector):
        for digit in str(tup["n"]):
            collector.emit([digit])

    def declare_output_fields(self, declarer):
        declarer.declare(Fields("digit"))


class Count(BaseBasicBolt):
    def prepare(self, conf, context):
        self.counts = Counter()

    def execute(self, tup, collector):
        self.counts[tup["digit"]] += 1


def digits():
    builder = TopologyBuilder()
    builder.set_spout("numbers", Numbers())
    builder.set_bolt("digits", Digits(), 2).shuffle_grouping("numbers")
    builder.set_bolt("count", Count(), 2).fields_grouping("digits", Fields("digit"))
    return builder.create_topology()

# COMMAND ----------

# MAGIC %md
# MAGIC ## Measure
# MAGIC
# MAGIC `measure` starts the topology, waits for its first acks, looks for some seconds and stops it.

# COMMAND ----------

from pyspark.sql import SparkSession


def measure(name, conf, seconds=3.0):
    query = compile_topology(digits(), conf).start(SparkSession.getActiveSession(), name=name)
    try:
        assert query.wait_until(lambda: query.status_info().acked > 0 and query.batch_times().batches, 60)
        before, first = query.status_info(), query.batch_times().batches[-1].number
        query.wait_until(lambda: False, seconds)
        assert query.wait_until(lambda: query.batch_times().after(first).batches, 60)
        after = query.status_info()
        times = query.batch_times().after(first)
    finally:
        query.stop()
    rate = (after.acked - before.acked) / (after.uptime_secs - before.uptime_secs)
    return {"setting": name, "acked a second": round(rate), "p50 ms": after.complete_latency_ms["p50"]}, times


settings = {
    "few under way": {"topology.max.spout.pending": 50},
    "many under way": {"topology.max.spout.pending": 5000},
    "one partition": {"topology.max.spout.pending": 5000, "topology.partitions": 1},
}
measured = {name: measure(name.replace(" ", "-"), conf) for name, conf in settings.items()}

# COMMAND ----------

import pandas as pd

rows = pd.DataFrame([row for row, _ in measured.values()]).set_index("setting")
assert (rows["acked a second"] > 0).all()
rows

# COMMAND ----------

# MAGIC %md
# MAGIC More under way makes micro-batches larger: more is acked a second, and each message waits longer.
# MAGIC
# MAGIC ## The time of a micro-batch
# MAGIC
# MAGIC Bars are micro-batches, from the oldest to the newest, without the first, which starts Python. *Executes* has spouts' tuples,
# MAGIC bolts, ackers and sinks; the rest is what Spark needs for each micro-batch, however much is in it.

# COMMAND ----------

times = measured["many under way"][1]
assert times.medians()["executes"] > 0
times

# COMMAND ----------

# MAGIC %md
# MAGIC As text, for terminals:

# COMMAND ----------

print(measured["few under way"][1])
