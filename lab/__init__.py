"""The laboratory: faults, failover and benchmarks, each with its own scenarios; `suite` and `load` are shared."""
