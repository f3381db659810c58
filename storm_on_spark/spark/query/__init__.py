"""The streaming query: source, operators and sink, and how far each micro-batch reaches.

A physical plan comes in; one Spark query goes out. Begin with `lowering.py`; `reading/` is its source, `operators.py`
the middle and `sink.py` the end.
"""
