"""Settings of Spark: those that topologies need, those of a session that we start, and what a session allows."""
