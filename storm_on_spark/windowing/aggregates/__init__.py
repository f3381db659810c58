"""Windows that keep partial results of aggregations, and no tuples."""
