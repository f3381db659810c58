"""Who may do what: one table over all operations, pure.

A client is anyone (not logged in), a daemon (logged in with the cluster's name and password, or as one of
`pacemaker.kerberos.users`), or a topology (logged in with what is derived for it from the cluster's secret).
"""

from __future__ import annotations

from typing import Final, Literal

import msgspec

from storm_on_spark.cluster.pacemaker.messages import REQUESTS, MessageType

Method = Literal["NONE", "DIGEST", "KERBEROS"]
"""`pacemaker.auth.method`."""
Role = Literal["anyone", "daemon", "topology"]
Scope = Literal["nothing", "own", "everything"]
"""Of the paths that an operation may touch. `own`: those of the topology."""

HEARTBEATS: Final = "/workerbeats"
"""Where Storm's workers, and ours, keep their heartbeats: `/workerbeats/<topology>/...`."""
SUPERVISORS_ID: Final = "__supervisors"
"""Takes the place of a topology's id where supervisors beat, which Storm's don't: so they log in as a topology does."""
WRITES: Final = frozenset(
    {MessageType.CREATE_PATH, MessageType.SEND_PULSE, MessageType.DELETE_PATH, MessageType.DELETE_PULSE_ID}
)
READS: Final = frozenset(REQUESTS) - WRITES

_TABLE: Final[dict[tuple[str, Role], tuple[Scope, Scope]]] = {
    # (rule, role): what it may read, what it may write.
    ("open", "anyone"): ("everything", "everything"),
    ("open", "topology"): ("everything", "everything"),
    ("open", "daemon"): ("everything", "everything"),
    ("reads", "anyone"): ("nothing", "everything"),
    ("reads", "topology"): ("nothing", "own"),
    ("reads", "daemon"): ("everything", "everything"),
    ("all", "anyone"): ("nothing", "nothing"),
    ("all", "topology"): ("nothing", "own"),
    ("all", "daemon"): ("everything", "everything"),
}


class Identity(msgspec.Struct, frozen=True):
    """The identity of a client.

    `name` is a topology's id for a topology, a login's name for a daemon, and an address for anyone.
    """

    role: Role
    name: str

    def __str__(self) -> str:
        return f"{self.role} {self.name}"


class Rules(msgspec.Struct, frozen=True):
    """What counts at one server.

    Example:
        >>> rules = Rules("DIGEST")
        >>> topology = Identity("topology", "words-1")
        >>> rules.allows(topology, MessageType.SEND_PULSE, "/workerbeats/words-1/a-6700")
        True
        >>> rules.allows(topology, MessageType.SEND_PULSE, "/workerbeats/words-12/a-6700")
        False
    """

    method: Method = "NONE"
    writes: bool = True
    """Whether writes need a login too; False is what Storm does."""

    @property
    def needs_login(self) -> bool:
        """Whether every operation needs a login."""
        return all(self.scope("anyone", operation) == "nothing" for operation in REQUESTS)

    def scope(self, role: Role, operation: MessageType) -> Scope:
        """Returns which paths an operation may touch; none for an unknown operation."""
        rule = "open" if self.method == "NONE" else "all" if self.writes else "reads"
        read, write = _TABLE[rule, role]
        return read if operation in READS else write if operation in WRITES else "nothing"

    def allows(self, who: Identity, operation: MessageType, path: str) -> bool:
        """Tells whether a client may do something.

        Args:
            who: the client.
            operation: a request.
            path: that it is about, checked by `checked_path`.
        """
        scope = self.scope(who.role, operation)
        if scope == "own":
            own = f"{HEARTBEATS}/{who.name}"
            return path == own or path.startswith(f"{own}/")
        return scope == "everything"
