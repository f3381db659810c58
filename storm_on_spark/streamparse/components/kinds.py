"""Which classes are pystorm's: those of the installed package, or those that stand in for it."""

from __future__ import annotations

from typing import Any, Final

_MODULES: Final = ("pystorm.", "storm_on_spark.streamparse.stand_in.pystorm.")
_STREAMPARSE: Final = ("streamparse.", "storm_on_spark.streamparse.stand_in.streamparse.")


def pystorm_class(component_class: type, name: str) -> Any:
    """Returns the base class of pystorm that has this name, or None where a class has none.

    Example:
        >>> from storm_on_spark.streamparse.stand_in.pystorm import Spout
        >>> pystorm_class(Spout, "Component").__name__, pystorm_class(Spout, "Bolt")
        ('Component', None)
    """
    for base in component_class.__mro__:
        if base.__name__ == name and base.__module__.startswith(_MODULES):
            return base
    return None


def pystorm_bases(component_class: type) -> frozenset[type]:
    """Returns the classes of pystorm and streamparse that a class is derived from.

    Example:
        >>> from storm_on_spark.streamparse.stand_in.streamparse import Bolt
        >>> class Mine(Bolt):
        ...     pass
        >>> Mine in pystorm_bases(Mine), Bolt in pystorm_bases(Mine)
        (False, True)
    """
    return frozenset(
        base for base in component_class.__mro__ if f"{base.__module__}.".startswith(_MODULES + _STREAMPARSE)
    )


def unchanged(component_class: type, *methods: str) -> bool:
    """Whether a class has all these methods as pystorm has them.

    Example:
        >>> from storm_on_spark.streamparse.stand_in.pystorm import Bolt
        >>> class Mine(Bolt):
        ...     def ack(self, tup):
        ...         super().ack(tup)
        >>> unchanged(Mine, "emit", "fail"), unchanged(Mine, "emit", "ack")
        (True, False)
    """
    return all(_definer(component_class, name).__module__.startswith(_MODULES) for name in methods)


def _definer(component_class: type, method: str) -> type:
    return next((base for base in component_class.__mro__ if method in vars(base)), object)
