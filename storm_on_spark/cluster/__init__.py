"""The cluster: Nimbuses that elect a leader, supervisors that run drivers, and code that gets to where it is needed.

It needs the extra `cluster`. Begin with `nimbus` (which takes topologies and assigns them), `supervisor` (which starts
their drivers) and `driver` (what a driver tells the cluster). `leadership` elects, `state` and `zookeeper` keep what
all of them know, and `code` distributes topologies. `heartbeats` and `pacemaker` say who is alive. Callers come in by
`http`, `rest` and `thrift`, and `security` says what they may do. `paths.py` draws what is in ZooKeeper, `records.py`
says what the nodes hold.
"""
