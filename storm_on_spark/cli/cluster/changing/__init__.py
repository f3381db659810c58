"""Commands that change topologies of a cluster: submit, pause, continue, rebalance, reconfigure, kill."""
