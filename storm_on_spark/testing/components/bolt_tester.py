"""Driving one bolt by hand, without Spark and in milliseconds."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from typing import Any

import pyarrow as pa

from storm_on_spark.api.component import BaseBasicBolt, BaseRichBolt, BatchBolt, ExecutedByBolt
from storm_on_spark.api.errors import FailedException, ReportedFailedException, TupleError
from storm_on_spark.api.state import STATEFUL_BOLTS, KeyValueState
from storm_on_spark.api.streams.stream import GlobalStreamId
from storm_on_spark.api.task.context import TopologyContext
from storm_on_spark.api.topology import ComponentKind
from storm_on_spark.api.tuple import Tuple
from storm_on_spark.runtime.state.keyvalue.state import StoredState
from storm_on_spark.runtime.state.keyvalue.store import MemoryStore
from storm_on_spark.runtime.values.batches import to_batch
from storm_on_spark.testing.components.bench import Bench, sources_of
from storm_on_spark.testing.components.collectors import (
    RecordingBasicCollector,
    RecordingBatchCollector,
    RecordingCollector,
)
from storm_on_spark.testing.components.tester import Tester
from storm_on_spark.testing.tuples import make_tick_tuple, make_timer_tuple

Bolt = BaseRichBolt | BaseBasicBolt | BatchBolt | ExecutedByBolt
BoltCollector = RecordingCollector | RecordingBasicCollector | RecordingBatchCollector


class BoltTester(Tester[BaseRichBolt | BaseBasicBolt | BatchBolt]):
    """A prepared bolt that a test feeds.

    Exceptions of the bolt reach the test, except a `FailedException` where that is allowed.

    Args:
        bolt: the bolt; this object itself is tested, so a test can look at its attributes.
        sources: inputs like those that it will receive, so that its context knows their streams.
        name: its component id.
        conf: configuration over the defaults.
        targets: the components that subscribe to it, with their numbers of tasks; None to allow direct emits to any
            task.
        tasks: how many tasks the bolt has.
        task_index: which of them this is.

    Raises:
        InvalidTopologyError: it is not a bolt, or has an invalid declaration.
        ConfigError: a key or value of `conf` is invalid.

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
        bolt = bolt.executor() if isinstance(bolt, ExecutedByBolt) else bolt
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
        self._now_ms = 0
        self._context = self._new_context()
        output = bench.output(self._context)
        #: The actions of the bolt so far, including before restarts.
        self.collector: BoltCollector
        if bench.kind is ComponentKind.BOLT:
            self.collector = RecordingCollector(output=output)
        elif bench.kind is ComponentKind.BASIC_BOLT:
            self.collector = RecordingBasicCollector(output=output)
        else:
            self.collector = RecordingBatchCollector(output=output)
        #: The key-value state of a `BaseStatefulBolt`; None for other bolts.
        self.state: KeyValueState | None = None
        self._store, self._entries = MemoryStore(), 0
        self._prepare()

    @property
    def bolt(self) -> Any:
        """The instance; a new one after `restart`."""
        return self._instance

    def execute(self, *inputs: Tuple | pa.RecordBatch) -> None:
        """Makes the bolt execute tuples, or record batches for a `BatchBolt`.

        A `BatchBolt` gets consecutive tuples of the same stream as one batch.

        Raises:
            TupleError: the bolt emitted something invalid, or was given something that it can't take.
        """
        bolt = self._instance
        _check(bolt, inputs)
        if isinstance(bolt, BatchBolt):
            for source, batch in _batches(inputs):
                self._execute_batch(bolt, batch, source)
            return
        for tup in inputs:
            if isinstance(bolt, BaseRichBolt):
                bolt.execute(tup)
            else:
                self._execute_basic(bolt, tup)
        if isinstance(bolt, BaseRichBolt):
            bolt.finish_micro_batch()

    def tick(self) -> None:
        """Makes the bolt execute a tick tuple."""
        rate = self._bench.conf.get("topology.tick.tuple.freq.secs") or 1
        self.execute(make_tick_tuple(float(rate)))

    def advance(self, seconds: float) -> None:
        """Advances the topology's time, which starts at 0; the bolt executes the timers that fall due, in order.

        This is like a topology with the shortest possible micro-batches: timers that are due at the same time come in
        the same one.
        """
        end = self._now_ms + round(1000 * seconds)
        timers = self._bench.timers
        while True:
            due = min(((self._now_ms // period + 1) * period for _, period in timers), default=end + 1)
            self._now_ms = min(due, end)
            if timers:
                self._context.clock_ms = self._now_ms
            if due > end:
                return
            self.execute(*(make_timer_tuple(name, due) for name, period in timers if due % period == 0))

    def _new_context(self) -> TopologyContext:
        context = self._bench.context()
        if self._bench.timers:
            context.clock_ms = self._now_ms
        return context

    def restart(self) -> None:
        """Affects the bolt like a crash between two micro-batches.

        A fresh copy is prepared, and gets the attributes of the old one that can be pickled, unless the compiler
        considers the bolt stateless.

        Raises:
            ComponentError: the bolt or its state can't be pickled.
        """
        if isinstance(self.state, StoredState) and (written := self.state.commit(self._store, self._entries)):
            self._entries = written.entries
        self._instance, state = self._reborn()
        self._context = self._new_context()
        self._prepare()
        self._restore(state)

    def close(self) -> None:
        """Calls `cleanup`, once."""
        if not self._closed:
            self._closed = True
            self._instance.cleanup()
            shutil.rmtree(self._bench.pid_dir, ignore_errors=True)

    def _prepare(self) -> None:
        bolt, conf, context = self._instance, self._bench.conf, self._context
        if isinstance(bolt, BaseBasicBolt):
            bolt.prepare(conf, context)
        else:
            bolt.prepare(conf, context, self.collector)  # type: ignore[arg-type]
        if isinstance(bolt, STATEFUL_BOLTS):
            values = StoredState()
            values.attach(self._store)
            values.load(self._store, self._entries)
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

    def _execute_batch(self, bolt: BatchBolt, batch: pa.RecordBatch, source: GlobalStreamId) -> None:
        collector = self.collector
        assert isinstance(collector, RecordingBatchCollector)
        collector.begin(batch)
        collector.source = source
        try:
            bolt.execute_batch(batch, collector)
        except FailedException as failure:
            collector.fail(range(batch.num_rows))
            if isinstance(failure, ReportedFailedException):
                collector.report_error(failure)
        collector.end()


def run_bolt(bolt: Bolt, inputs: Iterable[Tuple | pa.RecordBatch], conf: Mapping[str, Any] | None = None) -> Any:
    """Prepares a bolt, makes it execute all inputs, and cleans it up.

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


def _check(bolt: Bolt, inputs: Iterable[Tuple | pa.RecordBatch]) -> None:
    is_batch_bolt = isinstance(bolt, BatchBolt)
    for item in inputs:
        if not isinstance(item, Tuple) and not (is_batch_bolt and isinstance(item, pa.RecordBatch)):
            wanted = "tuples or record batches" if is_batch_bolt else "tuples"
            raise TupleError(f"{type(bolt).__name__} executes {wanted}, not {item!r:.100}; make tuples with make_tuple")


def _batches(inputs: Sequence[Tuple | pa.RecordBatch]) -> Iterable[tuple[GlobalStreamId, pa.RecordBatch]]:
    """Yields record batches unchanged, and consecutive tuples of one stream as one batch, each with its stream."""
    for source, group in groupby(inputs, lambda item: _source(item)):
        if source is None:
            yield from ((GlobalStreamId("source"), batch) for batch in group)
        else:
            tuples = [item for item in group if isinstance(item, Tuple)]
            yield source[0], to_batch(list(tuples[0].fields), [tuple(tup) for tup in tuples])


def _source(item: Tuple | pa.RecordBatch) -> Any:
    return (item.source_global_stream_id, item.fields) if isinstance(item, Tuple) else None
