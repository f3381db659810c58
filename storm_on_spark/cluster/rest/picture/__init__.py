"""What a Nimbus knows of its cluster, ready for the pages.

In: the records of ZooKeeper and of Pacemaker, as they change. Out: one snapshot for all readers, values derived from
it, and the early warnings. Each value is worked out once for each change of the records.
"""
