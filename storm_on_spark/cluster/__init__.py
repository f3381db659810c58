"""The cluster: Nimbuses that elect a leader, supervisors that run drivers, and code that gets to where it is needed.

It needs the extra `cluster`. `paths` draws what is in ZooKeeper, `records` says what the nodes hold.
"""
