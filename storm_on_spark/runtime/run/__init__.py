"""The specification of a run, which every process gets: the plan as tables, and the code of the components.

A placed plan and the code come in once; tables, settings and instances for every task go out. Nothing changes during
the run. Begin with `spec.py`; `wiring.py` has the tables.
"""
