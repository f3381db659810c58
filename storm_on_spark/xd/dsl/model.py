"""What the parser makes: a stream of modules between channels."""

from __future__ import annotations

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
class Module:
    """One module of a stream; without a label of its own, its name is its label.

    Positions count characters of the definition, from 0. They are for errors, and two modules that differ only in them
    are equal.
    """

    name: str
    label: str
    options: tuple[tuple[str, str], ...] = ()
    position: int = field(default=0, compare=False, repr=False)
    value_positions: tuple[int, ...] = field(default=(), compare=False, repr=False)
    """Where the value of each option begins, behind its quote."""


@dataclass(frozen=True)
class Stream:
    """A definition: modules in the order of the flow."""

    modules: tuple[Module, ...]
    name: str | None = None
    source: Channel | Tap | None = None
    sink: Channel | None = None
