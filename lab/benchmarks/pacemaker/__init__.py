"""`make pacemaker-bench`: the heartbeats of thousands of supervisors, against our Pacemaker, Storm's, and ZooKeeper.

`load` is the generator, the same for all: it speaks each contender's protocol in raw bytes (`wire`), so that it costs
the same. It is pinned to one core, and the measured server to another.
"""
