"""The rules of windows: pure state machines, without clock and without I/O.

Tuples, times and watermarks of a bolt's task go in. Windows to be evaluated come out, with the tuples that left them.
"""
