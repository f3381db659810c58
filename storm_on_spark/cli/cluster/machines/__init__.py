"""Commands for operators: the machines of a cluster and the daemons on them."""
