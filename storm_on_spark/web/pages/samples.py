"""Samples of tuples: what is sampled, the messages and tuples that were, and the way of one message."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

from storm_on_spark.api.errors import NotAliveError
from storm_on_spark.runtime.samples.events import TupleEvent
from storm_on_spark.runtime.samples.trees import Tree, tree_of
from storm_on_spark.web.pages.question import Question
from storm_on_spark.web.pictures.trees import tree_picture

_MOST_MESSAGES: Final = 50
_MOST_TUPLES: Final = 100
_BAD: Final = frozenset({"raised", "failed", "timed out"})


@dataclass(frozen=True)
class Message:
    """A message with at least one sample."""

    root: str
    component: str
    """The spout; empty where its samples are not there."""
    message_id: str
    began: float
    outcome: str
    """What became of it; empty while that is not known."""
    secs: float | None
    """How long it took, from emit to end."""
    tuples: int
    """Executions that were sampled."""
    culprit: str
    """The component that raised or failed first; empty for none."""
    given: str
    """What that had in hand."""

    @property
    def is_bad(self) -> bool:
        """Whether a component failed it, or it timed out."""
        return bool(self.culprit) or self.outcome in _BAD


def samples(question: Question) -> dict[str, Any]:
    """What is sampled, the last messages, and the last tuples; of one component, or only what failed."""
    view = question.site.topology(question.path["id"])
    found = question.site.samples(view.id)
    component, bad = question.query.get("component", ""), bool(question.query.get("bad"))
    messages = [
        each
        for each in messages_of(found.events)
        if (not bad or each.is_bad) and (not component or component in (each.component, each.culprit))
    ]
    if component and not bad:
        roots = {root for event in found.events if event.component == component for root in event.roots}
        messages = [each for each in messages_of(found.events) if each.root in roots]
    tuples = [
        event
        for event in found.events
        if event.kind == "execute"
        and (not component or event.component == component)
        and (not bad or event.outcome in _BAD)
    ]
    return {
        "view": view,
        "rates": sorted(found.rates.items()),
        "sampled": any(found.rates.values()),
        "component": component,
        "bad": bad,
        "messages": messages[:_MOST_MESSAGES],
        "tuples": list(reversed(tuples))[:_MOST_TUPLES],
        "names": [part.id for part in view.components],
    }


def tree(question: Question) -> dict[str, Any]:
    """The way of one message."""
    view = question.site.topology(question.path["id"])
    root = question.path["root"]
    found = tree_of(question.site.samples(view.id).events, root)
    if found is None:
        raise NotAliveError(
            f"of message {root[:80]!r} there is no sample, or none any more: the last ones of a topology are kept"
        )
    return {"view": view, "tree": found, "picture": tree_picture(found), "slowest": slowest(found)}


def slowest(found: Tree) -> str:
    """Returns where a message spent most of its time, as a sentence; empty where no time is known."""
    parts: list[tuple[float, str]] = []
    for step in found.steps:
        if step.execute is not None:
            if step.waited is not None:
                parts.append((step.waited, f"waiting for {step.execute.component}"))
            parts.append((step.execute.secs, f"in execute of {step.execute.component}"))
    return max(parts, default=(0.0, ""))[1]


def messages_of(events: Iterable[TupleEvent]) -> list[Message]:
    """Returns the messages of samples, newest first."""
    by_root: dict[str, list[TupleEvent]] = {}
    for event in events:
        for root in event.roots:
            by_root.setdefault(root, []).append(event)
    found = [_message(root, own) for root, own in by_root.items()]
    return sorted(found, key=lambda each: -each.began)


def _message(root: str, own: list[TupleEvent]) -> Message:
    ends = [event for event in own if event.kind == "end"]
    first = next((event for event in own if event.kind == "emit" and event.message_id), None)
    bad = next((event for event in own if event.kind == "execute" and event.outcome in ("raised", "failed")), None)
    known = first or (ends[0] if ends else None)
    return Message(
        root,
        "" if known is None else known.component,
        "" if known is None else known.message_id,
        min(event.time for event in own),
        ends[-1].outcome if ends else "",
        ends[-1].secs if ends else None,
        sum(event.kind == "execute" for event in own),
        "" if bad is None else bad.component,
        "" if bad is None else bad.values,
    )
