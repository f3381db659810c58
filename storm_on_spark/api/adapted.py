"""Components that wrap a class of another API, and how people and the compiler find that class."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Adapted:
    """The class that a component wraps and executes; the component's attribute `adapted` holds it.

    Example:
        >>> from types import SimpleNamespace
        >>> component_class(SimpleNamespace(adapted=Adapted(int))), component_class("text")
        (<class 'int'>, <class 'str'>)
    """

    component_class: type
    """The user's class."""
    bases: frozenset[type] = frozenset()
    """Its base classes that belong to the other API. Their methods keep nothing between two tuples."""
    attributes: Mapping[str, frozenset[str] | None] = field(default_factory=dict)
    """Attributes that its instances inherit from these bases -> methods of the value that keep nothing; None for an
    immutable value."""
    state: str = ""
    """What the other API keeps for the class between two tuples, in words; empty if it keeps nothing."""


def component_class(component: object) -> type:
    """Returns the class that the user wrote: the component's own, or the class that it wraps."""
    adapted = getattr(component, "adapted", None)
    return adapted.component_class if isinstance(adapted, Adapted) else type(component)


def component_title(component: object) -> str:
    """Returns what people call a component: its attribute `title` if a front end made it, else the class's name.

    Example:
        >>> from types import SimpleNamespace
        >>> component_title(SimpleNamespace(title="map → filter")), component_title("text")
        ('map → filter', 'str')
    """
    title = getattr(component, "title", None)
    return title if isinstance(title, str) and title else component_class(component).__qualname__
