"""Values of tuples: rows, hashes, pickles, and copies of values that can be changed in place.

Any Python value comes in; a hash that is the same in every process, bytes, or a separate copy goes out. Other values
are refused with an explanation. Begin with `frozen.py`, which decides which values are copied.
"""
