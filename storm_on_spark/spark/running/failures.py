"""Why a Spark query failed, in one line.

Spark reports a failure as a chain of exceptions with their stacks, in which that of a Python process is one message.
What a user wants to know is at the end of the chain.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator, Mapping
from typing import Final

from storm_on_spark.api.errors import TopologyFailedError
from storm_on_spark.api.text.traces import with_sources
from storm_on_spark.runtime.reports.report import Failure
from storm_on_spark.spark.checkpoint.owner import Fence

_MAX_CHARS = 500
_PYTHON = "Traceback (most recent call last):"
"""Begins a trace of Python."""
_WRAPPED = "py4j.protocol.Py4JJavaError:"
"""So ends the traceback of a Python callback that got the error from Java; the reason follows."""
_CAUSE = re.compile(r"^(?:Caused by)?: (?!py4j\.Py4JException)(.+)$", re.MULTILINE)
"""Causes; py4j begins the error that a Python callback got from Java with a colon, and wraps it once more."""
_CONDITION = re.compile(r"(\[[A-Z][A-Z_.]+\] .+)$", re.MULTILINE)
_SOURCE_RUNNER = re.compile(r"\bPythonStreamingSourceRunner\.(?!init\b)\w+\(")
"""A frame of what talks to the process in which Spark asks a Python source for offsets. Spark starts it only once."""
_LATE = ("Python worker failed to connect back", "waiting for the Python worker to connect back")
LATE_REMEDY: Final = (
    "this machine is too busy, or short of memory: end other programs, or take fewer of its cores (such as --master "
    "local[1])"
)
"""What to do about such a process."""
_PACKAGE = re.compile(r"^(?:\w+\.)+(?=\w+(?::|$))")


def is_late_process(trace: str) -> bool:
    """Returns whether a query failed because a Python process of the driver's did not connect to Spark in time.

    Spark starts these when a query starts, each without another attempt, and waits 10 s for each (Spark 4.2.1:
    `PythonWorkerFactory.createSimpleWorker`; there is no setting for it).
    """
    return any(sign in trace for sign in _LATE)


def reason_of(trace: str, advice: Mapping[str, str] | None = None) -> str:
    r"""Returns the innermost cause in a query's stack trace.

    Args:
        trace: as Java prints it, with causes.
        advice: by error condition that the cause may name: what to do.

    Example:
        >>> reason_of("org.apache.spark.SparkException: Job aborted.\nCaused by: java.io.IOException: No space left")
        'IOException: No space left'
        >>> reason_of("java.io.IOException: [NO_DISK] No space left", {"NO_DISK": "delete what you don't need"})
        "IOException: [NO_DISK] No space left; delete what you don't need"
    """
    reason = _innermost(trace)
    found = [clause for condition, clause in (advice or {}).items() if f"[{condition}]" in trace]
    return f"{reason.rstrip(':')}; {found[0]}" if found else reason


def _innermost(trace: str) -> str:
    if is_late_process(trace):
        return f"a Python process that Spark needs was not ready within 10 s; {LATE_REMEDY}"
    python = [line for line in _python_ends(trace) if not line.startswith(_WRAPPED)]
    if python:
        # Spark puts the SQLSTATE of its own exception after the message.
        return _short(python[-1].partition(" SQLSTATE: ")[0])
    causes = _CAUSE.findall(trace)
    innermost = causes[-1] if causes else (trace.strip().splitlines() or ["unknown"])[0]
    if _SOURCE_RUNNER.search(trace):
        return (
            f"the process in which Spark asks for new input ended unexpectedly ({_short(innermost)}); look for "
            "what ended it, such as a lack of memory, and start the topology again: with a checkpoint it continues "
            "where it stopped"
        )
    conditions = _CONDITION.findall(trace)
    if conditions and "[" not in innermost:
        return f"{_short(innermost)} ({_short(conditions[-1].partition(' SQLSTATE: ')[0])})"
    return _short(innermost)


def _python_ends(trace: str) -> list[str]:
    """Returns the lines that end traces of Python. Spark indents what a daemon of Python workers printed."""
    ends: list[str] = []
    #: Indentations of traces without their end, the outermost first. Each begins with the one before it.
    waiting: list[str] = []
    for line in trace.split("\n"):
        while waiting and line and not line.startswith((f"{waiting[-1]} ", f"{waiting[-1]}\t")):
            indent = waiting.pop()
            rest = line[len(indent) :]
            if line.startswith(indent) and rest[:1].strip():
                ends.append(rest)
        if line.endswith(_PYTHON):
            indent = line[: -len(_PYTHON)]
            if not indent.strip(" \t"):
                waiting.append(indent)
            elif not waiting or waiting[0]:
                # It is indented by nothing: what stands before it on its line is Java's.
                waiting.insert(0, "")
    return ends


@contextlib.contextmanager
def reporting_failure(topology: str, fence: Fence | None = None) -> Iterator[None]:
    """Turns an error of Java within into ours: its text is fetched from the JVM, which may be gone when it is printed.

    Args:
        topology: its name.
        fence: of its checkpoint, which Spark may not have understood because another driver writes it now.

    Raises:
        TopologyFailedError: Spark raised; the reason is that owner, or the innermost cause.
    """
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    try:
        yield
    except (Py4JError, PySparkException) as error:
        replaced = None if fence is None else fence.lost()
        raise TopologyFailedError(topology, replaced or reason_of(str(error))) from None


def topology_failed(topology: str, failure: Failure) -> TopologyFailedError:
    """Returns the error that a topology ends with."""
    trace = with_sources(failure.own_trace)
    return TopologyFailedError(topology, failure.message, trace, failure.trace, failure.input)


def _short(line: str) -> str:
    line = _PACKAGE.sub("", line.strip())
    return line if len(line) <= _MAX_CHARS else f"{line[:_MAX_CHARS]}..."
