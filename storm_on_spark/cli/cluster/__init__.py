"""Commands that ask a cluster.

The cluster's libraries are imported only when a command runs, so that its help works without them.
"""
