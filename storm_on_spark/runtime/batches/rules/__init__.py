"""The rules of micro-batches, pure: events and time in, instructions out.

What spout hosts, Spark and live processes report comes in as `events.py` lists it; what to tell them goes out. Begin
with `planning.py`; the others each decide one thing for it, such as `size.py` how large a micro-batch may be.
"""
