"""Noticing spouts that hang, or hold the interpreter of their host.

The stacks of a host's threads come in; errors for the status and the end of the host go out. Begin with `blocked.py`.
"""
