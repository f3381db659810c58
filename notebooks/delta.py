# Databricks notebook source
# MAGIC %md
# MAGIC # From a stream to a Delta table
# MAGIC
# MAGIC Clicks are joined with a table of users and written to a Delta table, each click once. The cells run on Databricks, in Jupyter, or
# MAGIC anywhere else where a Python process may start Spark. They need the extra `delta`, and no jar.

# COMMAND ----------

# MAGIC %md
# MAGIC The next cell installs the package if it is not there: from the checkout that this notebook lies in. Put the path of a wheel in
# MAGIC place of `..` if you have one.

# COMMAND ----------

import importlib.util
import subprocess
import sys

if importlib.util.find_spec("storm_on_spark") is None:
    subprocess.run([sys.executable, "-m", "pip", "install", "--quiet", "..[delta]"], check=True)

# COMMAND ----------

# MAGIC %md
# MAGIC ## A table of users
# MAGIC
# MAGIC Any writer of Delta will do. The topology looks for new versions of the table while it runs.

# COMMAND ----------

import tempfile

import pyarrow as pa
from deltalake import DeltaTable, write_deltalake

folder = tempfile.mkdtemp()  # on a cluster: a mounted folder that driver and workers see under the same path
write_deltalake(f"{folder}/users", pa.table({"id": [0, 1, 2], "country": ["FR", "DE", "PT"]}))

# COMMAND ----------

# MAGIC %md
# MAGIC ## The topology
# MAGIC
# MAGIC `EnrichBolt` adds a column of the table, `DeltaBolt` writes all tuples of a micro-batch in one transaction, and `MemoryBolt` keeps the
# MAGIC last ones in a temporary view, to look at.

# COMMAND ----------

from storm_on_spark import Fields, TopologyBuilder, compile_topology
from storm_on_spark.connectors.delta import DeltaBolt
from storm_on_spark.connectors.delta import EnrichBolt
from storm_on_spark.connectors.frames import MemoryBolt
from storm_on_spark.testing import ListSpout

clicks = [[number % 4, f"/{number % 7}"] for number in range(200)]
columns = {"user": "long", "page": "string", "country": "string"}

builder = TopologyBuilder()
builder.set_spout("clicks", ListSpout(clicks, fields=["user", "page"]))
users = EnrichBolt(f"{folder}/users", on={"user": "id"}, add=["country"], fields=["user", "page"], refresh_secs=10)
builder.set_bolt("enrich", users, 2).shuffle_grouping("clicks")
builder.set_bolt("table", DeltaBolt(f"{folder}/clicks", columns), 2).local_or_shuffle_grouping("enrich")
builder.set_bolt("view", MemoryBolt("last_clicks", columns)).local_or_shuffle_grouping("enrich")
compiled = compile_topology(builder.create_topology())
compiled

# COMMAND ----------

# MAGIC %md
# MAGIC ## Run it
# MAGIC
# MAGIC This spout is finite, so `live` returns when all clicks are acked: when their transactions are committed.

# COMMAND ----------

from pyspark.sql import SparkSession

query = compiled.start(SparkSession.getActiveSession(), name="clicks", checkpoint=f"{folder}/checkpoint")
info = query.live()

# COMMAND ----------

# MAGIC %md
# MAGIC ## What is there
# MAGIC
# MAGIC The view, by Spark's SQL; and the table, whose log names the micro-batch of each transaction.

# COMMAND ----------

from storm_on_spark.spark.session.local import local_session

spark = local_session()
spark.sql("SELECT country, count(*) AS clicks FROM last_clicks GROUP BY country ORDER BY country").show()

# COMMAND ----------

written = DeltaTable(f"{folder}/clicks").to_pyarrow_table()
assert written.num_rows == spark.table("last_clicks").count() == len(clicks)
assert (info.acked, info.failed) == (len(clicks), 0)
DeltaTable(f"{folder}/clicks").history()[0]
