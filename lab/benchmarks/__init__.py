"""Measures this project beside Apache Storm and native PySpark, on the same machine and input, in one run.

`cases` lists the cases, `workloads` has their topologies and input, `contenders` run them on each engine, and `targets`
judges the results. Each case runs in its own process (`child`), round after round (`harness`), so that other work on
the machine affects all alike. Absolute figures mean little; `targets` and `report` compare within a round. `studies`
are separate programs.
"""
