"""Which steps of a job come next, and what it has come to. Pure: no I/O and no clock."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from storm_on_spark.xd.dsl import Flow, Module, Sequence
from storm_on_spark.xd.tree.jobs import ENDED, Status


@dataclass(frozen=True)
class Progress:
    """How far a flow has come.

    Args:
        status: None while it has not ended.
        next: labels of the steps that can be started now.
        running: whether a step runs.
    """

    status: Status | None
    next: tuple[str, ...] = ()
    running: bool = False


def progress(flow: Flow, states: Mapping[str, Status], *, stopping: bool = False) -> Progress:
    """Returns how far a job has come.

    A sequence goes on behind a step that has completed, and ends with one that has not. A split waits for all of its
    branches, also where one has failed.

    Args:
        flow: the job's.
        states: of the steps that were started, by label.
        stopping: whether it is to end: then no step is started.

    Example:
        >>> from storm_on_spark.xd.dsl import parse_job
        >>> flow = parse_job("load || <report & mail>").flow
        >>> progress(flow, {"load": "COMPLETED"}).next
        ('report', 'mail')
        >>> progress(flow, {"load": "FAILED"}).status
        'FAILED'
    """
    found = _of(flow, states)
    if not stopping or found.status is not None:
        return found
    return Progress(None, running=True) if found.running else Progress("STOPPED")


def _of(flow: Flow, states: Mapping[str, Status]) -> Progress:
    if isinstance(flow, Module):
        state = states.get(flow.label)
        if state is None:
            return Progress(None, (flow.label,))
        return Progress(state) if state in ENDED else Progress(None, running=True)
    if isinstance(flow, Sequence):
        for part in flow.parts:
            found = _of(part, states)
            if found.status != "COMPLETED":
                return found
        return Progress("COMPLETED")
    branches = [_of(branch, states) for branch in flow.branches]
    if any(branch.status is None for branch in branches):
        labels = tuple(label for branch in branches for label in branch.next)
        return Progress(None, labels, any(branch.running for branch in branches))
    statuses = {branch.status for branch in branches}
    for status in ("FAILED", "STOPPED"):
        if status in statuses:
            return Progress(status)
    return Progress("COMPLETED")
