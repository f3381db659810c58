"""The rules of windows: pure state machines, without clock and without I/O.

What happens in a bolt's task goes in; windows to be evaluated come out, and what has left them.
"""
