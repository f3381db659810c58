"""From `emit` to chunks: routing, boxes, encoding.

The values of a tuple or a record batch come in, with the position of the input that they are anchored to; chunks go
out, one for each receiving task. Until then tuples wait in boxes. Begin with `output.py`; `routing.py` chooses tasks.
"""
