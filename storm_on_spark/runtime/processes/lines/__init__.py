"""Authenticated connections between the driver's machine and processes of the same run on other machines.

Sockets come in; lines go out, over which both sides may unpickle what the other one says. Begin with `line.py`.

    line.py      an authenticated connection: pure protocol over a socket
    listener.py  accepts connections from processes that know the secret
    calls.py     calls of other processes to it
"""
