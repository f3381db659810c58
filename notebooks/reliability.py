# Databricks notebook source
# MAGIC %md
# MAGIC # Acks and failures made visible
# MAGIC
# MAGIC A bolt that fails some orders once, and one order always. Each order is emitted again by itself until it is acked or given up, and what
# MAGIC the bolt counts is counted once.

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
# MAGIC ## The topology
# MAGIC
# MAGIC `ListSpout` emits what it is given, emits again what has failed, and gives up after two fails more. A `FailedException` fails the tuple
# MAGIC and keeps what the bolt did before it. Any other exception is reported too, with its line, and takes back what the bolt did.

# COMMAND ----------

from collections import Counter

from storm_on_spark import BaseBasicBolt, FailedException, Fields, TopologyBuilder, compile_topology
from storm_on_spark.testing import ListSpout


class Charge(BaseBasicBolt):
    def prepare(self, conf, context):
        self.tries = Counter()
        self.charged = Counter()

    def execute(self, tup, collector):
        order = tup["order"]
        if order == 13:
            raise ValueError(f"no such account (order {order})")
        self.tries[order] += 1
        if order % 10 == 7 and self.tries[order] == 1:
            raise FailedException(f"the bank is busy (order {order})")
        self.charged[order] += 1


orders = list(range(40))
builder = TopologyBuilder()
builder.set_spout("orders", ListSpout(orders, fields=["order"], max_fails=2))
builder.set_bolt("charge", Charge(), 2).fields_grouping("orders", Fields("order"))
compiled = compile_topology(builder.create_topology())

# COMMAND ----------

# MAGIC %md
# MAGIC ## Run it
# MAGIC
# MAGIC The table has what was acked and failed, and the last errors with their component and task. Order 13 fails three times.

# COMMAND ----------

import tempfile

from pyspark.sql import SparkSession

checkpoint = tempfile.mkdtemp()  # on a cluster: a mounted folder that driver and workers see under the same path
query = compiled.start(SparkSession.getActiveSession(), name="orders", checkpoint=checkpoint)
info = query.live()

# COMMAND ----------

assert info.acked == len(orders) - 1
assert info.failed == len([order for order in orders if order % 10 == 7]) + 3

# COMMAND ----------

# MAGIC %md
# MAGIC ## What the bolt remembers
# MAGIC
# MAGIC Its state, read from the checkpoint: an order that failed was tried twice and charged once, and order 13 left no trace.

# COMMAND ----------

from storm_on_spark.spark.session.local import local_session
from storm_on_spark.spark.state import read_bolt_state

state = read_bolt_state(local_session(), checkpoint, "charge")
tries = sum((attributes["tries"] for attributes in state.values()), Counter())
charged = sum((attributes["charged"] for attributes in state.values()), Counter())
assert charged == Counter(order for order in orders if order != 13)
assert {order for order, count in tries.items() if count == 2} == {7, 17, 27, 37}
state

# COMMAND ----------

# MAGIC %md
# MAGIC ## A bolt that is redefined
# MAGIC
# MAGIC Correct the class in its cell, run that and the cell that builds the topology, and start again: the new class runs. With the same
# MAGIC checkpoint the topology would continue from there. Here it starts from the beginning.

# COMMAND ----------

class Charge(BaseBasicBolt):
    def prepare(self, conf, context):
        self.charged = Counter()

    def execute(self, tup, collector):
        self.charged[tup["order"]] += 1


builder = TopologyBuilder()
builder.set_spout("orders", ListSpout(orders, fields=["order"], max_fails=2))
builder.set_bolt("charge", Charge(), 2).fields_grouping("orders", Fields("order"))
query = compile_topology(builder.create_topology()).start(SparkSession.getActiveSession(), name="orders-again")
info = query.live()
assert (info.acked, info.failed) == (len(orders), 0)
