"""Metrics over windows of time: rules without I/O and without a clock.

Amounts by component, task and name come in. Their sums over the last 10 minutes, 3 hours, 1 day and all time go out.

    amounts    what is counted, and under which keys
    latency    latencies as sketches, which can be added up and subtracted
    windows    rings of buckets; each amount is added once, however many windows are read
    history    the windows as a file that outlives a process
    views      the sums as `storm_on_spark.api.info` shows them
"""
