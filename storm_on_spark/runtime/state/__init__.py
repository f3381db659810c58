"""The state of tasks: snapshots of attributes, and key-value state.

An instance or its entries come in, and bytes for Spark's state store go out; the same bytes make it what it was. A
version names each. Begin with `snapshot.py`; what is larger than memory is in `keyvalue/`.
"""
