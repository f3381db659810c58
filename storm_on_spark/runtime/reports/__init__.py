"""Reports of tasks, and their presentation for people.

Counters, latencies and errors of tasks come in; records that travel as REPORT chunks, and texts for people, go out.
`batches/metrics/` adds them up. Begin with `report.py`.
"""
