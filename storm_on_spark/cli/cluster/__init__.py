"""Commands that ask a cluster.

What needs the cluster's libraries is imported when a command runs: the help is there without them.
"""
