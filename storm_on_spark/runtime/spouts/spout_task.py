"""One task of a spout: its instance, its pending messages and its log.

Everything here happens on one thread, as Storm promises a spout. A *cut* writes what was emitted since the last one
to the log together with a snapshot; after a crash `open` runs, the snapshot is put back over the instance, and the
pending messages are read from the log. What was emitted after the last cut never happened, for log and spout alike.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from operator import length_hint
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from storm_on_spark.api.errors import CheckpointError, ComponentError, TupleError
from storm_on_spark.api.metrics.registry import Reading
from storm_on_spark.api.streams.stream import DEFAULT_STREAM
from storm_on_spark.api.task.context import TopologyContext
from storm_on_spark.api.task.hooks import EmitInfo, SpoutAckInfo, SpoutFailInfo
from storm_on_spark.api.text.wording import other_format
from storm_on_spark.metrics.latency import Latencies
from storm_on_spark.runtime.codec import chunk
from storm_on_spark.runtime.emit.encode import encode_sealed
from storm_on_spark.runtime.emit.output import TaskOutput
from storm_on_spark.runtime.processes.credentials import Listening
from storm_on_spark.runtime.reports.report import USER_ERRORS, Reported, SpoutStats, add_reported
from storm_on_spark.runtime.reports.shown_values import ids_text
from storm_on_spark.runtime.run.settings import SpoutSettings
from storm_on_spark.runtime.run.spec import RunSpec
from storm_on_spark.runtime.run.wiring import Wiring
from storm_on_spark.runtime.samples.sampler import NO_SAMPLES
from storm_on_spark.runtime.spouts import message_ids
from storm_on_spark.runtime.spouts.collector import Collector
from storm_on_spark.runtime.spouts.log import (
    ACKER,
    MESSAGE_IDS,
    SEGMENT_BYTES,
    Cut,
    Entry,
    Mark,
    WriterEpoch,
    open_log,
)
from storm_on_spark.runtime.state.snapshot import Snapshots
from storm_on_spark.runtime.storage import Folder
from storm_on_spark.runtime.tracking import acker
from storm_on_spark.runtime.tracking.fold import U8Array, shares_of
from storm_on_spark.runtime.tracking.ids import EdgeIds, U64Array, root_base
from storm_on_spark.runtime.tracking.lineage import UNANCHORED, consecutive
from storm_on_spark.runtime.tracking.pending import Ended, PendingMessages
from storm_on_spark.runtime.values import pickling
from storm_on_spark.runtime.values.frozen import CONSTANT, constant_id
from storm_on_spark.runtime.values.hashing import stable_hash

_SNAPSHOT_VERSION = 1
_ANSWERS = ("ack", "fail", "ack_batch", "fail_batch")
_LEAST_SEGMENTS = 4
"""Segments in a log of the maximal size, at least: a segment is removed only when all of it is consumed."""
STRAGGLERS = 10_000
"""A log is not kept only for this many old messages that are still pending: their ids go into the snapshot instead."""


class SpoutTask:
    """A spout's task, opened and restored.

    Args:
        spec: the run.
        wiring: the tables of its plan.
        context: the task's context.
        folder: where the task's log is.
        clock: the topology's time in ms.
        now: monotonic seconds, for latencies.
        epoch: the process's, as a writer of the log; see `SpoutLog`.
        planned: up to where the log must be whole.

    Raises:
        ComponentError: `set_credentials` or `open` raised.
        CheckpointError: the log can't be read.
    """

    most_cut_tuples: ClassVar[int] = 1 << 14
    """A cut is due when this many tuples wait for one."""

    def __init__(
        self,
        spec: RunSpec,
        wiring: Wiring,
        context: TopologyContext,
        folder: Folder,
        clock: Callable[[], int],
        now: Callable[[], float] = time.monotonic,
        *,
        epoch: WriterEpoch | None = None,
        planned: Mark = Mark(),  # noqa: B008 # it is immutable
    ) -> None:
        self.component = context.this_component_id
        self.task = context.this_task_id
        self._edge_seed = stable_hash((spec.storm_id, "spout", self.task))
        self._ackers = spec.plan.acker_tasks
        self._clock = clock
        self.now = now
        self._hooks = context.hooks
        self._output = TaskOutput(wiring, context)
        self._emits = self._output.emits
        #: What is neither acked nor failed.
        self.pending = PendingMessages()
        #: The ids of messages that have ended and wait for `ack` or `fail`.
        self._answering: Iterator[Any] = iter(())
        self.errors: list[Reported] = []
        self.stats = SpoutStats()
        self.sampler = NO_SAMPLES
        self.latencies = Latencies()
        #: The first message that a restart needs from the log, as of each cut that Spark may not have committed: (end,
        #: number). In front of these, as of the last one that it has.
        self._needs: deque[tuple[int, int]] = deque([(0, 1)])
        #: The number of the first message that is in no cut.
        self._uncut = 1
        #: How many tuples the next cut will hold.
        self.fresh = 0
        self._called = 0.0
        #: Last batch whose outcome is in the instance's state.
        self.settled_batch = -1
        self._settled_dirty = False
        #: Ids of messages that are acked because they were emitted: there is no acker.
        self._emit_acks: list[Any] = []
        settings = wiring.settings(SpoutSettings, self.component)
        sync = settings.durability == "machine"
        segment_bytes = max(1, min(SEGMENT_BYTES, settings.log_max_bytes // _LEAST_SEGMENTS))
        self.log = open_log(folder, segment_bytes, epoch=epoch, planned=planned, sync=sync)
        #: Bytes of the tuples in the last cut that had any.
        self.cut_bytes = 0
        #: The chunks of the last cut.
        self.cut_entries: tuple[Entry, ...] = ()
        self._snapshot = b""
        self.spout = spec.instance(self.component)
        self.credentials = Listening(self.spout, self.component, self.task)
        # `open` may emit, so numbers and pending messages are there before it.
        state = None if self.log.last is None else self._recover()
        self._open(wiring.conf(self.component), context, state)

    def _recover(self) -> bytes:
        """Restores numbers and pending messages from the log; returns the instance's saved state."""
        self._snapshot = self.log.snapshot()
        version, *saved = pickling.loads(self._snapshot)
        if version != _SNAPSHOT_VERSION:
            raise CheckpointError(
                other_format(f'the snapshot of spout "{self.component}" (task {self.task})', version, _SNAPSHOT_VERSION)
            )
        state: bytes
        state, following, self.settled_batch, (old, low, bits) = saved
        self._uncut = following
        self._needs = deque([(0, low)])
        now = self.now()
        self.pending = PendingMessages(low, bits, self._old_ids(old), now, following)
        for cut, _, body in self.log.entries(self._position_of(low), lambda t: t == MESSAGE_IDS):
            self.pending.add_logged(cut.first, self._logged_ids(pickling.loads(body)), now)
        return state

    def _open(self, conf: Mapping[str, Any], context: TopologyContext, state: bytes | None) -> None:
        """Calls `open`, then restores the instance's saved state."""
        collector = self._make_collector()
        self._guard("open", self.spout.open, conf, context, collector)
        self._hooks = context.hooks  # with those that `open` added
        self.metrics = context.metrics
        self.metrics.prepared = True
        name, given = f'spout "{self.component}" (task {self.task})', (collector, context, conf)
        self._snapshots: Snapshots = self._guard("snapshot", Snapshots, self.spout, name, given)
        if state is not None:
            self._snapshots.restore(state)
            self.credentials.give(again=True)
        self._ack_emitted()

    def _make_collector(self) -> Any:
        return Collector(self)

    # --- emitting ---------------------------------------------------------------

    def emit(self, values: Sequence[Any], message_id: Any = None, stream: str = DEFAULT_STREAM) -> list[int]:
        """Emits one tuple; see `SpoutOutputCollector.emit`."""
        if type(message_id) not in CONSTANT:
            message_id = constant_id(message_id)
        if message_id is not None and self._ackers:
            # As `_anchor` and `_track`, for the common case.
            pending = self.pending
            tasks = self._emits[stream](values, len(pending.ids))
            pending.ids.append(message_id)
            pending.times.append(self._called)
        else:
            tasks = self._emits[stream](values, UNANCHORED)
            if message_id is not None:
                self._emit_acks.append(message_id)
        self.fresh += 1
        if self._hooks:
            for hook in self._hooks:
                hook.emit(EmitInfo(values, stream, self.task, tasks))
        return tasks

    def emit_direct(self, task: int, values: Sequence[Any], message_id: Any, stream: str) -> None:
        """Emits one tuple to one task; see `SpoutOutputCollector.emit_direct`."""
        message_id = constant_id(message_id)
        self._output.emit_direct(task, stream, values, self._anchor(message_id))
        self.fresh += 1
        if message_id is not None:
            self._track(message_id)
        for hook in self._hooks:
            hook.emit(EmitInfo(values, stream, self.task, [task]))

    def _anchor(self, message_id: Any) -> int:
        return len(self.pending.ids) if message_id is not None and self._ackers else UNANCHORED

    def _track(self, message_id: Any) -> None:
        if self._ackers:
            self.pending.ids.append(message_id)
            self.pending.times.append(self._called)
        else:
            self._emit_acks.append(message_id)

    def next_tuple(self, now: float | None = None) -> bool:
        """Calls the spout once; returns whether it emitted.

        Args:
            now: the present time of `self.now`, if the caller has just read it.
        """
        before = self.fresh
        self._called = self.now() if now is None else now
        try:
            self.spout.next_tuple()
        except USER_ERRORS as error:
            raise self._wrap("next_tuple", error) from error
        if self._emit_acks:
            self._ack_emitted()
        return self.fresh != before

    def _ack_emitted(self) -> None:
        # Without ackers a message is done once it is out, but not before the spout has noted that it sent it.
        while self._emit_acks:
            acks, self._emit_acks = self._emit_acks, []
            self._ack_all(acks)

    def _ack_all(self, ids: list[Any]) -> None:
        for message_id in ids:
            self._ack(message_id, None)

    @property
    def dirty(self) -> bool:
        """Whether a cut would save new tuples or state."""
        return bool(self.fresh or self._settled_dirty)

    # --- the log ---------------------------------------------------------------

    def cut(self) -> Cut:
        """Writes what was emitted since the last cut, and the snapshot; returns the record's header.

        Raises:
            OSError: the log can't be written.
            TupleError: a value or a message id can't be pickled.
            ComponentError: the spout's state can't be pickled.
        """
        first, count = self._uncut, self.pending.following - self._uncut
        begin = root_base(self.task) + first
        clock = self._clock()
        entries: list[Entry] = []
        receipts = 0
        ids = EdgeIds.behind(self._edge_seed, self.log.end)
        roots = consecutive(begin, count)
        sent = self._output.sent()
        is_sampled = self.sampler.is_on(time.perf_counter())
        for sequence, sealed in enumerate(self._output.seal(lambda: roots, ids)):
            (_, body), receipt = encode_sealed(sealed, self.component, self.task, (self.log.end << 12) + sequence)
            entries.append((sealed.box.target, body))
            receipts ^= receipt
            if is_sampled:
                emitted = self.pending.ids, self.pending.times, self.now()
                self.sampler.emitted(self.component, self.task, sealed, begin, emitted)
        if count:
            for index, (task, share) in enumerate(shares_of(self._ackers, begin, count)):
                init = chunk.encode_steady_acks(
                    share, acker.INIT, target=task, source=self.task, clock=clock, receipts=receipts
                )
                entries.append((ACKER - index, init))
        self.cut_entries = tuple(entries)
        if count:
            entries.append((MESSAGE_IDS, self._close_block()))
        if self.fresh:
            self.cut_bytes = sum(len(body) for _, body in entries)
        pending = self.pending.saved()
        state = self._guard("snapshot", self._snapshots.take)
        snapshot = pickling.dumps((_SNAPSHOT_VERSION, state, self.pending.following, self.settled_batch, pending))
        new = snapshot != self._snapshot or self.log.wants_snapshot
        cut = self.log.append(
            entries,
            tuples=self.fresh,
            messages=count,
            first=first,
            clock=clock,
            snapshot=snapshot if new else None,
        )
        self._snapshot = snapshot
        self._needs.append((cut.end, pending[1]))
        self.stats.sent(sent)
        self._uncut = self.pending.following
        self.fresh = 0
        self._settled_dirty = False
        return cut

    def _close_block(self) -> bytes:
        """Ends the block of the messages since the last cut, and returns their ids, pickled."""
        ids = self.pending.ids
        try:
            pickled = pickling.dumps(ids)
        except Exception as error:  # whatever the ids' own methods raise
            for message_id in ids:
                try:
                    pickling.dumps(message_id)
                except Exception as reason:
                    raise TupleError(
                        f'"{self.component}" (task {self.task}) emitted a tuple whose message id can\'t be pickled: '
                        f"{reason} (given {message_id!r:.100})"
                    ) from error
            raise
        self.pending.close_block()
        return pickled

    def _logged_ids(self, ids: Any) -> Any:
        """Returns the ids of a cut: a list, or as a `BatchSpout` had them if the component was one then."""
        return message_ids.decode(ids).to_pylist() if isinstance(ids, bytes) else ids

    def _old_ids(self, old: dict[int, Any]) -> dict[int, Any]:
        """Returns the ids of old messages; those of a `BatchSpout` are Arrow scalars."""
        return {number: value.as_py() if isinstance(value, pa.Scalar) else value for number, value in old.items()}

    def trim(self, consumed: int) -> None:
        """Deletes records that neither a micro-batch nor a restart needs.

        Args:
            consumed: position up to which Spark has committed.
        """
        while len(self._needs) > 1 and self._needs[1][0] <= consumed:
            self._needs.popleft()
        bases = self.log.bases()
        if len(bases) <= 1:
            return
        # As of a cut that Spark has committed: a successor continues from that one or from a later one. What this
        # process alone knows may be void, if it was replaced without its knowledge.
        position = self._position_of(self._needs[0][1])
        unconsumed = max((base for base in bases if base <= consumed), default=0)
        if position < unconsumed:
            # Only messages that have been pending for long hold the log back.
            floor = next(self.log.cuts(unconsumed)).first
            if self.pending.leave_log(floor, STRAGGLERS):
                self._settled_dirty = True
        self.log.trim(min(consumed, position))

    def _position_of(self, number: int) -> int:
        """Returns a position at or before the record that holds message `number`."""
        bases = self.log.bases()
        position = bases[0]
        for base in bases[1:]:
            if next(self.log.cuts(base)).first > number:
                break
            position = base
        return position

    # --- outcomes ---------------------------------------------------------------

    def settle(self, batch: int, roots: U64Array, codes: U8Array, left: Sequence[bytes] = ()) -> None:
        """Calls `ack` and `fail` for the messages that ended in `batch`; only rows of a native spout are ever `left`.

        Spark may run a batch again after a crash, and outcomes are then sent again. Messages that are no longer
        pending are ignored, so each is answered once.

        Raises:
            ComponentError: the spout raised.
        """
        self.settled_batch = max(batch, self.settled_batch)
        self._settled_dirty = True
        now = self._called = self.now()  # `fail` may emit the message again
        numbers = (roots - np.uint64(root_base(self.task))).astype(np.int64)
        if len(numbers) > 1 and (np.diff(numbers) <= 0).any():
            numbers, first = np.unique(numbers, return_index=True)
            codes = codes[first]
        for ended in self.pending.end(numbers):
            part, seconds = codes[ended.where], now - np.asarray(ended.times)
            if self.sampler.rates:
                self.sampler.ended(self, numbers[ended.where] + root_base(self.task), ended.ids, part, seconds)
            self._answer(ended, part, seconds)
            self.latencies.add(1e3 * seconds[part == acker.ACKED])

    def acked(self, roots: Sequence[int]) -> None:
        """Calls `ack` for a few messages, as `settle` does: for those that are pending.

        Raises:
            ComponentError: the spout raised.
        """
        self._settled_dirty = True
        now = self._called = self.now()
        base = root_base(self.task)
        for root in roots:
            ended = self.pending.end_one(root - base)
            if ended is not None:
                message_id, emitted_at = ended
                if self.sampler.rates:
                    self.sampler.ended(self, [root], [message_id], [acker.ACKED], [now - emitted_at])
                self._ack(message_id, now - emitted_at)
                self.latencies.add_one(1e3 * (now - emitted_at))

    def _answer(self, ended: Ended, codes: U8Array, seconds: NDArray[np.float64]) -> None:
        """Calls the spout's `ack` and `fail`."""
        self._answering = iter(ended.ids)
        if self._hooks or np.count_nonzero(codes):
            for message_id, code, waited in zip(self._answering, codes.tolist(), seconds.tolist(), strict=True):
                if code == acker.ACKED:
                    self._ack(message_id, waited)
                else:
                    self._fail(message_id, waited, code)
        else:
            # As above, for the common case.
            ack = self.spout.ack
            try:
                for message_id in self._answering:
                    ack(message_id)
            except USER_ERRORS as error:
                raise self._wrap("ack", error, message_id) from error
            self.stats.acked += len(ended.ids)

    def pending_count(self) -> int:
        """Returns how many messages are neither acked nor failed, as the spout sees it."""
        return len(self.pending) + length_hint(self._answering)

    def again_count(self) -> int:
        """Returns how many messages this process keeps for another attempt; other spouts do that themselves."""
        return 0

    def waiting_count(self) -> int:
        """Returns how many of these are not under way."""
        return 0

    def _ack(self, message_id: Any, seconds: float | None) -> None:
        self.stats.acked += 1
        self._guard("ack", self.spout.ack, message_id)
        if self._hooks:
            for hook in self._hooks:
                hook.spout_ack(SpoutAckInfo(message_id, self.task, None if seconds is None else 1e3 * seconds))

    def _fail(self, message_id: Any, seconds: float, code: int) -> None:
        self.stats.failed += 1
        self.stats.timed_out += code == acker.TIMED_OUT
        self._guard("fail", self.spout.fail, message_id)
        for hook in self._hooks:
            hook.spout_fail(SpoutFailInfo(message_id, self.task, 1e3 * seconds))

    # --- life ---------------------------------------------------------------

    def exhausted(self) -> bool:
        """Returns whether the spout says that it will emit nothing new."""
        return bool(self._guard("exhausted", self.spout.exhausted))

    def readings(self) -> tuple[Reading, ...]:
        """Returns what the metrics that the spout registered have to say; their errors go to `errors`."""
        if not self.metrics:
            return ()
        return self.metrics.readings(
            lambda name, error: add_reported(self.errors, self._wrap(f"metric {name!r}", error))
        )

    def activate(self) -> None:
        """Tells the spout that the topology is active."""
        self._guard("activate", self.spout.activate)
        self._ack_emitted()

    def deactivate(self) -> None:
        """Tells the spout that it won't be called until `activate`."""
        self._guard("deactivate", self.spout.deactivate)
        self._ack_emitted()

    def close(self) -> None:
        """Closes the spout and the log."""
        try:
            self._guard("close", self.spout.close)
        finally:
            self.log.close()

    def _guard(self, phase: str, call: Callable[..., Any], *args: Any) -> Any:
        try:
            return call(*args)
        except USER_ERRORS as error:
            raise self._wrap(phase, error, *args[:1]) from error

    def _wrap(self, phase: str, error: BaseException, *given: Any) -> ComponentError:
        if isinstance(error, ComponentError):
            return error
        found = ComponentError.of(self.component, self.task, phase, error)
        if phase in _ANSWERS:
            found.input = ids_text(*given)
        return found
