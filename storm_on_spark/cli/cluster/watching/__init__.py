"""Commands that show topologies of a cluster: their state, stages, rates, lag, errors and output."""
