"""One component under test, in milliseconds and without Spark: testers, and collectors that record what was emitted."""
