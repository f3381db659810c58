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


def check_text(text: str) -> None:
    """Checks that text can be sent.

    Raises:
        DRPCExecutionException: it has half of a surrogate pair, which UTF-8 doesn't have.

    Example:
        >>> check_text("ok" + chr(0xDCFF))
        Traceback (most recent call last):
        ...
        storm_on_spark.drpc.errors.DRPCExecutionException: U+DCFF at position 2 is no character that UTF-8 has
    """
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise DRPCExecutionException(
            f"U+{ord(text[error.start]):04X} at position {error.start} is no character that UTF-8 has",
            DRPCExceptionType.INTERNAL_ERROR,
        ) from error
