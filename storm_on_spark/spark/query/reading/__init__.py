"""Reading: the streaming source over the spout logs, and what it knows of Spark's own sources.

Offsets come in from the coordinator, through a socket; chunks and Spark's rows go out to the first operator. A
micro-batch that runs again reads the same. Begin with `source.py`.
"""
