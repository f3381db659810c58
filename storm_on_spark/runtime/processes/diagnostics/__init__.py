"""What a process shows of itself: labelled output, log levels, breakpoints, metrics, and the task it is executing.

Printed lines, settings of log levels and figures from `/proc` come in; labelled lines and figures go out.
Begin with `prints.py`.
"""
