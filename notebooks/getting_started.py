# Databricks notebook source
# MAGIC %md
# MAGIC # A Storm topology in a notebook
# MAGIC
# MAGIC The cells run on Databricks, in Jupyter, or anywhere else where a Python process may start Spark. They count words; the
# MAGIC topology is one streaming query of the notebook's own session.

# COMMAND ----------

# MAGIC %md
# MAGIC The next cell installs the package if it is not there: from the checkout that this notebook lies in. Put the path of a
# MAGIC wheel in place of `..` if you have one. On Databricks the session is there already and is called `spark`; the topology uses
# MAGIC it as it is.

# COMMAND ----------

import importlib.util
import subprocess
import sys

if importlib.util.find_spec("storm_on_spark") is None:
    subprocess.run([sys.executable, "-m", "pip", "install", "--quiet", ".."], check=True)

# COMMAND ----------

# MAGIC %md
# MAGIC ## Two bolts
# MAGIC
# MAGIC The spout is `ListSpout`, from the test kit: it emits what it is given.

# COMMAND ----------

from collections import Counter

from storm_on_spark import BaseBasicBolt, Fields, TopologyBuilder, compile_topology
from storm_on_spark.testing import ListSpout


class SplitSentence(BaseBasicBolt):
    def execute(self, tup, collector):
        for word in tup["sentence"].split():
            collector.emit([word])

    def declare_output_fields(self, declarer):
        declarer.declare(Fields("word"))


class CountWords(BaseBasicBolt):
    def prepare(self, conf, context):
        self.counts = Counter()

    def execute(self, tup, collector):
        self.counts[tup["word"]] += 1

# COMMAND ----------

# MAGIC %md
# MAGIC ## The topology, and what it compiles to
# MAGIC
# MAGIC No Spark yet. Both show themselves as a picture; `print(compiled.explain())` has the same as text.

# COMMAND ----------

sentences = ["to be or not to be", "that is the question"] * 50

builder = TopologyBuilder()
builder.set_spout("sentences", ListSpout(sentences, fields=["sentence"]))
builder.set_bolt("split", SplitSentence(), 2).shuffle_grouping("sentences")
builder.set_bolt("count", CountWords(), 2).fields_grouping("split", "word")
topology = builder.create_topology()
topology

# COMMAND ----------

compiled = compile_topology(topology)
compiled

# COMMAND ----------

# MAGIC %md
# MAGIC ## Start it
# MAGIC
# MAGIC `start` returns a `StreamingQuery`. Leave `spark` out and a local session is started.

# COMMAND ----------

import tempfile

from pyspark.sql import SparkSession

checkpoint = tempfile.mkdtemp()  # on a cluster: a mounted folder that driver and workers see under the same path
query = compiled.start(SparkSession.getActiveSession(), name="word-count", checkpoint=checkpoint)

# COMMAND ----------

# MAGIC %md
# MAGIC ## Watch it
# MAGIC
# MAGIC Interrupting the next cell (the square button) stops the topology in order: what is under way is ended, and no process is
# MAGIC left. What is in the checkpoint stays, and the next `start` continues from there. `query.live(10)` looks for ten seconds only, and
# MAGIC the topology continues. `query.awaitTermination()` waits without a table; interrupting that ends the waiting alone, and
# MAGIC `query.stop()` the topology.

# COMMAND ----------

info = query.live()  # a table that redraws; this spout is finite, so it returns when all is done

# COMMAND ----------

# MAGIC %md
# MAGIC ## The state of a bolt
# MAGIC
# MAGIC Read back from the checkpoint with Spark's own state reader, task by task.

# COMMAND ----------

from storm_on_spark.spark.session.local import local_session
from storm_on_spark.spark.state import read_bolt_state

state = read_bolt_state(local_session(), checkpoint, "count")
state

# COMMAND ----------

counts = sum((attributes["counts"] for attributes in state.values()), Counter())
assert counts == Counter(" ".join(sentences).split())
assert (info.acked, info.failed) == (len(sentences), 0)
counts.most_common(3)
