"""Errors of a cluster.

```
StormError
└── ClusterError                        whatever the cluster layer raises
    ├── RecordError        (ValueError) a znode, a file or a request holds something else than it should
    │   ├── FormatError                 a record of another release's format; its content is not known here
    │   └── SignatureError              a znode isn't signed with the cluster's secret as it has to be
    ├── NotLeaderError                  only the leader may do this; names the leader where there is one
    ├── TransitionError                 a topology's status doesn't allow what was asked
    ├── FencedError                     a leader that no longer is one tried to write
    ├── ConflictError                   a node is not as the writer believed it to be
    ├── OwnershipLostError              another driver owns the topology by now
    ├── CodeError                       a topology's code can't be packed, stored, fetched or verified
    │   └── ChecksumError               what arrived is not what was sent
    ├── WireError          (ValueError) bytes on a connection are not a message of Pacemaker's
    ├── LimitError                      more was sent, or asked for, than there may be
    ├── NotFoundError                   what was asked for does not exist
    ├── ExistsError                     what was to be created exists already
    ├── NotOfferedError                 the interface names it, and nothing here does it
    ├── AuthenticationError             a Nimbus can't authenticate a request
    │   └── ForbiddenError              it knows who asks, and they may not
    └── UnavailableError                ZooKeeper or every Nimbus is out of reach
        └── PacemakerError              a Pacemaker can't be reached, hasn't answered in time, or refuses
```
"""

from __future__ import annotations

from typing import Protocol

from storm_on_spark.api.errors import StormError


class ClusterError(StormError, RuntimeError):
    """Root of the errors of the cluster layer."""


class RecordError(ClusterError, ValueError):
    """A znode, a file or a request holds something else than it should."""


class FormatError(RecordError):
    """A record is of a format that this release doesn't read; another release may have written it."""


class SignatureError(RecordError):
    """A znode has no valid signature by the cluster's secret: it is ignored."""


class NotLeaderError(ClusterError):
    """Only the leader may do this.

    Args:
        message: what was asked of whom.
        leader: address `host:port` of the leader, where there is one.
    """

    def __init__(self, message: str, leader: str | None = None) -> None:
        super().__init__(message, leader)
        self.leader = leader

    def __str__(self) -> str:
        return str(self.args[0])


class TransitionError(ClusterError):
    """A topology's status does not allow the request, or the wait is too long."""


class FencedError(ClusterError):
    """A leader that no longer is one tried to write; nothing was changed."""


class ConflictError(ClusterError):
    """A node is not as the writer expected; nothing was changed. Read again, then decide again."""


class OwningDriver(Protocol):
    """The driver that owns a topology: an `Ownership` record."""

    @property
    def host(self) -> str:
        """Its machine."""

    @property
    def pid(self) -> int:
        """Its process there."""


class OwnershipLostError(ClusterError):
    """Another driver owns the topology by now, or its assignment has changed; this one must stop.

    Args:
        message: who tried to own what, and what stands against it.
        owner: the driver that owns the topology; None if it is the assignment that has changed.
    """

    def __init__(self, message: str, owner: OwningDriver | None = None) -> None:
        super().__init__(message, owner)
        self.owner = owner

    def __str__(self) -> str:
        return str(self.args[0])


class CodeError(ClusterError):
    """A topology's code can't be packed, stored, fetched or verified."""


class ChecksumError(CodeError):
    """Received data differs from what was sent."""


class WireError(ClusterError, ValueError):
    """Bytes on a connection are not a message of Pacemaker's; nothing that follows them can be trusted."""


class LimitError(ClusterError):
    """More was sent, or asked for, than there may be."""


class NotFoundError(ClusterError):
    """What was asked for does not exist."""


class ExistsError(ClusterError):
    """What was to be created exists already."""


class NotOfferedError(ClusterError):
    """The interface names it, and nothing here does it."""


class AuthenticationError(ClusterError):
    """A request to a Nimbus has no token, or a wrong one."""


class ForbiddenError(AuthenticationError):
    """A user whom the cluster knows may not do what was asked."""


class UnavailableError(ClusterError):
    """ZooKeeper, or every Nimbus, is out of reach."""


class PacemakerError(UnavailableError):
    """A Pacemaker can't be reached, hasn't answered in time, or refuses."""
