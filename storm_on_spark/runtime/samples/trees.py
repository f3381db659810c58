"""The way of one message: from samples to the tree of its tuples, with the times between them. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from storm_on_spark.runtime.samples.events import TupleEvent


@dataclass(frozen=True)
class Step:
    """A tuple of a tree: emitted by one component, and executed by another or not yet."""

    depth: int
    emit: TupleEvent | None
    """None if its emit was not among the samples."""
    execute: TupleEvent | None
    """None if it was not executed, or its execution is not among the samples."""

    @property
    def waited(self) -> float | None:
        """Seconds from its emit to its execution; None if one of them is not known."""
        return None if self.emit is None or self.execute is None else max(0.0, self.execute.time - self.emit.time)


@dataclass(frozen=True)
class Tree:
    """All that is known of the tuples that follow from one message."""

    root: str
    steps: tuple[Step, ...] = ()
    """Each after the one that it follows from."""
    end: TupleEvent | None = None
    began: float = 0.0
    ended: float = 0.0
    spout: str = ""
    message_id: str = field(default="")

    @property
    def outcome(self) -> str:
        """What became of the message."""
        return "not known yet" if self.end is None else self.end.outcome


def tree_of(events: Iterable[TupleEvent], root: str) -> Tree | None:
    """Returns the way of a message; None if there is no sample of it.

    Args:
        events: samples of a topology.
        root: the message, as samples name it.
    """
    own = sorted((event for event in events if root in event.roots), key=lambda event: event.time)
    if not own:
        return None
    emits = {event.edge: event for event in own if event.kind == "emit" and event.edge}
    executes = {event.edge: event for event in own if event.kind == "execute" and event.edge}
    loose = [event for event in own if event.kind != "end" and not event.edge]
    ends = [event for event in own if event.kind == "end"]
    #: What was emitted in an execution follows from what was executed there.
    made_in: dict[str, list[str]] = {}
    for edge, event in emits.items():
        made_in.setdefault(event.run, []).append(edge)
    seen: set[str] = set()
    steps: list[Step] = []

    def walk(edge: str, depth: int) -> None:
        todo = [(edge, depth)]
        while todo:
            at, level = todo.pop()
            if at in seen:
                continue
            seen.add(at)
            executed = executes.get(at)
            steps.append(Step(level, emits.get(at), executed))
            if executed is not None:
                todo += [(one, level + 1) for one in reversed(made_in.get(executed.run, ()))]

    runs = {event.run for event in executes.values()}
    for edge, event in emits.items():
        if event.run not in runs:
            walk(edge, 0)
    for edge in executes:
        if edge not in emits:
            walk(edge, 0)
    for edge in (*emits, *executes):
        walk(edge, 0)
    steps += [
        Step(0, event if event.kind == "emit" else None, event if event.kind == "execute" else None) for event in loose
    ]
    first = next((event for event in own if event.kind == "emit" and event.message_id), None)
    tree = Tree(
        root,
        tuple(steps),
        ends[-1] if ends else None,
        min(event.time for event in own),
        max(event.time + (event.secs if event.kind == "execute" else 0.0) for event in own),
        ends[-1].component if ends else "" if first is None else first.component,
    )
    known = tree.end if first is None else first
    return replace(tree, message_id="" if known is None else known.message_id)
