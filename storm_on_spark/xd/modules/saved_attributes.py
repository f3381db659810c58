"""The saved attributes of a module: its private ones. Its options come from the definition, also after a restart."""

from __future__ import annotations

from typing import Any

_COLLECTOR = "_collector"


class Kept:
    """Represents a component when its state is saved: return it from the property `state_holder`.

    Args:
        component: its attributes that begin with `_` are saved, except the collector.
        services: attributes that are not saved.
    """

    def __init__(self, component: object, services: tuple[str, ...] = ()) -> None:
        self._component = component
        self._services = {_COLLECTOR, *services}

    def __getstate__(self) -> dict[str, Any]:
        attributes = vars(self._component)
        return {name: attributes[name] for name in attributes if name[0] == "_" and name not in self._services}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self._component).update(state)
