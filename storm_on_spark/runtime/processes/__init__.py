"""Processes of the operating system: parents, groups, what they print, and servers for development and tests.

Ids of processes, signals, sockets and files come in, and what was seen of them goes out; tuples never pass here. Each
file is one thing that others need by itself. Begin with the file that is named after it.
"""
