"""The laboratory: faults, failover and benchmarks, each with its own load, its oracles and its report."""
