"""The results of the parsers: a stream of modules between channels, and a job of steps."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal


@dataclass(frozen=True)
class Channel:
    """A named channel, such as `queue:orders`."""

    kind: Literal["queue", "topic"]
    name: str


@dataclass(frozen=True)
class Tap:
    """A tap on a stream, a job or a channel; `label` names the module whose output is tapped."""

    kind: Literal["stream", "job", "queue", "topic"]
    name: str
    label: str | None = None
    index: int | None = None


@dataclass(frozen=True)
class Transition:
    """Where a job continues after a step that ends with a certain exit status.

    Args:
        status: the exit status; `*` stands for any characters in it, and `?` for one.
        target: the label of a step of the same sequence, or `$END`, `$FAIL` or `$STOP`.
    """

    status: str
    target: str


@dataclass(frozen=True)
class Module:
    """One module of a stream, or one step of a job; without its own label, its name is its label.

    Positions count characters of the definition, from 0. They are for errors, and two modules that differ only in them
    are equal.
    """

    name: str
    label: str
    options: tuple[tuple[str, str], ...] = ()
    transitions: tuple[Transition, ...] = ()
    """Of a step in a `Sequence`."""
    position: int = field(default=0, compare=False, repr=False)
    value_positions: tuple[int, ...] = field(default=(), compare=False, repr=False)
    """Where the value of each option begins, after its quote."""


@dataclass(frozen=True)
class Stream:
    """A definition: modules in the order of the flow."""

    modules: tuple[Module, ...]
    name: str | None = None
    source: Channel | Tap | None = None
    sink: Channel | None = None


@dataclass(frozen=True)
class Sequence:
    """Parts of a job that run one after the other.

    Args:
        parts: in their order.
        asides: steps that only transitions lead to; the sequence ends with them.
    """

    parts: tuple[Flow, ...]
    asides: tuple[Module, ...] = ()


@dataclass(frozen=True)
class Split:
    """Parts of a job that run at the same time; the next part waits for all of them."""

    branches: tuple[Flow, ...]


Flow = Module | Sequence | Split
"""A step, or several in their order."""


@dataclass(frozen=True)
class Job:
    """A definition of a job."""

    flow: Flow
    name: str | None = None

    @property
    def modules(self) -> tuple[Module, ...]:
        """The steps, in the order of the text."""
        return tuple(sorted(_modules(self.flow), key=lambda module: module.position))


def _modules(flow: Flow) -> Iterator[Module]:
    if isinstance(flow, Module):
        yield flow
        return
    for part in (*flow.parts, *flow.asides) if isinstance(flow, Sequence) else flow.branches:
        yield from _modules(part)
