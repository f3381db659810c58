# Databricks notebook source
# MAGIC %md
# MAGIC # Groupings, and the plan drawn
# MAGIC
# MAGIC One stream, six bolts, each with another grouping. The topology is drawn, then what it compiles to, then which task got which word.

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
# MAGIC Each bolt notes where a word came: its own id, the word, and the number of its task.

# COMMAND ----------

from storm_on_spark import BaseBasicBolt, Fields, TopologyBuilder, compile_topology
from storm_on_spark.connectors.frames import MemoryBolt
from storm_on_spark.testing import ListSpout


class Note(BaseBasicBolt):
    def prepare(self, conf, context):
        self.grouping, self.task = context.this_component_id, context.this_task_index

    def execute(self, tup, collector):
        collector.emit([self.grouping, tup["word"], self.task])

    def declare_output_fields(self, declarer):
        declarer.declare(Fields("grouping", "word", "task"))


words = ["to", "be", "or", "not", "to", "be", "that", "is", "the", "question"] * 6
builder = TopologyBuilder()
builder.set_spout("words", ListSpout(words, fields=["word"]))
builder.set_bolt("shuffle", Note(), 3).shuffle_grouping("words")
builder.set_bolt("fields", Note(), 3).fields_grouping("words", Fields("word"))
builder.set_bolt("partial_key", Note(), 3).partial_key_grouping("words", Fields("word"))
builder.set_bolt("all", Note(), 3).all_grouping("words")
builder.set_bolt("global", Note(), 3).global_grouping("words")
builder.set_bolt("local", Note(), 3).local_or_shuffle_grouping("words")
view = builder.set_bolt("view", MemoryBolt("seen", {"grouping": "string", "word": "string", "task": "int"}))
for name in ("shuffle", "fields", "partial_key", "all", "global", "local"):
    view.shuffle_grouping(name)
topology = builder.create_topology()
topology

# COMMAND ----------

# MAGIC %md
# MAGIC ## The plan
# MAGIC
# MAGIC Each row of the lower table is an arrow, and says what its grouping became. A bolt that is *fused* runs in the same call as what feeds
# MAGIC it: its words cross no exchange.

# COMMAND ----------

compiled = compile_topology(topology)
compiled

# COMMAND ----------

# MAGIC %md
# MAGIC The same as text, for terminals:

# COMMAND ----------

print(compiled.explain(width=110))

# COMMAND ----------

# MAGIC %md
# MAGIC ## Where the words went

# COMMAND ----------

from pyspark.sql import SparkSession

query = compiled.start(SparkSession.getActiveSession(), name="groupings")
info = query.live()

# COMMAND ----------

from storm_on_spark.spark.session.local import local_session

spark = local_session()
seen = spark.table("seen")
counts = seen.groupBy("grouping").pivot("task").count().na.fill(0).orderBy("grouping").toPandas()
counts

# COMMAND ----------

# MAGIC %md
# MAGIC Shuffle is even. With fields grouping a word is always at the same task; with partial keys at one of two. `all` has every word at each
# MAGIC task, `global` at the first one only.

# COMMAND ----------

tasks = {name: seen.where(f"grouping = '{name}'").groupBy("word").agg({"task": "collect_set"}).collect() for name in ("fields", "all")}
assert all(len(found) == 1 for _, found in tasks["fields"])
assert all(len(found) == 3 for _, found in tasks["all"])
assert seen.where("grouping = 'global' AND task > 0").count() == 0
assert (info.acked, info.failed) == (len(words), 0)
