"""Commands that are a cluster's daemons, until somebody ends them.

What needs the cluster's libraries is imported when a command runs: the help is there without them.
"""
