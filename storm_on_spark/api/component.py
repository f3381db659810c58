"""The base classes of spouts and bolts."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, runtime_checkable

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    import pyarrow
    from pyspark.sql import DataFrame, SparkSession

    from storm_on_spark.api.streams.declarer import OutputFieldsDeclarer
    from storm_on_spark.api.task.collector import (
        BasicOutputCollector,
        BatchOutputCollector,
        BatchSpoutOutputCollector,
        OutputCollector,
        SpoutOutputCollector,
    )
    from storm_on_spark.api.task.context import TopologyContext
    from storm_on_spark.api.tuple import Tuple


class BaseComponent(ABC):  # noqa: B024  # its subclasses have the abstract methods
    """The common base of spouts and bolts."""

    # Not abstract: a component that emits nothing has nothing to declare.
    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:  # noqa: B027
        """Declares the streams that the component emits, and their fields.

        Called once, when the topology is created.
        """

    def get_component_configuration(self) -> Mapping[str, Any] | None:
        """Returns configuration for this component only, e.g. its tick frequency; `None` for nothing special.

        Values that the topology sets for the component (`set_bolt(...).add_configuration(...)`) override it.
        """
        return None


class Waker(Protocol):
    """Ends the wait between two calls of a spout's `next_tuple`."""

    def __call__(self) -> None:
        """Ends the current wait, or the next one; any thread may call it."""

    def watch(self, descriptor: int) -> None:
        """Lets a descriptor end the wait while it has something to read. Only the spout's thread may call it."""

    def unwatch(self, descriptor: int) -> None:
        """Forgets a descriptor, before it is closed. Only the spout's thread may call it."""


class _Spout(BaseComponent):
    """The common base of all spouts."""

    def activate(self) -> None:
        """Called when the topology is activated; from then on `next_tuple` is called."""

    def deactivate(self) -> None:
        """Called when the topology is deactivated; `next_tuple` is not called again until `activate`."""

    def close(self) -> None:
        """Called when the spout stops, but not if its process is killed."""

    def woken_by(self, wake: Waker) -> None:
        """Called after `open` with an object that ends the wait between two calls of `next_tuple`. Storm has none.

        For spouts that receive something. Any thread of theirs may call it, at any time: `wake()`. The spout's own
        thread may let it watch a descriptor, such as a socket's: then `next_tuple` is called as soon as there is
        something to read. Without it a spout that had nothing to emit is asked again after 1 to 20 ms. The object can't
        be saved with the spout's attributes: keep it in what the thread knows.
        """

    def exhausted(self) -> bool:
        """Returns whether the spout will emit nothing new.

        A finite spout returns `True` at its end. When all spouts are exhausted, the run ends once nothing is pending.
        Until then `fail` is still called for tuples that fail, and the spout may emit them again.
        """
        return False


class BaseRichSpout(_Spout):
    """A source of tuples.

    One thread calls all methods. Attributes that can be pickled are saved with the position in the
    stream. After a crash they are restored once `open` has run.

    Example:
        >>> from storm_on_spark.api import Fields
        >>> class Numbers(BaseRichSpout):
        ...     def open(self, conf, context, collector):
        ...         self.collector, self.next = collector, 0
        ...     def next_tuple(self):
        ...         self.collector.emit([self.next], message_id=self.next)
        ...         self.next += 1
        ...     def exhausted(self):
        ...         return self.next == 1000
        ...     def declare_output_fields(self, declarer):
        ...         declarer.declare(Fields("number"))
    """

    def open(self, conf: Mapping[str, Any], context: TopologyContext, collector: SpoutOutputCollector) -> None:
        """Called once in every task, before anything else.

        Args:
            conf: the topology's configuration merged with the component's.
            context: the identity and place of this task.
            collector: emits tuples; keep it.
        """

    @abstractmethod
    def next_tuple(self) -> None:
        """Emits the next tuple, or a few, through the collector if there are any. Must not block."""

    def ack(self, message_id: Any) -> None:
        """Called when the tree of the tuple emitted with `message_id` is complete."""

    def fail(self, message_id: Any) -> None:
        """Called when the tree of the tuple emitted with `message_id` failed or timed out."""


class BatchSpout(_Spout):
    """A columnar source: it emits Arrow record batches, and its messages are acked and failed in batches.

    Each row is a tuple with its own message id, which is tracked and times out like any other. As in a
    `BaseRichSpout`, one thread calls all methods, and attributes that can be pickled are saved and restored.

    Example:
        >>> from storm_on_spark.api import Fields
        >>> class Numbers(BatchSpout):
        ...     def open(self, conf, context, collector):
        ...         self.collector, self.next = collector, 0
        ...     def next_batch(self):
        ...         import pyarrow
        ...         numbers = pyarrow.array(range(self.next, self.next + 1000))
        ...         self.collector.emit(pyarrow.record_batch([numbers], names=["number"]), message_ids=numbers)
        ...         self.next += 1000
        ...     def exhausted(self):
        ...         return self.next == 1_000_000
        ...     def declare_output_fields(self, declarer):
        ...         declarer.declare(Fields("number"))
    """

    def open(self, conf: Mapping[str, Any], context: TopologyContext, collector: BatchSpoutOutputCollector) -> None:
        """Called once in every task, before anything else.

        Args:
            conf: the topology's configuration merged with the component's.
            context: the identity and place of this task.
            collector: emits tuples; keep it.
        """

    @abstractmethod
    def next_batch(self) -> None:
        """Emits the next batch, or a few, through the collector if there are any. Must not block.

        A few thousand rows per call are enough for full speed. One call may exceed the configured size of a
        micro-batch by the rows that it emits.
        """

    def ack_batch(self, message_ids: pyarrow.Array) -> None:
        """Called when the trees of the tuples emitted with these ids are complete.

        Args:
            message_ids: in the order and with the type in which they were emitted.
        """

    def fail_batch(self, message_ids: pyarrow.Array) -> None:
        """Called when the trees of the tuples emitted with these ids failed or timed out; see `ack_batch`."""


class NativeSpout(_Spout):
    """A spout whose rows Spark reads directly, with one of its streaming sources.

    Each row becomes a tuple where Spark reads it, with its own message. A message that is acked in the micro-batch
    that read its row is done. The spout receives the rows of all other messages in a process beside the driver: it
    keeps these rows, learns whether they are acked or fail, and emits failed ones again. Attributes that can be pickled
    are saved there and restored after a crash, like those of a `BaseRichSpout`.

    `storm_on_spark.connectors` has such spouts, based on `storm_on_spark.connectors.native.SparkSourceSpout`.
    """

    tracked: bool = True
    """Whether rows have messages. Without them nothing is kept, and rows that fail are lost."""

    advice: ClassVar[Mapping[str, str]] = {}
    """Error condition of Spark or of the source, such as `PATH_NOT_FOUND` -> what to do when it has ended the
    topology, as a clause that follows the error's own text."""

    @abstractmethod
    def read(self, spark: SparkSession) -> DataFrame:
        """Returns the streaming DataFrame with the rows. Called in the driver each time the topology starts."""

    def columns(self, rows: pyarrow.RecordBatch) -> pyarrow.RecordBatch | None:
        """Returns the default stream's tuples for all rows, in order; None calls `tuple_of` for each row instead."""
        return None

    def tuple_of(self, row: Mapping[str, Any]) -> Sequence[Any] | None:
        """Returns the values of a row's tuple, or None for no tuple.

        Values with an attribute `stream` go to the stream of that name. An exception fails the row's message.
        """
        raise NotImplementedError(f"{type(self).__qualname__} has neither columns nor tuple_of")

    def position(self, rows: pyarrow.RecordBatch) -> Any:
        """Returns a value to pass to `passed` once the rows are committed; None for nothing.

        Called where Spark reads the rows. The value must be picklable.
        """
        return None

    def passed(self, position: Any) -> None:
        """Called when a micro-batch with rows of this `position` is committed; `keep` gets those still pending."""

    def open(self, conf: Mapping[str, Any], context: TopologyContext, collector: SpoutOutputCollector) -> None:
        """Called in the process that keeps rows; arguments as for `BaseRichSpout`."""

    @abstractmethod
    def keep(self, roots: Sequence[int], rows: pyarrow.RecordBatch) -> None:
        """Takes over rows whose messages were not acked in the micro-batch that read them, each with a number."""

    @abstractmethod
    def kept(self) -> Collection[int]:
        """Returns the numbers of rows for which neither `row_acked` nor `row_failed` was called."""

    def waiting(self) -> int:
        """Returns how many failed rows wait for `next_tuple` to emit them again."""
        return 0

    @abstractmethod
    def row_acked(self, root: int) -> None:
        """Called when the message of a kept row is complete."""

    @abstractmethod
    def row_failed(self, root: int, reason: str) -> None:
        """Called when the message of a kept row has failed; the spout may emit it again."""

    @abstractmethod
    def next_tuple(self) -> None:
        """Emits failed rows that are due again, through the collector."""

    @abstractmethod
    def ack(self, message_id: Any) -> None:
        """Called when the tree of a tuple that `next_tuple` emitted is complete."""

    @abstractmethod
    def fail(self, message_id: Any) -> None:
        """Called when the tree of a tuple that `next_tuple` emitted failed or timed out."""


class _Bolt(BaseComponent):
    """The common base of all bolts."""

    stateless: ClassVar[bool | None] = None
    """`True` promises that the bolt's work on a tuple depends on that tuple alone: it may run anywhere, and no
    state is saved. `False` declares that the bolt has state. With `None` the compiler decides."""

    waits_because: str = ""
    """Why its tuples have to wait for micro-batches in real time, too, in words after the component's name. For bolts
    that write outside what must not come again otherwise once it is written: tuples from an earlier micro-batch don't.
    """

    def declare_timers(self, conf: Mapping[str, Any]) -> Mapping[str, int]:
        """Declares the timers of every task: name -> period in milliseconds, at most 16.

        Called when the topology is compiled. Time is the topology's, `TopologyContext.time_ms`: it stands still while
        the topology is down, and a repeated micro-batch has the same. A timer is due at each multiple of its period.
        Then the bolt gets a timer tuple (`tup.is_timer`; fields `name` and `time_ms`) before all other tuples of the
        micro-batch or round. If several periods of a timer have passed, it comes once: compare its time with that of
        the last one.

        Args:
            conf: the topology's configuration merged with the component's.

        Example:
            >>> class Flush(BaseRichBolt):
            ...     def declare_timers(self, conf):
            ...         return {"flush": 250}
            ...     def prepare(self, conf, context, collector):
            ...         self.context, self.flushed = context, []
            ...     def execute(self, tup):
            ...         if tup.is_timer:
            ...             self.flushed.append((tup["name"], tup["time_ms"]))
            >>> from storm_on_spark.testing import BoltTester
            >>> tester = BoltTester(Flush())
            >>> tester.advance(seconds=0.3)
            >>> tester.bolt.flushed, tester.context.time_ms
            ([('flush', 250)], 300)
        """
        return {}

    def cleanup(self) -> None:
        """Called when the bolt stops, but not if its process is killed."""


class BaseRichBolt(_Bolt):
    """A bolt that acks and anchors explicitly.

    Attributes that can be pickled are the bolt's state. They are saved after every micro-batch in which they
    changed. After a crash they are restored once `prepare` has run.

    Example:
        >>> from storm_on_spark.api import Fields
        >>> class Exclaim(BaseRichBolt):
        ...     def prepare(self, conf, context, collector):
        ...         self.collector = collector
        ...     def execute(self, tup):
        ...         self.collector.emit([tup["word"] + "!"], anchors=tup)
        ...         self.collector.ack(tup)
        ...     def declare_output_fields(self, declarer):
        ...         declarer.declare(Fields("word"))
    """

    turn_secs: ClassVar[int | None] = None
    """Whole seconds after which every task takes part in a micro-batch even without tuples: `finish_micro_batch` is
    called. For bolts that wait for something other than tuples; otherwise None. Unlike a tick it brings no tuple, and
    it leaves `topology.tick.tuple.freq.secs` to the user."""

    def prepare(self, conf: Mapping[str, Any], context: TopologyContext, collector: OutputCollector) -> None:
        """Called in every task before the first tuple, and again wherever the task moves to.

        Args:
            conf: the topology's configuration merged with the component's.
            context: the identity and place of this task.
            collector: emits, acks and fails; keep it.
        """

    @abstractmethod
    def execute(self, tup: Tuple) -> None:
        """Processes one tuple, which must eventually be acked or failed."""

    def finish_micro_batch(self) -> None:
        """Called after the last tuple that the task gets in a micro-batch; it may emit, ack and fail.

        For bolts that pass tuples on to another system and must learn what became of them. Storm has no such method. An
        exception ends the topology.
        """


class BaseBasicBolt(_Bolt):
    """A bolt whose emits are anchored to its input and whose input is acked when `execute` returns.

    Raise `FailedException` to fail the input instead.

    Example:
        >>> from storm_on_spark.api import Fields
        >>> class Split(BaseBasicBolt):
        ...     def execute(self, tup, collector):
        ...         for word in tup["sentence"].split():
        ...             collector.emit([word])
        ...     def declare_output_fields(self, declarer):
        ...         declarer.declare(Fields("word"))
    """

    def prepare(self, conf: Mapping[str, Any], context: TopologyContext) -> None:
        """Called in every task before the first tuple, and again wherever the task moves to.

        Args:
            conf: the topology's configuration merged with the component's.
            context: the identity and place of this task.
        """

    @abstractmethod
    def execute(self, tup: Tuple, collector: BasicOutputCollector) -> None:
        """Processes one tuple and emits the results.

        Raises:
            FailedException: fails the tuple; the bolt continues.
        """


class BatchBolt(_Bolt):
    """A columnar bolt: it processes many tuples at once, as an Arrow record batch.

    Example:
        >>> from storm_on_spark.api import Fields
        >>> class Upper(BatchBolt):
        ...     stateless = True
        ...     def execute_batch(self, batch, collector):
        ...         import pyarrow, pyarrow.compute
        ...         words = pyarrow.compute.utf8_upper(batch["word"])
        ...         collector.emit(pyarrow.record_batch([words], names=["word"]))
        ...     def declare_output_fields(self, declarer):
        ...         declarer.declare(Fields("word"))
    """

    def prepare(self, conf: Mapping[str, Any], context: TopologyContext, collector: BatchOutputCollector) -> None:
        """Called in every task before the first batch, and again wherever the task moves to.

        Args:
            conf: the topology's configuration merged with the component's.
            context: the identity and place of this task.
            collector: the same that `execute_batch` gets.
        """

    @abstractmethod
    def execute_batch(self, batch: pyarrow.RecordBatch, collector: BatchOutputCollector) -> None:
        """Processes a batch of tuples of one stream and emits the results.

        Args:
            batch: one row per tuple, one column per field of the stream.
            collector: emits tuples. The whole batch is acked when the method returns, except for rows
                that failed.

        Raises:
            FailedException: fails all rows of the batch; the bolt continues.
        """


class ExecutedByBolt(ABC):
    """What `set_bolt` takes in place of a bolt: it knows the bolt that executes it."""

    @abstractmethod
    def executor(self) -> BaseRichBolt | BatchBolt:
        """Returns the bolt that calls this object; its attribute `adapted` names this object's class."""


class BaseTickTupleAwareRichBolt(BaseRichBolt):
    """A rich bolt that gets tick tuples and all other tuples in separate methods.

    Set `topology.tick.tuple.freq.secs` in `get_component_configuration` to receive ticks.
    """

    def execute(self, tup: Tuple) -> None:
        """Calls `on_tick_tuple` or `process`; override those."""
        if tup.is_tick:
            self.on_tick_tuple(tup)
        else:
            self.process(tup)

    def on_tick_tuple(self, tup: Tuple) -> None:
        """Called for each tick tuple. Does nothing unless overridden."""

    @abstractmethod
    def process(self, tup: Tuple) -> None:
        """Processes one tuple that is not a tick; it must eventually be acked or failed."""


IRichSpout = BaseRichSpout
"""Storm's interface, for ported code."""
IRichBolt = BaseRichBolt
"""Storm's interface, for ported code."""
IBasicBolt = BaseBasicBolt
"""Storm's interface, for ported code."""


@runtime_checkable
class CommitsOutside(Protocol):
    """A spout that also keeps its position outside the checkpoint, so that a start without a checkpoint finds it."""

    def committed_outside(self) -> str:
        """Returns where such a start would continue from, in words; empty if it would begin with all of the input.

        Called in the driver, before Spark starts.
        """


@runtime_checkable
class ReplacesRows(Protocol):
    """A bolt that replaces what it wrote before, by key."""

    def replaced_rows(self) -> str:
        """Returns which rows the bolt replaces, in words; empty if it only adds rows."""
