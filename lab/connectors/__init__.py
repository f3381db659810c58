"""`make connector-faults`: injects faults into Kafka, Delta and the driver between them.

pipeline.py   the topology: Kafka -> counts by key -> two Delta tables, and Kafka
run.py        one run: a broker, a topic, drivers that are killed and started again
scenarios.py  the faults
oracles.py    what must hold at the end, in plain Python over the same input
report.py     the table
"""
