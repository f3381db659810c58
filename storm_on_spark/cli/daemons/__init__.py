"""Commands that run a cluster's daemons until they are stopped.

The cluster's libraries are imported only when a command runs, so that its help works without them.
"""
