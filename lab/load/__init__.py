"""The load of `make faults`, and of the scenarios of `make failover` with real drivers, with the oracles that judge it.

topology.py   a topology that leaves records outside Spark
ledger.py     these records
state.py      the state of its bolts, read from a checkpoint by Spark
oracles.py    what must be true at the end, from records and state alone
"""

from __future__ import annotations
