"""A whole topology under test, on real Spark: spouts that emit what a test says, and what each component emitted."""
