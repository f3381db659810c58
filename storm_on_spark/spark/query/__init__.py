"""The streaming query: source, operators, sink, and what watches it."""
