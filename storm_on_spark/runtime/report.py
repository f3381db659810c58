"""What stages tell the sink about themselves."""

from __future__ import annotations

from typing import NamedTuple

from storm_on_spark.api.errors import ComponentError, StormError

USER_ERRORS = (Exception, SystemExit)
"""What counts as an error of user code. A `sys.exit()` in it would end a thread or a worker without a word."""


class TaskMetrics(NamedTuple):
    """What one task did in one execution."""

    component: str
    task: int
    executed: int
    acked: int
    failed: int
    emitted: dict[str, int]
    """By stream."""
    seconds: float


class Failure(NamedTuple):
    """An error of user code, or of the topology as a whole."""

    component: str
    task: int | None
    message: str
    trace: str
    fatal: bool

    @classmethod
    def of(cls, error: StormError, *, fatal: bool = True) -> Failure:
        """Returns the record of an exception."""
        if isinstance(error, ComponentError):
            return cls(error.component, error.task, str(error), error.cause_text, fatal)
        return cls("", None, str(error), "", fatal)
