"""Metrics over windows of time: rules without I/O and without a clock.

Amounts come in, by component, task and name; their sums over the last 10 minutes, 3 hours, 1 day and all time go out.

    amounts    what is counted, and under which keys
    latency    latencies as sketches, which can be added up and subtracted
    windows    rings of buckets; one addition per amount, whatever is read
    history    the windows as a file that outlives a process
    views      the sums as `storm_on_spark.api.info` shows them
"""
