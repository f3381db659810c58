"""Measures this project beside Apache Storm and native PySpark, on the same machine and input, in one run.

`cases` says what is run, `workloads` has its topologies and their input, `contenders` how each engine runs them,
`targets` what must come of it. Each case runs in its own process (`child`), round after round (`harness`), so that
whatever else the machine does falls on all alike. Absolute figures mean little; `targets` and `report` compare within a
round. `studies` are separate programs.
"""
