"""Which steps of a job come next, and its status. Pure: no I/O and no clock."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from typing import Final

from storm_on_spark.xd.dsl import Flow, Module, Sequence, Split, Transition
from storm_on_spark.xd.tree.jobs import ENDED, Status, StepNode

_ENDS: Final[dict[str, Status]] = {"$END": "COMPLETED", "$FAIL": "FAILED", "$STOP": "STOPPED"}


@dataclass(frozen=True)
class Progress:
    """How far a flow has come.

    Args:
        status: None while it has not ended.
        next: labels of the steps that can be started now.
        running: whether a step is running.
        broken: labels of the steps with which it ended without completing. A restart runs these again.
    """

    status: Status | None
    next: tuple[str, ...] = ()
    running: bool = False
    broken: tuple[str, ...] = ()


def progress(flow: Flow, steps: Mapping[str, StepNode], *, stopping: bool = False) -> Progress:
    """Returns how far a job has come.

    A sequence continues after a completed step, or at the target of the transition for its exit status. Any other step
    ends it. A split waits for all of its branches, even if one has failed.

    Args:
        flow: the job's.
        steps: those that were started, by label.
        stopping: whether a user has asked for its end; then no step is started.

    Example:
        >>> from storm_on_spark.xd.dsl import parse_job
        >>> flow = parse_job("load | FAILED = clean || <report & mail>").flow
        >>> progress(flow, {"load": StepNode(status="COMPLETED", execution=1)}).next
        ('report', 'mail')
        >>> progress(flow, {"load": StepNode(status="FAILED", execution=1)}).next
        ('clean',)
    """
    found = _of(flow, steps)
    if not stopping or found.status is not None:
        return found
    return replace(found, status=None if found.running else "STOPPED", next=())


def _of(flow: Flow, steps: Mapping[str, StepNode]) -> Progress:
    if isinstance(flow, Module):
        step = steps.get(flow.label)
        if step is None:
            return Progress(None, (flow.label,))
        if step.status not in ENDED:
            return Progress(None, running=True)
        return _ended(step.status, flow)
    if isinstance(flow, Sequence):
        return _of_sequence(flow, steps)
    return _of_split(flow, steps)


def _of_sequence(flow: Sequence, steps: Mapping[str, StepNode]) -> Progress:
    numbers = {part.label: number for number, part in enumerate(flow.parts) if isinstance(part, Module)}
    asides = {step.label: step for step in flow.asides}
    number = 0
    while number < len(flow.parts):
        part = flow.parts[number]
        found = _of(part, steps)
        if found.status is None or found.status == "STOPPED":
            return found
        exit_status: str = found.status
        if isinstance(part, Module):
            exit_status = steps[part.label].exit_status or exit_status
            chosen = _chosen(part.transitions, exit_status)
            if chosen is not None and chosen.target in numbers:
                number = numbers[chosen.target]
                continue
            if chosen is not None and chosen.target in asides:
                return _of(asides[chosen.target], steps)
            if chosen is not None:
                return _ended(_ENDS[chosen.target], part)
            if number == len(flow.parts) - 1 and not part.transitions:
                return found
            if found.status == "COMPLETED" != exit_status:
                return _ended("FAILED", part)
        if found.status == "FAILED":
            return found
        number += 1
    return Progress("COMPLETED")


def _ended(status: Status, step: Module) -> Progress:
    return Progress(status, broken=() if status == "COMPLETED" else (step.label,))


def _chosen(transitions: tuple[Transition, ...], exit_status: str) -> Transition | None:
    """Returns the most specific transition for an exit status, as Spring Batch does."""
    fitting = [each for each in transitions if fnmatchcase(exit_status, each.status.replace("[", "[[]"))]
    return min(
        fitting,
        key=lambda each: (each.status.count("*"), each.status.count("?"), -len(each.status)),
        default=None,
    )


def _of_split(flow: Split, steps: Mapping[str, StepNode]) -> Progress:
    branches = [_of(branch, steps) for branch in flow.branches]
    broken = tuple(label for branch in branches for label in branch.broken)
    statuses = {branch.status for branch in branches}
    if None in statuses:
        labels = tuple(label for branch in branches for label in branch.next)
        return Progress(None, labels, any(branch.running for branch in branches), broken)
    worst: tuple[Status, ...] = ("FAILED", "STOPPED", "COMPLETED")
    return Progress(next(status for status in worst if status in statuses), broken=broken)
