"""The operation that emits batches: a spout's emitter."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

from storm_on_spark.api.config import Config
from storm_on_spark.api.config.settings import Settings
from storm_on_spark.api.tuple import Tuple
from storm_on_spark.streams.operations.processor import Bound, Place, Processor
from storm_on_spark.trident.operations.functions import Emitter
from storm_on_spark.trident.operations.task import task_of

if TYPE_CHECKING:
    from storm_on_spark.api.task.context import TopologyContext
    from storm_on_spark.trident.spouts.interfaces import Emitter as SpoutEmitter
    from storm_on_spark.trident.spouts.interfaces import ITridentSpout


@dataclass(frozen=True)
class _SpoutSettings(Settings):
    most_tasks: Annotated[int | None, Config.TOPOLOGY_MAX_TASK_PARALLELISM]


@dataclass(frozen=True)
class EmitBatch(Processor):
    """The tuples of a batch, as rows. What comes is the tuple that begins the batch."""

    spout: ITridentSpout
    id: str
    """The stream's, as the user calls it."""
    number: int
    """The operation's."""
    width: int
    """The number of fields."""
    name = "emit"

    @property
    def conf(self) -> Mapping[str, Any]:
        """The spout's configuration for its tasks."""
        return self.spout.get_component_configuration() or {}

    @property
    def most_tasks(self) -> int | None:
        """The largest number of tasks that the spout allows; None for any."""
        return _SpoutSettings.of(self.conf).most_tasks

    def emitter(self, conf: Mapping[str, Any], context: TopologyContext) -> SpoutEmitter:
        """Returns the spout's emitter for a task."""
        return self.spout.get_emitter(self.id, conf, context)

    def bind(self, place: Place) -> Bound:  # noqa: D102
        (forward,), task, number = place.forward, task_of(place), self.number
        collector = Emitter(forward, self.width, task.report)

        def begin(tup: Tuple) -> None:
            task.kept(number).emit_batch(place.batch, tup["metadata"].get(number), collector)

        return Bound([begin])
