"""What a sample says: one tuple was emitted or executed, or one message has ended."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any, Final, Literal, NamedTuple, get_args

Kind = Literal["emit", "execute", "end"]

MOST_LINE: Final = 4096
"""Bytes of one sample; values are cut long before that."""
_KINDS: Final = frozenset(get_args(Kind))
_MOST_ROOTS: Final = 8
_VERSION: Final = 1


class TupleEvent(NamedTuple):
    """A tuple that was emitted or executed, or a message that has ended.

    Example:
        >>> event = TupleEvent(1700000000.5, "emit", "words", 3, "default", roots=("30000000001",), values="('storm',)")
        >>> list(decoded(encoded([event]))) == [event]
        True
    """

    time: float
    """When it was emitted, when its execution began, or when its message ended; seconds since the epoch."""
    kind: Kind
    component: str
    """That emitted or executed it; of an end, the spout."""
    task: int
    stream: str = ""
    source: str = ""
    """The component that emitted what is executed."""
    source_task: int = -1
    roots: tuple[str, ...] = ()
    """The messages whose trees it belongs to, as hexadecimal numbers; none for an unanchored tuple."""
    edge: str = ""
    """Names this delivery of it: the same where it is emitted and where it is executed."""
    values: str = ""
    """Cut, and without secrets."""
    message_id: str = ""
    """Of what a spout emitted, and of an end."""
    secs: float = 0.0
    """How long its execution took; of an end, how long the message took."""
    outcome: str = ""
    """Of an execution: `acked`, `failed`, `raised` or `open`. Of an end: `acked`, `failed` or `timed out`."""
    run: str = ""
    """The execution of a task that it belongs to: what was emitted there follows from what was executed there."""


def encoded(events: Iterable[TupleEvent]) -> bytes:
    """Returns samples as lines of JSON."""
    lines = (json.dumps([_VERSION, *event], ensure_ascii=True, separators=(",", ":")) for event in events)
    return "".join(f"{line}\n" for line in lines if len(line) < MOST_LINE).encode()


def decoded(data: bytes) -> Iterator[TupleEvent]:
    """Yields the samples of lines; what is none, or was cut off, is left out."""
    for line in data.split(b"\n"):
        if not line or len(line) > MOST_LINE:
            continue
        try:
            fields: Any = json.loads(line)
            event = _checked(fields[1:]) if isinstance(fields, list) and fields[:1] == [_VERSION] else None
        except (ValueError, TypeError, RecursionError, OverflowError):
            continue
        if event is not None:
            yield event


def _checked(fields: list[Any]) -> TupleEvent | None:
    time, kind, component, task, stream, source, source_task, roots, edge, values, message_id, secs, outcome, run = (
        fields
    )
    texts = (component, stream, source, edge, values, message_id, outcome, run)
    if kind not in _KINDS or not all(isinstance(text, str) for text in texts) or not isinstance(roots, list):
        return None
    return TupleEvent(
        float(time),
        kind,
        component,
        int(task),
        stream,
        source,
        int(source_task),
        tuple(str(root) for root in roots[:_MOST_ROOTS]),
        edge,
        values,
        message_id,
        float(secs),
        outcome,
        run,
    )
