# Databricks notebook source
# MAGIC %md
# MAGIC # From Kafka to Delta, with live counts
# MAGIC
# MAGIC Lines come from a topic of Kafka, are split and counted, and the counts are rows of a Delta table, each written exactly once. The cells
# MAGIC need the extras `kafka` and `delta`, and jars that are fetched when they are first used.

# COMMAND ----------

# MAGIC %md
# MAGIC The next cell installs the package if it is not there: from the checkout that this notebook lies in. Put the path of a wheel in
# MAGIC place of `..` if you have one.

# COMMAND ----------

import importlib.util
import subprocess
import sys

if importlib.util.find_spec("storm_on_spark") is None:
    subprocess.run([sys.executable, "-m", "pip", "install", "--quiet", "..[kafka,delta]"], check=True)

# COMMAND ----------

# MAGIC %md
# MAGIC ## A broker and a topic
# MAGIC
# MAGIC `KAFKA_BOOTSTRAP_SERVERS` names yours. Without it, a broker is started on this machine, which takes some seconds.

# COMMAND ----------

import os
import uuid

from kafka import KafkaProducer
from kafka.admin import KafkaAdminClient, NewTopic

from storm_on_spark.connectors.kafka.server import KafkaServer

bootstrap, server = os.environ.get("KAFKA_BOOTSTRAP_SERVERS"), None
if not bootstrap:
    server = KafkaServer()
    server.start()
    bootstrap = server.bootstrap_servers
topic = f"lines-{uuid.uuid4().hex[:8]}"
admin = KafkaAdminClient(bootstrap_servers=bootstrap)
admin.create_topics([NewTopic(topic, num_partitions=2, replication_factor=1)])
admin.close()

# COMMAND ----------

# MAGIC %md
# MAGIC ## The topology
# MAGIC
# MAGIC Spark reads the topic itself. A record that fails would be read again by itself. The table has a row for each word, replaced when its
# MAGIC count changes.

# COMMAND ----------

import tempfile
from collections import Counter

from storm_on_spark import BaseBasicBolt, Fields, TopologyBuilder, compile_topology
from storm_on_spark.connectors.delta import DeltaBolt
from storm_on_spark.connectors.kafka import KafkaSpout, KafkaSpoutConfig


class Split(BaseBasicBolt):
    def execute(self, tup, collector):
        for word in tup["value"].split():
            collector.emit([word])

    def declare_output_fields(self, declarer):
        declarer.declare(Fields({"word": "string"}))


class Count(BaseBasicBolt):
    def prepare(self, conf, context):
        self.counts = Counter()

    def execute(self, tup, collector):
        self.counts[tup["word"]] += 1
        collector.emit([tup["word"], self.counts[tup["word"]]])

    def declare_output_fields(self, declarer):
        declarer.declare(Fields({"word": "string", "count": "long"}))


folder = tempfile.mkdtemp()  # on a cluster: a mounted folder that driver and workers see under the same path
config = KafkaSpoutConfig.builder(bootstrap, topic).set_group_id("notebook").build()
builder = TopologyBuilder()
builder.set_spout("lines", KafkaSpout(config))
builder.set_bolt("split", Split(), 2).shuffle_grouping("lines")
builder.set_bolt("count", Count(), 2).fields_grouping("split", Fields("word"))
counts = DeltaBolt(f"{folder}/counts", {"word": "string", "count": "long"}, keys=["word"])
builder.set_bolt("counts", counts, 2).fields_grouping("count", Fields("word"))
compiled = compile_topology(builder.create_topology())
compiled

# COMMAND ----------

# MAGIC %md
# MAGIC ## Live
# MAGIC
# MAGIC A thread sends lines while the cell looks. The topology would continue for ever; `live(SECONDS)` looks for a while. Interrupting the cell
# MAGIC ends the topology.

# COMMAND ----------

import threading

from pyspark.sql import SparkSession

lines = ["to be or not to be", "that is the question"] * 600
sent = threading.Event()


def send():
    producer = KafkaProducer(bootstrap_servers=bootstrap)
    for number in range(0, len(lines), 100):
        for line in lines[number : number + 100]:
            producer.send(topic, line.encode())
        producer.flush()
        sent.wait(0.4)
    producer.close()
    sent.set()


query = compiled.start(SparkSession.getActiveSession(), name="kafka-to-delta", checkpoint=f"{folder}/checkpoint")
sender = threading.Thread(target=send)
sender.start()
info = query.live(8)

# COMMAND ----------

sender.join()
assert query.wait_until(lambda: query.status_info().acked == len(lines), 120), query.status_info()
query.stop()

# COMMAND ----------

# MAGIC %md
# MAGIC ## The table
# MAGIC
# MAGIC Read without Spark; its log has the micro-batch of each transaction.

# COMMAND ----------

from deltalake import DeltaTable

table = DeltaTable(f"{folder}/counts").to_pandas().sort_values("count", ascending=False)
assert dict(zip(table["word"], table["count"])) == Counter(" ".join(lines).split())
if server is not None:
    server.close()
table
