"""The driver: the process that runs one topology.

A supervisor starts it with a folder as its only argument (`files` says what is in there). It may run its topology while
it owns it, in ZooKeeper and in the checkpoint, and ends itself when it does not.
"""
