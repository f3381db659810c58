"""Components that execute a class of another API: which class that is, for people and for the compiler."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Adapted:
    """The class that a component executes in its place; the component's attribute `adapted` has it.

    Example:
        >>> from types import SimpleNamespace
        >>> component_class(SimpleNamespace(adapted=Adapted(int))), component_class("text")
        (<class 'int'>, <class 'str'>)
    """

    component_class: type
    """The user's class."""
    bases: frozenset[type] = frozenset()
    """Its base classes that belong to the other API: no method of theirs keeps anything between two tuples."""
    attributes: Mapping[str, frozenset[str] | None] = field(default_factory=dict)
    """Attributes that its instances have from these bases -> methods of the value that keep nothing; None for an
    immutable value."""
    state: str = ""
    """What the other API keeps for the class between two tuples; empty for nothing."""


def component_class(component: object) -> type:
    """Returns the class that the user wrote: the component's own, or the one that it adapts."""
    adapted = getattr(component, "adapted", None)
    return adapted.component_class if isinstance(adapted, Adapted) else type(component)
