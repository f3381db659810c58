"""The driver's JVM: which Java it is, what Spark reads while it starts, and what lets it start quickly."""
