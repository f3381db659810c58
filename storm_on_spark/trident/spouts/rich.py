"""Plain spouts in batches. The spout runs in the coordinator's task, and its tuples travel with the batch's begin.

So a batch that fails is attempted again with the same tuples, whatever the spout is. Its messages are acked when the
batch is committed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any

from storm_on_spark.api.component import BaseRichSpout
from storm_on_spark.api.config import Config
from storm_on_spark.api.config.settings import Settings
from storm_on_spark.api.errors import InvalidTopologyError
from storm_on_spark.api.streams.declarer import OutputFieldsDeclarer
from storm_on_spark.api.streams.fields import Fields
from storm_on_spark.api.streams.stream import DEFAULT_STREAM
from storm_on_spark.api.task.collector import SpoutOutputCollector
from storm_on_spark.trident.spouts.interfaces import BatchCoordinator, Collects, Emitter, ITridentSpout

if TYPE_CHECKING:
    from storm_on_spark.api.task.context import TopologyContext
    from storm_on_spark.trident.batches import TransactionAttempt


@dataclass(frozen=True)
class _RichSettings(Settings):
    batch_size: Annotated[int, Config.TOPOLOGY_SPOUT_MAX_BATCH_SIZE]


@dataclass
class Drawn:
    """What a plain spout has emitted."""

    waiting: list[tuple[list[Any], Any]] = field(default_factory=list)
    """Values and message ids of tuples that are in no batch yet."""
    messages: dict[int, list[Any]] = field(default_factory=dict)
    """The message ids of each batch that is not committed."""

    def restore(self, saved: Drawn) -> None:
        """Takes over what was saved."""
        self.waiting[:] = saved.waiting
        self.messages = saved.messages


class RichSpoutCoordinator(BatchCoordinator):
    """Takes what a plain spout emits as the content of batches.

    Args:
        spout: the spout.
        conf: the topology's configuration.
        context: the coordinator's.
        single: whether each tuple is a separate batch, and a failed batch fails it instead of being attempted again.
    """

    def __init__(
        self, spout: BaseRichSpout, conf: Mapping[str, Any], context: TopologyContext, single: bool = False
    ) -> None:
        self.spout = spout
        self.single = single
        self._most = 1 if single else _RichSettings.of(conf).batch_size
        self.drawn = Drawn()
        self._collector = _Drawing(self.drawn.waiting)
        spout.open(conf, context, self._collector)

    @property
    def services(self) -> tuple[object, ...]:
        """What the spout was given, which is not state."""
        return (self._collector,)

    def saved(self) -> dict[str, Any]:
        """Returns the attributes that are saved: the spout's, or those of the object that it names for that."""
        return vars(getattr(self.spout, "state_holder", self.spout))

    def is_ready(self, txid: int) -> bool:
        """Asks the spout for tuples."""
        waiting = self.drawn.waiting
        while len(waiting) < self._most:
            before = len(waiting)
            self.spout.next_tuple()
            if len(waiting) == before:
                break
        return bool(waiting)

    def initialize_transaction(self, txid: int, previous: Any, current: Any) -> list[list[Any]]:
        """Returns the rows of a batch."""
        if current is not None:
            rows: list[list[Any]] = current
            return rows
        taken = self.drawn.waiting[: self._most]
        del self.drawn.waiting[: self._most]
        self.drawn.messages[txid] = [message for _, message in taken if message is not None]
        return [values for values, _ in taken]

    def success(self, txid: int) -> None:
        """Acks the messages of a batch."""
        for message in self.drawn.messages.pop(txid, ()):
            self.spout.ack(message)

    def fail(self, txid: int) -> None:
        """Fails the messages of a batch that will not be attempted again."""
        for message in self.drawn.messages.pop(txid, ()):
            self.spout.fail(message)

    def exhausted(self, txid: int) -> bool:
        """Returns whether the spout is, and nothing of it is left."""
        return not self.drawn.waiting and self.spout.exhausted()

    def close(self) -> None:
        """Closes the spout."""
        self.spout.close()


class _Drawing(SpoutOutputCollector):
    """Takes the tuples of a spout."""

    def __init__(self, drawn: list[tuple[list[Any], Any]]) -> None:
        self._drawn = drawn

    def emit(self, values: Sequence[Any], message_id: Any = None, stream: str = DEFAULT_STREAM) -> list[int]:
        if stream != DEFAULT_STREAM:
            raise InvalidTopologyError(f'a spout in a Trident topology emits on the stream "default", not "{stream}"')
        self._drawn.append((list(values), message_id))
        return []

    def emit_direct(
        self, task: int, values: Sequence[Any], message_id: Any = None, stream: str = DEFAULT_STREAM
    ) -> None:
        raise InvalidTopologyError("a spout in a Trident topology can't emit directly to a task")

    def report_error(self, error: BaseException) -> None:
        raise error

    def pending_count(self) -> int:
        return len(self._drawn)


class RichSpoutEmitter(Emitter):
    """Emits the rows that came with a batch: each task its share."""

    def __init__(self, context: TopologyContext) -> None:
        self._index = context.this_task_index
        self._tasks = len(context.component_tasks(context.this_component_id))

    def emit_batch(self, attempt: TransactionAttempt, metadata: Any, collector: Collects) -> None:
        """Emits this task's share of a batch."""
        for row in metadata[self._index :: self._tasks]:
            collector.emit(row)


class RichSpoutInBatches(ITridentSpout):
    """A plain spout as a Trident spout."""

    def __init__(self, spout: BaseRichSpout, single: bool = False) -> None:
        self.spout = spout
        self.single = single

    def get_coordinator(  # noqa: D102
        self, tx_state_id: str, conf: Mapping[str, Any], context: TopologyContext
    ) -> RichSpoutCoordinator:
        return RichSpoutCoordinator(self.spout, conf, context, self.single)

    def get_emitter(  # noqa: D102
        self, tx_state_id: str, conf: Mapping[str, Any], context: TopologyContext
    ) -> RichSpoutEmitter:
        return RichSpoutEmitter(context)

    def get_output_fields(self) -> Fields:
        """Returns the fields of the spout's stream `default`.

        Raises:
            InvalidTopologyError: it declares no such stream.
        """
        declarer = OutputFieldsDeclarer(type(self.spout).__qualname__)
        self.spout.declare_output_fields(declarer)
        if (spec := declarer.streams.get(DEFAULT_STREAM)) is None:
            raise InvalidTopologyError(f"{type(self.spout).__qualname__} declares no stream default")
        return spec.fields

    def get_component_configuration(self) -> Mapping[str, Any] | None:  # noqa: D102
        return self.spout.get_component_configuration()
