"""Errors of DRPC.

```
StormError
└── DRPCExecutionException   a request has no result; its type says why
```
"""

from __future__ import annotations

from enum import IntEnum

from storm_on_spark.api.errors import StormError


class DRPCExceptionType(IntEnum):
    """Why a request has no result; names and numbers are Storm's."""

    INTERNAL_ERROR = 0
    """The server can't take it, or can't be reached."""
    SERVER_SHUTDOWN = 1
    """The server ended while the request waited."""
    SERVER_TIMEOUT = 2
    """No result came within `drpc.request.timeout.secs`."""
    FAILED_REQUEST = 3
    """The topology failed the request."""


class DRPCExecutionException(StormError, RuntimeError):  # noqa: N818  # Storm's name
    """A request has no result.

    Args:
        message: what happened.
        type: why.

    Example:
        >>> error = DRPCExecutionException("no result came within 600 s", DRPCExceptionType.SERVER_TIMEOUT)
        >>> error.type.name, str(error)
        ('SERVER_TIMEOUT', 'no result came within 600 s')
    """

    def __init__(self, message: str, type: DRPCExceptionType = DRPCExceptionType.FAILED_REQUEST) -> None:  # noqa: A002
        super().__init__(message)
        self.type = type

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (str(self), self.type)
