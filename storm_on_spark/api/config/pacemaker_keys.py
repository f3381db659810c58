"""Keys of a Pacemaker server that Storm doesn't have, and Storm's keys of its logins."""

from __future__ import annotations

from typing import Final

from storm_on_spark.api.config.names import ConfigNames as N
from storm_on_spark.api.config.types import (
    BOOL,
    PORT,
    TEXT,
    TEXT_OR_TEXTS,
    TEXTS,
    ConfigKey,
    accepted,
    choice,
    honoured,
    integer,
    number,
)

PACEMAKER_KEYS: Final[tuple[ConfigKey, ...]] = (
    honoured(
        N.PACEMAKER_AUTH_METHOD,
        choice("NONE", "DIGEST", "KERBEROS"),
        "NONE",
        "How clients of a Pacemaker log in. `NONE`: every client may read and write everything.",
    ),
    honoured(
        N.PACEMAKER_AUTH_WRITES,
        BOOL,
        True,
        "Whether writes need a login, too, where `pacemaker.auth.method` is not `NONE`. False is what Storm does: "
        "anyone writes, and only reads need a login. Not a key of Storm's.",
    ),
    honoured(
        N.PACEMAKER_AUTH_PAYLOAD,
        TEXT,
        None,
        "Login with `DIGEST`, as `user:password`, instead of the section `PacemakerDigest` of a JAAS file. Not a key "
        "of Storm's.",
    ),
    honoured(
        N.JAVA_SECURITY_AUTH_LOGIN_CONFIG,
        TEXT,
        None,
        "JAAS file with the sections `PacemakerDigest`, `PacemakerServer`, `PacemakerClient` and `StormServer`.",
    ),
    honoured(
        N.PACEMAKER_KERBEROS_USERS,
        TEXTS,
        [],
        "Who may read and write with Kerberos: short names of the server's realm, or whole principals.",
    ),
    honoured(
        N.PACEMAKER_KERBEROS_PRINCIPAL,
        TEXT,
        None,
        "A server's principal, instead of `principal` in the section `PacemakerServer`. Not a key of Storm's.",
    ),
    honoured(
        N.PACEMAKER_KERBEROS_KEYTAB,
        TEXT,
        None,
        "A server's key table, instead of `keyTab` in the section `PacemakerServer`. Not a key of Storm's.",
    ),
    honoured(
        N.PACEMAKER_BIND_ADDRESS,
        TEXT,
        "127.0.0.1",
        "Address that a Pacemaker listens on. Storm's listens on all. Not a key of Storm's.",
    ),
    honoured(
        N.PACEMAKER_TLS,
        BOOL,
        False,
        "Whether a Pacemaker speaks TLS, by the files of `storm.tls.*`; Storm's clients can't. Not a key of Storm's.",
    ),
    honoured(
        N.PACEMAKER_METRICS_PORT,
        PORT,
        None,
        "Port of a Pacemaker's `/metrics`, at the same address. Not a key of Storm's.",
    ),
    honoured(
        N.PACEMAKER_HEARTBEAT_EXPIRY_SECS,
        number(1),
        600,
        "Seconds after which a heartbeat goes that nobody has written again. Not a key of Storm's.",
    ),
    honoured(N.PACEMAKER_MAX_CONNECTIONS, integer(1), 20_000, "Most connections of a Pacemaker. Not a key of Storm's."),
    honoured(
        N.PACEMAKER_MAX_CONNECTIONS_PER_ADDRESS,
        integer(1),
        10_000,
        "Most connections from one address. Not a key of Storm's.",
    ),
    honoured(
        N.PACEMAKER_IDLE_SECS,
        number(1),
        300,
        "Seconds until a connection without messages is closed. Not a key of Storm's.",
    ),
    honoured(
        N.PACEMAKER_LOGIN_SECS,
        number(1),
        10,
        "Seconds that a login may take, and a message that has begun. Not a key of Storm's.",
    ),
    honoured(
        N.PACEMAKER_CLIENT_MAX_KEYS,
        integer(1),
        100_000,
        "Most heartbeats of one client: of a login, or of an address. Not a key of Storm's.",
    ),
    honoured(
        N.PACEMAKER_CLIENT_MAX_MB,
        integer(1),
        512,
        "Most memory of one client's heartbeats, in MiB. Not a key of Storm's.",
    ),
    honoured(N.PACEMAKER_MAX_MB, integer(1), 2048, "Most memory of all heartbeats, in MiB. Not a key of Storm's."),
    honoured(
        N.PACEMAKER_CHILDOPTS,
        TEXT_OR_TEXTS,
        None,
        "JVM options of Pacemaker. A Pacemaker that finds them doesn't start: it is a Python process.",
    ),
    accepted(N.PACEMAKER_MAX_THREADS, integer(1), 50, "Most threads of a server.", "one event loop serves everybody"),
)
