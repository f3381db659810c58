"""A whole topology under test, on real Spark: spouts that emit a test's tuples, and records of all emitted tuples."""
