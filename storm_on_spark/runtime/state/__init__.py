"""The state of tasks: snapshots of attributes, and key-value state.

An instance or its entries come in, and bytes for Spark's state store go out; the same bytes restore it. Each has a
version. Begin with `snapshot.py`; `keyvalue/` has state that is larger than memory.
"""
