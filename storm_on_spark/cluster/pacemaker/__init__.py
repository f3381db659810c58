"""Pacemaker: heartbeats in memory, over Storm's own wire protocol.

    messages, frames        the wire format, as pure functions
    digest, kerberos, jaas  logins: both sides, and where Storm's configuration has them
    settings                what a configuration says; `daemon_login` and `topology_login` are for clients, too
    access                  who may do what: one table
    heartbeats, operations  the map, and the operations on it; pure
    login, connection       one client, from its first byte to its last
    server, metrics         an event loop on a thread, and what it counts

A client writes `frame(Message(...))`, cuts what comes in by `Frames`, and reads it by `decode`. It logs in before
anything else: with DIGEST it sends `control(Control.SASL_TOKEN_MESSAGE_REQUEST)`, then what `Answering.answer` makes of
the token that comes, and has `Answering.check` look at the next one; with Kerberos it sends what `KerberosClient.step`
returns, and steps again with each token. Control code -203 says that it is done. Storm's server says that twice after
Kerberos. `NOT_AUTHORIZED` is the answer to what a client may not do, or where it would keep too much.
"""
