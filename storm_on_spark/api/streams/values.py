"""Storm's `Values`: the values of a tuple, for `emit`."""

from __future__ import annotations

from typing import Any


class Values(list[Any]):
    """The values of a tuple, in the order of the stream's fields; a plain list with Storm's name.

    `emit` takes any list or tuple. This class is for ported code.

    Example:
        >>> Values("storm", 2)
        Values('storm', 2)
        >>> Values("storm", 2) == ["storm", 2]
        True
    """

    def __init__(self, *values: Any) -> None:
        super().__init__(values)

    def __repr__(self) -> str:
        return f"Values({', '.join(map(repr, self))})"

    def __reduce__(self) -> tuple[type[Values], tuple[Any, ...]]:
        # By default, unpickling a list calls its class without arguments and then appends; this needs one step.
        return type(self), tuple(self)
