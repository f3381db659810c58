"""States, as those who build a topology have them in hand."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from storm_on_spark.api.errors import InvalidTopologyError
from storm_on_spark.streams.building.functions import caller
from storm_on_spark.trident.building.draft import BatchDraft

if TYPE_CHECKING:
    from storm_on_spark.trident.building.stream import Stream


class TridentState:
    """A state that batches are written to, or that is only asked; Storm's `TridentState`."""

    def __init__(self, draft: BatchDraft, factory: Any, stream: Stream | None) -> None:
        self._draft = draft
        self.factory = factory
        self._stream = stream
        self._owner = None if stream is None else stream._link.port.node

    def new_values_stream(self) -> Stream:
        """Returns the stream of what is new in the state: what its updater emits.

        Raises:
            InvalidTopologyError: it is a static state, to which nothing is written.
        """
        if self._stream is None:
            raise InvalidTopologyError(f"new_values_stream ({caller()}): nothing is written to a static state")
        return self._stream

    def parallelism_hint(self, tasks: int) -> TridentState:
        """Asks for a number of tasks, over which the state is spread."""
        self.new_values_stream().parallelism_hint(tasks)
        return self

    def used_by(self, number: int) -> int:
        """Returns the operation that has the state. Of a static one each operation has its own."""
        return number if self._owner is None else self._owner
