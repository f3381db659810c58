"""Storm UI's pages: the answers of the REST interface, field by field.

In: a snapshot of the cluster, and what a request asks for. Out: the structures of `schemas`. Nothing here talks to
ZooKeeper, to a driver or to a browser.
"""
