"""Values of tuples: rows, hashes, pickles, and copies of values that can be changed in place."""
