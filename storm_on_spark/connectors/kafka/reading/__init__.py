"""Spouts that read Kafka's topics: by Spark's own source, or in plain Python.

In: a `KafkaSpoutConfig`, records, and the outcomes of messages. Out: tuples. `PlainKafkaSpout` fetches a failed record
again (`replay.py`); `KafkaSpout` keeps its rows until they are acked, in `connectors/sources/`.
"""

from __future__ import annotations
