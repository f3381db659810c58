"""Heartbeats: who keeps them, ZooKeeper or Pacemaker, and what a Nimbus may conclude from silence.

- `settings`: which store, and which servers.
- `writer`: what drivers and supervisors write by; `reader`: what a Nimbus knows by. Neither says who keeps them.
- `rules`: what silence means, as a table; `sticky`: which server a writer uses. No I/O.
- `connection`, `pulses`, `values`: one Pacemaker, and what it holds.
"""
