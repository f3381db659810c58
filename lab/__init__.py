"""The laboratory: faults, failover and benchmarks, each with its own scenarios; `suite` is what they share."""
