"""Values of tuples: rows, hashes, pickles, and copies of values that can be changed in place.

Any Python value comes in; a hash that is the same in every process, bytes, or an object of its own goes out. A value
that has none of these is refused with a sentence. Begin with `frozen.py`, which says which values are copied.
"""
