"""Every exception of the package.

```
Exception
├── StormError                      whatever Storm on Spark itself raises
│   ├── InvalidTopologyError        (ValueError)    the topology can't run as it is drawn
│   ├── ConfigError                 (ValueError)    a configuration key or value that makes no sense
│   ├── TupleError                  (ValueError)    an emit or a read that doesn't fit the stream
│   │   └── UnknownFieldError       (KeyError)      a field that the stream doesn't have
│   ├── ComponentError              (RuntimeError)  user code of a spout, bolt or grouping failed
│   ├── CheckpointError             (RuntimeError)  the checkpoint is damaged or belongs to something else
│   ├── SetupError                  (RuntimeError)  the machine lacks something: Java, a jar, a port
│   ├── NotAliveError               (RuntimeError)  no topology of that name runs
│   ├── AlreadyAliveError           (RuntimeError)  a topology of that name runs already
│   └── TopologyFailedError         (RuntimeError)  a running topology ended with an error
└── FailedException                 raised *by* user code: fail this tuple, go on
    └── ReportedFailedException     ... and show the error in the topology's status
```

All of them can be pickled: they travel between Python workers, spout hosts and the driver.
"""

from __future__ import annotations


class StormError(Exception):
    """Root of all errors that Storm on Spark raises."""

    def __str__(self) -> str:
        # Not inherited: KeyError, a base of UnknownFieldError, would show the repr of the message.
        return Exception.__str__(self)


class InvalidTopologyError(StormError, ValueError):
    """The topology can't run as it is drawn.

    Args:
        message: what was given, what is allowed and where.
        component: the component at fault, where there is one.
        stream: the stream at fault, where there is one.

    Example:
        >>> raise InvalidTopologyError('bolt "count" has no inputs', component="count")
        Traceback (most recent call last):
        ...
        storm_on_spark.api.errors.InvalidTopologyError: bolt "count" has no inputs
    """

    def __init__(self, message: str, *, component: str | None = None, stream: str | None = None) -> None:
        super().__init__(message)
        self.component = component
        self.stream = stream


class ConfigError(StormError, ValueError):
    """A configuration key is unknown, or its value has the wrong type or range.

    Args:
        message: every problem found, one per line.
        key: the first key at fault, where there is one.
    """

    def __init__(self, message: str, *, key: str | None = None) -> None:
        super().__init__(message)
        self.key = key


class TupleError(StormError, ValueError):
    """A tuple doesn't fit: number of values, undeclared stream, value that can't be grouped or pickled."""


class UnknownFieldError(TupleError, KeyError):
    """A field was asked for that the stream doesn't have."""


class ComponentError(StormError, RuntimeError):
    """User code of a spout, bolt, grouping or hook raised.

    Args:
        component: id of the component.
        task: the task in which it happened; `None` before there are tasks.
        phase: what was called: `"prepare"`, `"open"`, `"execute"`, `"next_tuple"`, `"ack"`, `"fail"`,
            `"grouping"`, `"cleanup"`, ...
        message: one sentence, usually type and text of the cause.
        cause_text: the formatted traceback of the cause, for the log.

    Example:
        >>> print(ComponentError("count", 4, "execute", "KeyError: 'wrod'", ""))
        component "count" (task 4) failed in execute: KeyError: 'wrod'
    """

    def __init__(self, component: str, task: int | None, phase: str, message: str, cause_text: str = "") -> None:
        super().__init__(component, task, phase, message, cause_text)
        self.component = component
        self.task = task
        self.phase = phase
        self.message = message
        self.cause_text = cause_text

    def __str__(self) -> str:
        where = "" if self.task is None else f" (task {self.task})"
        return f'component "{self.component}"{where} failed in {self.phase}: {self.message}'


class CheckpointError(StormError, RuntimeError):
    """The checkpoint can't be used: damaged, of a later version, or of another topology."""


class SetupError(StormError, RuntimeError):
    """The machine lacks something that is needed; the message says what and how to get it."""


class NotAliveError(StormError, RuntimeError):
    """No topology of that name is running."""


class AlreadyAliveError(StormError, RuntimeError):
    """A topology of that name is already running."""


class TopologyFailedError(StormError, RuntimeError):
    """A running topology ended with an error.

    Args:
        topology: its name.
        reason: why, in one sentence.

    Example:
        >>> print(TopologyFailedError("word-count", "the spout host died"))
        topology "word-count" failed: the spout host died
    """

    def __init__(self, topology: str, reason: str) -> None:
        super().__init__(topology, reason)
        self.topology = topology
        self.reason = reason

    def __str__(self) -> str:
        return f'topology "{self.topology}" failed: {self.reason}'


class FailedException(Exception):  # noqa: N818  # Storm's name  # Storm's name
    """Raised by a `BaseBasicBolt` (or a `BatchBolt`) to fail its input and go on."""


class ReportedFailedException(FailedException):
    """Like `FailedException`, and the error is reported: it shows in the topology's status."""
