"""Streams and groupings: fields, ids and declarations of streams, and which tasks receive their tuples."""
