"""How a process ends by a signal, and how a command cleans up first.

Signals come in; exceptions, drained runs and removed folders go out. Begin with `signals.py`.
"""
