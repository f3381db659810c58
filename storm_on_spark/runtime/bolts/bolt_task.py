"""One task of a bolt: a prepared instance and how it executes a micro-batch.

A tuple whose execution raises is poison: its trees fail, the error is reported, and the instance and its output become
what they would be had the tuple never come. So the work since the last known good state is done again without it.
A batch without errors pays nothing for this.
"""

from __future__ import annotations

import contextlib
import logging
import sys
import sysconfig
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import count
from sys import getrefcount
from types import CodeType
from typing import Any, NamedTuple

import numpy as np

from storm_on_spark.api.errors import ComponentError, FailedException, ReportedFailedException, UnusableError
from storm_on_spark.api.metrics.registry import Reading
from storm_on_spark.api.sink import SinkBolt
from storm_on_spark.api.state import STATEFUL_BOLTS
from storm_on_spark.api.task.context import TopologyContext
from storm_on_spark.api.task.hooks import BoltExecuteInfo
from storm_on_spark.api.topology import ComponentKind
from storm_on_spark.api.tuple import Tuple
from storm_on_spark.plan.model import EdgeKind
from storm_on_spark.runtime.bolts.collectors import BasicCollector, BatchCollector, Ledger, RichCollector, fold_of_held
from storm_on_spark.runtime.bolts.durations import Durations
from storm_on_spark.runtime.bolts.inputs import Execution, Input, not_taken_whole, rows_between, taken_in
from storm_on_spark.runtime.bolts.poison import PoisonError, PoisonReports
from storm_on_spark.runtime.emit.output import OutputMark, TaskOutput
from storm_on_spark.runtime.processes.credentials import Listening
from storm_on_spark.runtime.reports.report import USER_ERRORS
from storm_on_spark.runtime.run.settings import BoltSettings
from storm_on_spark.runtime.run.wiring import Wiring
from storm_on_spark.runtime.samples.sampler import NO_SAMPLES, Sampler
from storm_on_spark.runtime.state.keyvalue.ahead import looking_ahead
from storm_on_spark.runtime.state.keyvalue.state import StoredState
from storm_on_spark.runtime.state.keyvalue.store import Store
from storm_on_spark.runtime.state.snapshot import Snapshots, warn_of_size
from storm_on_spark.runtime.tracking.acker import FAIL, RESET
from storm_on_spark.runtime.tracking.fold import Fold
from storm_on_spark.runtime.tracking.ids import EdgeIds
from storm_on_spark.runtime.tracking.lineage import InputLineage, contributions, marked

_ALONE = 2 if sys.version_info < (3, 14) and not sysconfig.get_config_var("Py_GIL_DISABLED") else 0
"""References to a tuple that only the loop holds; 0, for never, where Python counts references differently.

A bolt rarely keeps its tuples. One that it has not kept is used for the next values, which saves a tenth of what a
short `execute` takes: an object is made and thrown away, and two attributes set.
"""

log = logging.getLogger(__name__)


class Kept(NamedTuple):
    """A task's state before this micro-batch; `KeyValueState` reads the parts that it needs.

    Args:
        store: the state.
        entries: how many entries the journal of its key-value state has.
    """

    store: Store
    entries: int


class UnsavedError(Exception):
    """A bolt raised, and its state before that was not saved: it can't be set back to that."""


@dataclass
class _Good:
    """A state known to be good: everything before `index` is done."""

    index: int
    snapshot: bytes | None
    output: OutputMark | None
    ledger: tuple[int, ...]
    journal: int
    metrics: Any
    """What registered metrics had counted; None without any."""
    timed: tuple[int, int]


class BoltTask:
    """A prepared bolt.

    Args:
        wiring: the tables of the plan.
        instance: the bolt's own copy for this task.
        context: the task's context.
        stateless: whether the instance needs no snapshots.
        fail_fast: whether an exception of the bolt ends the execution (`topology.fail.fast`).
        kept: where the key-value state of a `BaseStatefulBolt` is; None where there is none yet.
        sampler: takes samples of tuples, when it is on.

    Raises:
        ComponentError: `set_credentials`, `prepare` or `init_state` raised.
    """

    def __init__(
        self,
        wiring: Wiring,
        instance: Any,
        context: TopologyContext,
        *,
        stateless: bool,
        fail_fast: bool,
        kept: Kept | None = None,
        sampler: Sampler = NO_SAMPLES,
    ) -> None:
        self._sampler = sampler
        self.component = context.this_component_id
        self.task = context.this_task_id
        self.wiring = wiring
        self.kind = wiring.plan.components[self.component].kind
        self.instance = instance
        #: The micro-batch that it executes.
        self.batch = -1
        self._context = context
        self._fail_fast = fail_fast
        self._durations = Durations()
        conf = wiring.conf(self.component)
        self._output = TaskOutput(wiring, context)
        #: Snapshot that equals the instance's state between executions; None for a stateless bolt.
        self.snapshot: bytes | None = None
        #: The one that is in the state store; it is older after executions that saved nothing.
        self.saved: bytes | None = None
        self._credentials = Listening(instance, self.component, self.task)
        try:
            if self.kind is ComponentKind.BASIC_BOLT:
                self._collector: Any = BasicCollector(self._output)
                instance.prepare(conf, context)
            else:
                self._collector = (RichCollector if self.kind is ComponentKind.BOLT else BatchCollector)(self._output)
                instance.prepare(conf, context, self._collector)
        except USER_ERRORS as error:
            raise self._wrap("prepare", error) from error
        self._collector.hooks = context.hooks  # with those that `prepare` added
        self._collector.loops = self.loops()
        self._sink = instance if isinstance(instance, SinkBolt) else None
        self._metrics = context.metrics
        self._metrics.prepared = True
        settings = wiring.settings(BoltSettings, self.component)
        #: The key-value state of a `BaseStatefulBolt`.
        self.state: StoredState | None = None
        #: Places of the fields by which tuples are grouped for this bolt, by source and stream.
        self._grouped_by: dict[tuple[str, str], tuple[int, ...]] = {}
        if isinstance(instance, STATEFUL_BOLTS):
            self._grouped_by = wiring.grouped_by(self.component)
            self.state = StoredState(settings.state_memory_mb << 20)
            if kept is not None:
                self.state.attach(kept.store)
                self.state.load(*kept)
            try:
                instance.init_state(self.state)
            except USER_ERRORS as error:
                raise self._wrap("init_state", error) from error
        self._run = {
            ComponentKind.BOLT: self._run_rich,
            ComponentKind.BASIC_BOLT: self._run_basic,
            ComponentKind.BATCH_BOLT: self._run_batches,
        }[self.kind]
        #: What takes them; None for a stateless bolt.
        self.snapshots: Snapshots | None = None
        self._warn_bytes = settings.attribute_warn_mb << 20
        if not stateless:
            given = (self._collector, context, conf, *([] if self.state is None else [self.state]))
            try:
                self.snapshots = Snapshots(instance, f'bolt "{self.component}" (task {self.task})', given)
            except USER_ERRORS as error:
                raise self._wrap("snapshot", error) from error
            self.snapshot = self.saved = self.snapshots.prepared

    def restore(self, snapshot: bytes) -> None:
        """Puts a snapshot from the state store over the prepared instance."""
        assert self.snapshots is not None
        self.snapshots.restore(snapshot)
        self._credentials.give(again=True)
        self.snapshot = self.saved = snapshot

    def catch_up(self, snapshot: bytes, kept: Kept, held: int | None) -> None:
        """Brings the instance from an earlier state of its task to that of the state store, where others have gone on.

        Args:
            snapshot: the present one.
            kept: the present key-value state.
            held: how many entries its journal had at that earlier state; None if it has been rewritten since.
        """
        if self.state is not None:
            self.state.catch_up(kept.store, held, kept.entries)
        if snapshot != self.snapshot:
            self.restore(snapshot)

    def roll_back(self, snapshot: bytes, kept: Kept) -> None:
        """Sets the instance to what the state store holds, because it executed something that did not count.

        Raises:
            ComponentError: `pre_rollback` raised.
        """
        if self.state is not None:
            try:
                self.instance.pre_rollback()
            except USER_ERRORS as error:
                raise self._wrap("pre_rollback", error) from error
            self.state.load(*kept)
        self.restore(snapshot)

    def execute(
        self,
        inputs: Sequence[Input],
        ids: EdgeIds,
        batch: int,
        kept: Kept | None = None,
        *,
        saves: bool = True,
        clock_ms: int | None = None,
    ) -> Execution:
        """Executes one micro-batch; afterwards `snapshot` and `state` are the new state.

        Args:
            inputs: the tuples in order. Their deliveries become part of this execution.
            ids: where edge ids come from.
            batch: the number of the micro-batch, the same for every attempt at it.
            kept: the key-value state as it was before this batch; only for a `BaseStatefulBolt`.
            saves: whether `snapshot` becomes the new state; without that, call `save` later.
            clock_ms: the topology's time; None for a bolt without timers.

        Raises:
            ComponentError: the bolt raised and `topology.fail.fast` is set, or `UnusableError`, or its state can't be
                pickled.
            UnsavedError: the bolt raised, and nothing was saved to which it could be set back.
        """
        started = time.perf_counter()
        self.batch, self._context.clock_ms = batch, clock_ms
        self._credentials.give()
        ledger: Ledger = self._collector.open_ledger()
        lineage = taken_in(inputs, ledger)
        self._output.begin(batch)
        self._durations.begin()
        result = Execution(executed=lineage.size)
        poisoned = self._execute_all(inputs, result, kept, saves=saves)
        if self.kind is ComponentKind.BOLT:
            try:  # not `guarded`, which takes longer than what most bolts do here
                self.instance.finish_micro_batch()
                result.written = b"" if self._sink is None else self._sink.take_written()
            except USER_ERRORS as error:
                raise self._wrap("finish_micro_batch", error) from error
        if self.state is not None and saves:
            self._announce(batch)
        # A row of a batch may have been failed more than once.
        if ledger.failed or poisoned:
            ledger.failed = list(dict.fromkeys([*ledger.failed, *poisoned]))
        for text, trace, given in ledger.errors:
            result.errors.append(ComponentError(self.component, self.task, "report_error", text, "", trace))
            result.errors[-1].input = given
        result.sent = self._output.sent()
        result.folds, result.acked = self._settle(ledger, lineage)
        result.failed = len(ledger.failed) + len(ledger.failed_held)
        for sealed in self._output.seal(lambda: lineage.roots, ids):
            result.sealed.append(sealed)
            if sealed.box.kind is EdgeKind.CARRIED and sealed.roots is not None and sealed.edges is not None:
                # It is executed in a micro-batch to come; see `InputLineage.left`.
                roots, edges = contributions(sealed.roots, sealed.edges.ids())
                result.folds.append(marked(roots, 0, xors=edges))
        if saves:
            self._save_attributes()
        result.amounts = self._durations.amounts(inputs, ledger, all_acked=self.kind is not ComponentKind.BOLT)
        if (started >= self._sampler.look_at or self._sampler.rates) and self._sampler.is_on(started):
            outcomes = ledger.acked if self.kind is ComponentKind.BOLT else None, ledger.failed, poisoned
            spent = time.perf_counter() - started, self._durations.calls
            self._sampler.executed(self.component, self.task, inputs, lineage, outcomes, result.sealed, spent)
        self._collector.close_ledger()
        if self._metrics and saves:
            result.registered = self.readings(result.errors)
        result.seconds = time.perf_counter() - started
        return result

    def save(self, batch: int) -> None:
        """Makes `snapshot` the present state, after executions without it.

        Raises:
            ComponentError: the state can't be pickled, or the bolt raised.
        """
        if self.state is not None:
            self._announce(batch)
        self._save_attributes()

    def readings(self, errors: list[ComponentError]) -> tuple[Reading, ...]:
        """Returns what the metrics that the bolt registered have to say; adds what they raise to `errors`."""
        if not self._metrics:
            return ()
        return self._metrics.readings(lambda name, error: errors.append(self._wrap(f"metric {name!r}", error)))

    def _announce(self, batch: int) -> None:
        """Tells a `BaseStatefulBolt` that its state is about to be committed."""
        try:
            self.instance.pre_prepare(batch)
            self.instance.pre_commit(batch)
        except USER_ERRORS as error:
            raise self._wrap("pre_commit", error) from error

    def _save_attributes(self) -> None:
        if self.snapshots is not None:
            self.took(self.take())

    def took(self, snapshot: bytes) -> None:
        """Makes the present state known to be `snapshot`."""
        assert self.snapshots is not None
        self.snapshot = snapshot
        if len(snapshot) > self._warn_bytes:
            warn_of_size(self.snapshots, len(snapshot), self._warn_bytes)

    @classmethod
    def loops(cls) -> frozenset[CodeType]:
        """Returns the code of the functions that call the bolt.

        In their frames `self` is the task, `inputs` what it got, and `tup` or `batch` what it executes of that: at
        `position` in `delivery`.
        """
        return frozenset(run.__code__ for run in (cls._run_rich, cls._run_basic, cls._run_batches))

    # --- executing ---------------------------------------------------------------

    def _execute_all(self, inputs: Sequence[Input], result: Execution, kept: Kept | None, *, saves: bool) -> list[int]:
        """Executes all tuples but the poison ones; returns the positions of these."""
        good = self._good(0, self.snapshot, None)
        poisoned: list[int] = []
        reports: PoisonReports | None = None
        #: Poison further ahead, first position and number of tuples; the nearest is the last. There is more than
        #: one only if a bolt does not always raise at the same tuple.
        ahead: list[tuple[int, int]] = []
        while True:
            stop = ahead[-1][0] if ahead else None
            try:
                self._run(inputs, good.index, stop)
            except PoisonError as poison:
                reports = reports or PoisonReports(self.component, self.task)
                error = reports.error(poison)
                if not saves and self.snapshots is not None:
                    self._output.truncate(good.output)
                    self._collector.ledger.truncate(good.ledger)
                    raise UnsavedError from poison.cause
                if self._fail_fast or isinstance(poison.cause, UnusableError):
                    raise error from poison.cause
                result.errors.append(error)
                poisoned += range(poison.index, poison.index + poison.count)
                ahead.append((poison.index, poison.count))
                if self.state is not None and len(poisoned) == poison.count:
                    # The first poison of the batch: `good` is where that began.
                    assert kept is not None
                    self.state.start_again(*kept)
                self._back_to(good)
                continue
            if stop is None:
                return poisoned
            _, count = ahead.pop()
            again = stop > good.index and self.snapshots is not None
            good = self._good(stop + count, self.take() if again else good.snapshot, self._output.mark())

    def _good(self, index: int, snapshot: bytes | None, output: OutputMark | None) -> _Good:
        journal = 0 if self.state is None else self.state.mark()
        metrics = self._metrics.saved() if self._metrics else None
        mark = self._collector.ledger.mark()
        return _Good(index, snapshot, output, mark, journal, metrics, self._durations.mark())

    def _back_to(self, good: _Good) -> None:
        if good.snapshot is not None:
            assert self.snapshots is not None
            self.snapshots.restore(good.snapshot)
            self._credentials.give(again=True)
        if self.state is not None:
            self.state.undo(good.journal)
        if self._metrics:
            self._metrics.back_to(good.metrics or ({}, {}))
        self._durations.truncate(good.timed)
        self._output.truncate(good.output)
        self._collector.ledger.truncate(good.ledger)

    def take(self) -> bytes:
        """Returns a snapshot of the present state.

        Raises:
            ComponentError: it can't be pickled.
        """
        assert self.snapshots is not None
        with self.guarded("snapshot"):
            return self.snapshots.take()

    @contextlib.contextmanager
    def guarded(self, phase: str) -> Iterator[None]:
        """Adds the component and task to an exception that the bolt or its values raise."""
        try:
            yield
        except USER_ERRORS as error:
            raise self._wrap(phase, error) from error

    def _run_basic(self, inputs: Sequence[Input], start: int, stop: int | None) -> None:
        execute, collector, ledger = self._execute, self._collector, self._collector.ledger
        for delivery, first, rows in self._durations.timed(rows_between(inputs, start, stop)):
            tup = Tuple.of((), delivery)
            for index, position, values in zip(count(delivery.offset + first), count(first), rows, strict=False):
                ledger.current = index
                if getrefcount(tup) != _ALONE:
                    tup = Tuple()
                    tup._delivery, tup._settled = delivery, False
                tup._values, tup._position = values, position
                try:
                    execute(tup, collector)
                except FailedException as failure:
                    ledger.failed.append(index)
                    if isinstance(failure, ReportedFailedException):
                        collector.report_error(failure)
                except USER_ERRORS as error:
                    raise PoisonError(index, error, tup) from error

    def _run_rich(self, inputs: Sequence[Input], start: int, stop: int | None) -> None:
        execute = self._execute
        parts = rows_between(inputs, start, stop)
        if self.state is not None and self.state.looks_ahead:
            parts = looking_ahead(self.state, self._grouped_by, list(parts))
        parts = not_taken_whole(parts, self.instance, self._collector.ledger, watched=bool(self._context.hooks))
        for delivery, first, rows in self._durations.timed(parts):
            tup = Tuple.of((), delivery)
            for position, values in zip(count(first), rows, strict=False):
                if getrefcount(tup) != _ALONE:
                    tup = Tuple()
                    tup._delivery = delivery
                tup._values, tup._position, tup._settled = values, position, False
                try:
                    execute(tup)
                except USER_ERRORS as error:
                    raise PoisonError(delivery.offset + position, error, tup) from error

    @property
    def _execute(self) -> Callable[..., None]:
        """The bolt's `execute`, with the hooks that there are now."""
        execute: Callable[..., None] = self._durations.each(self.instance.execute)
        hooks = self._context.hooks
        if not hooks:
            return execute

        def execute_and_tell(tup: Tuple, *collector: BasicCollector) -> None:
            execute(tup, *collector)
            for hook in hooks:
                hook.bolt_execute(BoltExecuteInfo(tup, self.task, None))

        return execute_and_tell

    def _run_batches(self, inputs: Sequence[Input], start: int, stop: int | None) -> None:
        collector = self._collector
        for delivery, batch, rows in inputs:
            if rows == 0 or delivery.offset < start or (stop is not None and delivery.offset >= stop):
                continue
            collector.take(delivery, rows)
            began = time.perf_counter()
            try:
                self.instance.execute_batch(batch, collector)
            except FailedException as failure:
                collector.fail(np.arange(rows))
                if isinstance(failure, ReportedFailedException):
                    collector.report_error(failure)
            except USER_ERRORS as error:
                raise PoisonError(delivery.offset, error, batch, rows) from error
            self._durations.took(delivery, rows, time.perf_counter() - began)

    # --- settling ---------------------------------------------------------------

    def _settle(self, ledger: Ledger, lineage: InputLineage) -> tuple[list[Fold], int]:
        """Returns the report for the ackers, and how many tuples were acked."""
        acked = ledger.acked if self.kind is ComponentKind.BOLT else None
        count = lineage.size - len(ledger.failed) if acked is None else len(acked)
        folds = lineage.report(acked, ledger.failed)
        if ledger.acked_held:
            folds.append(fold_of_held(ledger.acked_held, 0))
        if ledger.failed_held:
            folds.append(fold_of_held(ledger.failed_held, FAIL))
        if ledger.reset:
            folds.append(marked(np.array(ledger.reset, np.uint64), RESET))
        return [part for part in folds if len(part.roots)], count + len(ledger.acked_held)

    def _wrap(self, phase: str, error: BaseException) -> ComponentError:
        if isinstance(error, ComponentError):
            return error
        return ComponentError.of(self.component, self.task, phase, error)
