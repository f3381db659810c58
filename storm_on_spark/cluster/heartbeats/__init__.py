"""Heartbeats: who keeps them, ZooKeeper or Pacemaker, and what a Nimbus may conclude from silence.

- `settings`: which store, and which servers.
- `writer`: for drivers and supervisors; `reader`: for a Nimbus. Callers of neither know which store it is.
- `rules`: what silence means, as a table; `sticky`: which server a writer uses. No I/O.
- `connection`, `pulses`, `values`: one Pacemaker, and what it holds.
"""
