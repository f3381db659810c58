"""Every exception of the package.

```
Exception
├── StormError                      every error that Storm on Spark itself raises
│   ├── InvalidTopologyError        (ValueError)    the topology is not valid
│   ├── ConfigError                 (ValueError)    an unknown key, or a value of a wrong type or range
│   ├── TupleError                  (ValueError)    an emit or a read that doesn't fit the stream
│   │   └── UnknownFieldError       (KeyError)      a field that the stream doesn't have
│   ├── ComponentError              (RuntimeError)  user code of a spout, bolt or grouping failed
│   ├── OperationError              (RuntimeError)  a function of a stream program failed
│   ├── CheckpointError             (RuntimeError)  the checkpoint is damaged or belongs to something else
│   ├── SetupError                  (RuntimeError)  the machine lacks something: Java, a jar, a port
│   ├── UnusableError               (RuntimeError)  a component can do nothing at all
│   ├── NotAliveError               (RuntimeError)  no topology of that name runs
│   ├── AlreadyAliveError           (RuntimeError)  a topology of that name runs already
│   └── TopologyFailedError         (RuntimeError)  a running topology ended with an error
└── FailedException                 raised *by* user code: fail this tuple and continue
    └── ReportedFailedException     ... and show the error in the topology's status
```

All of them can be pickled: they travel between Python workers, spout hosts and the driver.
"""

from __future__ import annotations

from storm_on_spark.api.text.traces import own_trace, summary, whole_trace

_NO_TERMINAL = "pdb found no terminal; `storm-spark run --debugger FILE` runs the topology in one process that has one"


class StormError(Exception):
    """Root of all errors that Storm on Spark raises."""

    input: str = ""
    """The component's input at the time, as a short text without secrets; empty if unknown."""

    def __str__(self) -> str:
        # Not inherited: KeyError, a base of UnknownFieldError, would show the repr of the message.
        return Exception.__str__(self)


class InvalidTopologyError(StormError, ValueError):
    """The topology is not valid.

    Args:
        message: what was given, what is allowed, and where.
        component: the component at fault, if there is one.
        stream: the stream at fault, if there is one.

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
        key: the first key at fault, if there is one.
    """

    def __init__(self, message: str, *, key: str | None = None) -> None:
        super().__init__(message)
        self.key = key


class TupleError(StormError, ValueError):
    """A tuple does not fit its stream: number of values, undeclared stream, value that can't be grouped or pickled."""


class UnknownFieldError(TupleError, KeyError):
    """The stream has no field of that name."""


class ComponentError(StormError, RuntimeError):
    """User code of a spout, bolt, grouping or hook raised an exception.

    Args:
        component: id of the component.
        task: the task in which it happened; `None` if there are no tasks yet.
        phase: what was called: `"prepare"`, `"open"`, `"execute"`, `"next_tuple"`, `"ack"`, `"fail"`,
            `"grouping"`, `"cleanup"`, ...
        message: one sentence, usually type and text of the cause.
        cause_text: the whole traceback of the cause, for the log.
        own_trace: its frames in user code; see `storm_on_spark.api.text.traces`.

    Example:
        >>> print(ComponentError("count", 4, "execute", "KeyError: 'wrod'", ""))
        component "count" (task 4) failed in execute: KeyError: 'wrod'
    """

    def __init__(
        self, component: str, task: int | None, phase: str, message: str, cause_text: str = "", own_trace: str = ""
    ) -> None:
        super().__init__(component, task, phase, message, cause_text, own_trace)
        self.component = component
        self.task = task
        self.phase = phase
        self.message = message
        self.cause_text = cause_text
        self.own_trace = own_trace

    @classmethod
    def of(
        cls, component: str, task: int | None, phase: str, cause: BaseException, *, traced: bool = True
    ) -> ComponentError:
        """Returns the error for an exception of user code.

        Args:
            component: id of the component.
            task: the task in which it happened.
            phase: what was called.
            cause: the exception.
            traced: whether to include its traceback. Formatting one takes longer than executing most tuples.
        """
        traces = (whole_trace(cause), own_trace(cause)) if traced else ("", "")
        hint = f" ({_NO_TERMINAL})" if type(cause).__name__ == "BdbQuit" else ""
        return cls(component, task, phase, summary(cause) + hint, *traces)

    def __str__(self) -> str:
        where = "" if self.task is None else f" (task {self.task})"
        return f'component "{self.component}"{where} failed in {self.phase}: {self.message}'


class OperationError(StormError, RuntimeError):
    """A function that was given to an operation of a stream raised an exception; the message names the operation."""


class CheckpointError(StormError, RuntimeError):
    """The checkpoint can't be used: it is damaged, or belongs to another version or another topology."""


class SetupError(StormError, RuntimeError):
    """The machine lacks a requirement, such as Java. The message names it and says how to get it."""


class UnusableError(StormError, RuntimeError):
    """A component can't process any input: the topology fails even without `topology.fail.fast`."""


class NotAliveError(StormError, RuntimeError):
    """No topology with that name is running."""


class AlreadyAliveError(StormError, RuntimeError):
    """A topology with that name is already running."""


NotAliveException = NotAliveError
"""Storm's name."""
AlreadyAliveException = AlreadyAliveError
"""Storm's name."""
InvalidTopologyException = InvalidTopologyError
"""Storm's name."""


class TopologyFailedError(StormError, RuntimeError):
    """A running topology ended with an error.

    Args:
        topology: its name.
        reason: why, in one sentence.
        own_trace: the frames of the cause in user code; see `storm_on_spark.api.text.traces`. Python shows them below
            the error (from 3.11 on, as its note).
        cause_text: the whole traceback of the cause, for the log.
        given: the `input` of the component that failed.

    Example:
        >>> print(TopologyFailedError("word-count", "the spout host died"))
        topology "word-count" failed: the spout host died
    """

    def __init__(self, topology: str, reason: str, own_trace: str = "", cause_text: str = "", given: str = "") -> None:
        super().__init__(topology, reason, own_trace, cause_text, given)
        self.topology = topology
        self.reason = reason
        self.own_trace = own_trace
        self.cause_text = cause_text
        self.input = given
        if hasattr(self, "add_note"):
            if given:
                self.add_note(f"Its input: {given}")
            if own_trace:
                self.add_note(f"In your code:\n{own_trace}")

    def __str__(self) -> str:
        return f'topology "{self.topology}" failed: {self.reason}'


class FailedException(Exception):  # noqa: N818  # Storm's name  # Storm's name
    """Raised by a `BaseBasicBolt` or `BatchBolt` to fail its input and continue."""


class ReportedFailedException(FailedException):
    """Like `FailedException`, but the error is also reported: the topology's status shows it."""
