"""The classes that users call: the builder, streams, and mappers from tuples to values."""
