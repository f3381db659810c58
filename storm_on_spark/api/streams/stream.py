"""Ids and declarations of streams."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from storm_on_spark.api.errors import InvalidTopologyError
from storm_on_spark.api.text.wording import name_fault

if TYPE_CHECKING:
    from storm_on_spark.api.streams.fields import Fields

DEFAULT_STREAM: Final = "default"
"""The default stream."""


@dataclass(frozen=True, order=True)
class GlobalStreamId:
    """One stream of one component.

    Example:
        >>> GlobalStreamId("split")
        GlobalStreamId(component='split', stream='default')
        >>> str(GlobalStreamId("split", "errors"))
        'split:errors'
    """

    component: str
    stream: str = DEFAULT_STREAM

    def __post_init__(self) -> None:
        for what, name in (("component", self.component), ("stream", self.stream)):
            if fault := name_fault(name):
                raise InvalidTopologyError(f"a {what} id {fault}")

    def __str__(self) -> str:
        return self.component if self.stream == DEFAULT_STREAM else f"{self.component}:{self.stream}"


@dataclass(frozen=True)
class StreamSpec:
    """The declaration of one stream of a component.

    Example:
        >>> from storm_on_spark.api import Fields
        >>> StreamSpec(Fields("word"))
        StreamSpec(fields=Fields('word'), direct=False)
    """

    fields: Fields
    direct: bool = False
    """Whether the emitting component chooses the receiving task with `emit_direct`."""
