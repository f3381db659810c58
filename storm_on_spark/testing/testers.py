"""Driving one spout or bolt by hand, without Spark and in milliseconds."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from types import TracebackType
from typing import Any, Generic, TypeVar

import pyarrow as pa

from storm_on_spark.api.component import BaseBasicBolt, BaseComponent, BaseRichBolt, BaseRichSpout, BatchBolt
from storm_on_spark.api.errors import (
    ComponentError,
    FailedException,
    ReportedFailedException,
    StormError,
    TupleError,
)
from storm_on_spark.api.state import BaseStatefulBolt, KeyValueState
from storm_on_spark.api.topology import ComponentKind
from storm_on_spark.api.tuple import Tuple
from storm_on_spark.runtime.bolt_task import to_batch
from storm_on_spark.runtime.kv_state import JournaledState
from storm_on_spark.runtime.snapshot import Snapshots
from storm_on_spark.runtime.spec import RunSpec
from storm_on_spark.testing.bench import Bench, sources_of
from storm_on_spark.testing.collectors import (
    RecordingBasicCollector,
    RecordingBatchCollector,
    RecordingCollector,
    RecordingSpoutCollector,
)
from storm_on_spark.testing.records import Emission
from storm_on_spark.testing.tuples import make_tick_tuple

Bolt = BaseRichBolt | BaseBasicBolt | BatchBolt
BoltCollector = RecordingCollector | RecordingBasicCollector | RecordingBatchCollector

_MOST_CALLS = 1_000_000

B = TypeVar("B", bound=BaseComponent)
T = TypeVar("T", bound="_Tester[Any]")


class _Tester(ABC, Generic[B]):
    """What the testers have in common: an instance, its snapshots and a fresh start."""

    def __init__(self, instance: B, bench: Bench) -> None:
        self._instance = instance
        self._bench = bench
        self._shipped: RunSpec | ComponentError
        try:
            # Now, since `open` or `prepare` may give the instance things that can't be pickled.
            self._shipped = bench.spec()
        except ComponentError as error:
            self._shipped = error
        self._closed = False

    def __enter__(self: T) -> T:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @abstractmethod
    def close(self) -> None:
        """Ends the component's life, once."""

    def _reborn(self) -> tuple[B, bytes | None]:
        """Returns a fresh copy of the component and the state that it will be given."""
        if isinstance(self._shipped, ComponentError):
            raise self._shipped
        state = None if self._bench.stateless else self._snapshots().take()
        instance: B = self._shipped.instance(self._bench.name)
        return instance, state

    def _restore(self, state: bytes | None) -> None:
        if state is not None:
            self._snapshots().restore(state)

    def _snapshots(self) -> Snapshots:
        return Snapshots(self._instance, f"component {self._bench.name!r} (task {self._bench.task})")


class BoltTester(_Tester[Bolt]):
    """A prepared bolt that a test feeds.

    What the bolt raises, other than `FailedException` where that is allowed, reaches the test.

    Args:
        bolt: the bolt; this very object is tested, so its attributes can be looked at.
        sources: inputs like those that it will receive, so that its context knows their streams.
        name: its component id.
        conf: configuration over the defaults.
        targets: the components that subscribe to it, with their numbers of tasks; for None direct emits may
            go to any task.
        tasks: how many tasks the bolt has.
        task_index: which of them this is.

    Raises:
        InvalidTopologyError: the bolt is none, or declares what it can't.
        ConfigError: a key or value of `conf` makes no sense.

    Example:
        >>> from collections import Counter
        >>> from storm_on_spark import BaseBasicBolt
        >>> from storm_on_spark.testing import make_tuple
        >>> class Count(BaseBasicBolt):
        ...     def prepare(self, conf, context):
        ...         self.counts = Counter()
        ...     def execute(self, tup, collector):
        ...         self.counts[tup["word"]] += 1
        >>> tester = BoltTester(Count())
        >>> tester.execute(make_tuple(["storm"], ["word"]))
        >>> tester.restart()
        >>> tester.execute(make_tuple(["storm"], ["word"]))
        >>> tester.bolt.counts, len(tester.collector.acked)
        (Counter({'storm': 2}), 2)
    """

    def __init__(
        self,
        bolt: Bolt,
        sources: Iterable[Tuple | pa.RecordBatch] = (),
        *,
        name: str = "bolt",
        conf: Mapping[str, Any] | None = None,
        targets: Mapping[str, int] | None = None,
        tasks: int = 1,
        task_index: int = 0,
    ) -> None:
        bench = Bench(
            bolt,
            name=name,
            conf=conf,
            sources=sources_of(sources) or None,
            targets=targets,
            tasks=tasks,
            task_index=task_index,
        )
        super().__init__(bolt, bench)
        self._context = bench.context()
        output = bench.output(self._context)
        #: What the bolt did so far, restarts included.
        self.collector: BoltCollector
        if bench.kind is ComponentKind.BOLT:
            self.collector = RecordingCollector(output=output)
        elif bench.kind is ComponentKind.BASIC_BOLT:
            self.collector = RecordingBasicCollector(output=output)
        else:
            self.collector = RecordingBatchCollector(output=output)
        #: The key-value state of a `BaseStatefulBolt`; None for other bolts.
        self.state: KeyValueState | None = None
        self._prepare([])

    @property
    def bolt(self) -> Any:
        """The instance; another one after `restart`."""
        return self._instance

    def execute(self, *inputs: Tuple | pa.RecordBatch) -> None:
        """Lets the bolt execute tuples, or record batches for a `BatchBolt`.

        A `BatchBolt` gets tuples as batches, neighbours from one stream together.

        Raises:
            TupleError: the bolt emitted something that does not fit, or got something that it can't take.
        """
        bolt = self._instance
        _check(bolt, inputs)
        if isinstance(bolt, BatchBolt):
            for batch in _batches(inputs):
                self._execute_batch(bolt, batch)
            return
        for tup in inputs:
            if isinstance(bolt, BaseRichBolt):
                bolt.execute(tup)
            else:
                self._execute_basic(bolt, tup)

    def tick(self) -> None:
        """Lets the bolt execute a tick tuple."""
        rate = self._bench.conf.get("topology.tick.tuple.freq.secs") or 1
        self.execute(make_tick_tuple(float(rate)))

    def restart(self) -> None:
        """Does to the bolt what a crash between two micro-batches does.

        A fresh copy is prepared, and gets the attributes of the old one that can be pickled, unless the
        compiler takes the bolt for stateless.

        Raises:
            ComponentError: the bolt can't be pickled, or its state can't.
        """
        entries = self.state.compact() if isinstance(self.state, JournaledState) else []
        self._instance, state = self._reborn()
        self._context = self._bench.context()
        self._prepare(entries)
        self._restore(state)

    def close(self) -> None:
        """Calls `cleanup`, once."""
        if not self._closed:
            self._closed = True
            self._instance.cleanup()

    def _prepare(self, entries: list[bytes]) -> None:
        bolt, conf, context = self._instance, self._bench.conf, self._context
        if isinstance(bolt, BaseBasicBolt):
            bolt.prepare(conf, context)
        else:
            bolt.prepare(conf, context, self.collector)  # type: ignore[arg-type]
        if isinstance(bolt, BaseStatefulBolt):
            values = JournaledState()
            values.load(entries)
            self.state = values
            bolt.init_state(values)

    def _execute_basic(self, bolt: BaseBasicBolt, tup: Tuple) -> None:
        collector = self.collector
        assert isinstance(collector, RecordingBasicCollector)
        collector.current = tup
        try:
            bolt.execute(tup, collector)
        except FailedException as failure:
            collector.failed.append(tup)
            if isinstance(failure, ReportedFailedException):
                collector.report_error(failure)
        else:
            collector.acked.append(tup)
        finally:
            collector.current = None

    def _execute_batch(self, bolt: BatchBolt, batch: pa.RecordBatch) -> None:
        collector = self.collector
        assert isinstance(collector, RecordingBatchCollector)
        collector.begin(batch)
        try:
            bolt.execute_batch(batch, collector)
        except FailedException as failure:
            collector.fail(range(batch.num_rows))
            if isinstance(failure, ReportedFailedException):
                collector.report_error(failure)
        collector.end()


class SpoutTester(_Tester[BaseRichSpout]):
    """An open and active spout that a test drives.

    Args:
        spout: the spout; this very object is tested, so its attributes can be looked at.
        name: its component id.
        conf: configuration over the defaults.
        targets: the components that subscribe to it, with their numbers of tasks; for None direct emits may
            go to any task.
        tasks: how many tasks the spout has.
        task_index: which of them this is.

    Raises:
        InvalidTopologyError: the spout is none, or declares what it can't.
        ConfigError: a key or value of `conf` makes no sense.

    Example:
        >>> from storm_on_spark.testing import ListSpout
        >>> tester = SpoutTester(ListSpout(["to be", "or not"], fields=["line"]))
        >>> tester.next_tuple()
        [Emission(values=('to be',), stream='default', anchors=(), message_id=0, task=None)]
        >>> tester.restart()
        >>> tester.fail(0)
        >>> [emission.values for emission in tester.next_tuple(calls=2)]
        [('to be',), ('or not',)]
        >>> tester.ack(0)
        >>> tester.collector.pending, tester.spout.exhausted()
        ([1], True)
    """

    def __init__(
        self,
        spout: BaseRichSpout,
        *,
        name: str = "spout",
        conf: Mapping[str, Any] | None = None,
        targets: Mapping[str, int] | None = None,
        tasks: int = 1,
        task_index: int = 0,
    ) -> None:
        bench = Bench(spout, name=name, conf=conf, targets=targets, tasks=tasks, task_index=task_index)
        super().__init__(spout, bench)
        self._context = bench.context()
        #: What the spout did so far, restarts included.
        self.collector = RecordingSpoutCollector(output=bench.output(self._context))
        self._open(None)

    @property
    def spout(self) -> Any:
        """The instance; another one after `restart`."""
        return self._instance

    def next_tuple(self, calls: int = 1) -> list[Emission]:
        """Calls `next_tuple` that often; returns what was emitted."""
        before = len(self.collector.emitted)
        for _ in range(calls):
            self._instance.next_tuple()
        return self.collector.emitted[before:]

    def ack(self, message_id: Any) -> None:
        """Tells the spout that a tree is complete.

        Raises:
            StormError: no message with that id is pending.
        """
        self._settle(message_id)
        self.collector.acked.append(message_id)
        self._instance.ack(message_id)

    def fail(self, message_id: Any) -> None:
        """Tells the spout that a tree failed.

        Raises:
            StormError: no message with that id is pending.
        """
        self._settle(message_id)
        self.collector.failed.append(message_id)
        self._instance.fail(message_id)

    def deactivate(self) -> None:
        """Tells the spout that the topology was deactivated."""
        self._instance.deactivate()

    def activate(self) -> None:
        """Tells the spout that the topology is active again."""
        self._instance.activate()

    def restart(self) -> None:
        """Does to the spout what a crash does.

        A fresh copy is opened and gets the attributes of the old one that can be pickled.

        Pending messages stay pending, and the fresh copy hears of their acks and fails.

        Raises:
            ComponentError: the spout can't be pickled, or its state can't.
        """
        self._instance, state = self._reborn()
        self._context = self._bench.context()
        self._open(state)

    def close(self) -> None:
        """Calls `close`, once."""
        if not self._closed:
            self._closed = True
            self._instance.close()

    def _open(self, state: bytes | None) -> None:
        self._instance.open(self._bench.conf, self._context, self.collector)
        self._restore(state)
        self._instance.activate()

    def _settle(self, message_id: Any) -> None:
        if message_id not in self.collector.pending:
            raise StormError(f"no message {message_id!r:.100} is pending; pending: {self.collector.pending!r:.200}")
        self.collector.pending.remove(message_id)


def run_bolt(bolt: Bolt, inputs: Iterable[Tuple | pa.RecordBatch], conf: Mapping[str, Any] | None = None) -> Any:
    """Prepares a bolt, lets it execute all inputs and cleans it up.

    Args:
        bolt: the bolt.
        inputs: tuples, or record batches for a `BatchBolt`.
        conf: configuration over the defaults.

    Returns:
        The collector double that fits the bolt: a `RecordingCollector`, `RecordingBasicCollector` or
        `RecordingBatchCollector`, with what the bolt emitted, acked, failed and reported.

    Raises:
        TupleError: the bolt emitted something that does not fit its streams.

    Example:
        >>> from storm_on_spark import BaseBasicBolt, Fields
        >>> from storm_on_spark.testing import make_tuple
        >>> class Split(BaseBasicBolt):
        ...     def execute(self, tup, collector):
        ...         for word in tup["sentence"].split():
        ...             collector.emit([word])
        ...     def declare_output_fields(self, declarer):
        ...         declarer.declare(Fields("word"))
        >>> run_bolt(Split(), [make_tuple(["to be"], ["sentence"])]).values()
        [('to',), ('be',)]
    """
    given = list(inputs)
    _check(bolt, given)
    with BoltTester(bolt, given, conf=conf) as tester:
        tester.execute(*given)
    return tester.collector


def run_spout(
    spout: BaseRichSpout, calls: int | None = None, conf: Mapping[str, Any] | None = None, *, ack: bool = True
) -> RecordingSpoutCollector:
    """Opens a spout, calls `next_tuple` and closes it.

    Args:
        spout: the spout.
        calls: how often to call; until the spout is exhausted and nothing is pending for None.
        conf: configuration over the defaults.
        ack: whether each message is acked at once.

    Returns:
        What the spout emitted.

    Raises:
        TupleError: the spout emitted something that does not fit its streams.
        StormError: without `calls`, the spout was not exhausted after a million of them.

    Example:
        >>> from storm_on_spark.testing import ListSpout
        >>> run_spout(ListSpout(["to be", "or not"])).values()
        [('to be',), ('or not',)]
    """
    with SpoutTester(spout, conf=conf) as tester:
        for _ in range(_MOST_CALLS if calls is None else calls):
            if calls is None and spout.exhausted():
                break
            for emission in tester.next_tuple():
                if ack and emission.message_id is not None:
                    tester.ack(emission.message_id)
        else:
            if calls is None:
                raise StormError(
                    f"{type(spout).__name__} was not exhausted after {_MOST_CALLS} calls; say how many calls to make"
                )
    return tester.collector


def _check(bolt: Bolt, inputs: Iterable[Tuple | pa.RecordBatch]) -> None:
    is_batch_bolt = isinstance(bolt, BatchBolt)
    for item in inputs:
        if not isinstance(item, Tuple) and not (is_batch_bolt and isinstance(item, pa.RecordBatch)):
            wanted = "tuples or record batches" if is_batch_bolt else "tuples"
            raise TupleError(f"{type(bolt).__name__} executes {wanted}, not {item!r:.100}; make tuples with make_tuple")


def _batches(inputs: Sequence[Tuple | pa.RecordBatch]) -> Iterable[pa.RecordBatch]:
    """Yields record batches as they are, and neighbouring tuples of one stream as one batch."""
    for source, group in groupby(inputs, lambda item: _source(item)):
        if source is None:
            yield from group
        else:
            tuples = [item for item in group if isinstance(item, Tuple)]
            yield to_batch(list(tuples[0].fields), [tuple(tup) for tup in tuples])


def _source(item: Tuple | pa.RecordBatch) -> Any:
    return (item.source_global_stream_id, item.fields) if isinstance(item, Tuple) else None
