"""Driving one spout by hand, without Spark and in milliseconds."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, overload

import pyarrow as pa

from storm_on_spark.api.component import BaseRichSpout, BatchSpout
from storm_on_spark.api.errors import StormError
from storm_on_spark.api.text.wording import kind_of
from storm_on_spark.api.topology import ComponentKind
from storm_on_spark.runtime.spouts import message_ids
from storm_on_spark.testing.components.bench import Bench
from storm_on_spark.testing.components.collectors import RecordingBatchSpoutCollector, RecordingSpoutCollector
from storm_on_spark.testing.components.tester import Tester
from storm_on_spark.testing.records import BatchSpoutEmission, Emission

Spout = BaseRichSpout | BatchSpout
SpoutCollector = RecordingSpoutCollector | RecordingBatchSpoutCollector

MOST_CALLS = 1_000_000


class SpoutTester(Tester[Spout]):
    """An open and active spout that a test drives.

    Args:
        spout: the spout; this object itself is tested, so a test can look at its attributes.
        name: its component id.
        conf: configuration over the defaults.
        targets: the components that subscribe to it, with their numbers of tasks; None to allow direct emits to any
            task.
        tasks: how many tasks the spout has.
        task_index: which of them this is.

    Raises:
        InvalidTopologyError: it is not a spout, or has an invalid declaration.
        ConfigError: a key or value of `conf` is invalid.

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

        A `BatchSpout` is called for batches, and is told of many messages at once:

        >>> import pyarrow as pa
        >>> from storm_on_spark import BatchSpout, Fields
        >>> class Numbers(BatchSpout):
        ...     def open(self, conf, context, collector):
        ...         self.collector = collector
        ...     def next_batch(self):
        ...         self.collector.emit(pa.record_batch({"n": [1, 2, 3]}), message_ids=[1, 2, 3])
        ...     def ack_batch(self, message_ids):
        ...         self.last = message_ids
        ...     def declare_output_fields(self, declarer):
        ...         declarer.declare(Fields("n"))
        >>> tester = SpoutTester(Numbers())
        >>> [emission.message_ids for emission in tester.next_batch()]
        [(1, 2, 3)]
        >>> tester.ack([3, 1])
        >>> tester.spout.last.to_pylist(), tester.collector.pending
        ([1, 3], [2])
    """

    def __init__(
        self,
        spout: Spout,
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
        #: The actions of the spout so far, including before restarts.
        self.collector: SpoutCollector
        output = bench.output(self._context)
        if bench.kind is ComponentKind.BATCH_SPOUT:
            self.collector = RecordingBatchSpoutCollector(output=output)
        else:
            self.collector = RecordingSpoutCollector(output=output)
        self._open(None)

    @property
    def spout(self) -> Any:
        """The instance; a new one after `restart`."""
        return self._instance

    def next_tuple(self, calls: int = 1) -> list[Emission]:
        """Calls `next_tuple` that many times; returns the emitted tuples.

        Raises:
            StormError: it is a `BatchSpout`.
        """
        spout, collector = self._instance, self.collector
        if isinstance(spout, BatchSpout) or isinstance(collector, RecordingBatchSpoutCollector):
            raise StormError(f"{type(spout).__name__} is a BatchSpout; call next_batch instead of next_tuple")
        before = len(collector.emitted)
        for _ in range(calls):
            spout.next_tuple()
        return collector.emitted[before:]

    def next_batch(self, calls: int = 1) -> list[BatchSpoutEmission]:
        """Calls `next_batch` of a `BatchSpout` that many times; returns the emitted tuples.

        Raises:
            StormError: it is not a `BatchSpout`.
        """
        spout, collector = self._instance, self.collector
        if isinstance(spout, BaseRichSpout) or isinstance(collector, RecordingSpoutCollector):
            raise StormError(f"{type(spout).__name__} is not a BatchSpout; call next_tuple instead of next_batch")
        before = len(collector.emitted)
        for _ in range(calls):
            spout.next_batch()
        return collector.emitted[before:]

    def ack(self, message_id: Any) -> None:
        """Tells the spout that a tree is complete.

        Args:
            message_id: the id; for a `BatchSpout`, an iterable of ids in any order, which it gets in one call.

        Raises:
            StormError: no message with that id is pending.
        """
        spout = self._instance
        if isinstance(spout, BatchSpout):
            ids = self._settle_batch("ack", message_id)
            self.collector.acked += ids.to_pylist()
            if len(ids):
                spout.ack_batch(ids)
        else:
            self._settle(message_id)
            self.collector.acked.append(message_id)
            spout.ack(message_id)

    def fail(self, message_id: Any) -> None:
        """Tells the spout that a tree failed; otherwise as `ack`."""
        spout = self._instance
        if isinstance(spout, BatchSpout):
            ids = self._settle_batch("fail", message_id)
            self.collector.failed += ids.to_pylist()
            if len(ids):
                spout.fail_batch(ids)
        else:
            self._settle(message_id)
            self.collector.failed.append(message_id)
            spout.fail(message_id)

    def deactivate(self) -> None:
        """Tells the spout that the topology was deactivated."""
        self._instance.deactivate()

    def activate(self) -> None:
        """Tells the spout that the topology is active again."""
        self._instance.activate()

    def restart(self) -> None:
        """Affects the spout like a crash.

        A fresh copy is opened and gets the attributes of the old one that can be pickled.

        Pending messages stay pending, and the fresh copy is told of their acks and fails.

        Raises:
            ComponentError: the spout or its state can't be pickled.
        """
        self._instance, state = self._reborn()
        self._context = self._bench.context()
        self._open(state)

    def close(self) -> None:
        """Calls `close`, once."""
        if not self._closed:
            self._closed = True
            self._instance.close()
            shutil.rmtree(self._bench.pid_dir, ignore_errors=True)

    def _open(self, state: bytes | None) -> None:
        self._instance.open(self._bench.conf, self._context, self.collector)  # type: ignore[arg-type]
        self._restore(state)
        self._instance.activate()

    def _settle(self, message_id: Any) -> None:
        if message_id not in self.collector.pending:
            raise self._not_pending(message_id)
        self.collector.pending.remove(message_id)

    def _settle_batch(self, method: str, given: Any) -> pa.Array:
        """Removes messages from the pending ones; returns their ids in emit order, as the runtime reports them."""
        collector = self.collector
        assert isinstance(collector, RecordingBatchSpoutCollector)
        asked = self._listed(method, given)
        remaining = Counter(map(_key, asked))
        settled, pending = [], []
        for message_id in collector.pending:
            key = _key(message_id)
            if remaining[key]:
                remaining[key] -= 1
                settled.append(message_id)
            else:
                pending.append(message_id)
        for message_id in asked:
            if remaining[_key(message_id)]:
                raise self._not_pending(message_id)
        collector.pending = pending
        return pa.array(settled, collector.id_type)

    def _not_pending(self, message_id: Any) -> StormError:
        return StormError(f"no message {message_id!r:.100} is pending; pending: {self.collector.pending!r:.200}")

    def _listed(self, method: str, ids: Any) -> list[Any]:
        name = type(self._instance).__name__
        if isinstance(ids, (str, bytes)) or not isinstance(ids, Iterable):
            raise StormError(
                f"{name} is a BatchSpout, which hears of many messages at once; "
                f"call {method} with an iterable of message ids, not {kind_of(ids)}"
            )
        try:
            listed: list[Any] = message_ids.as_array(ids).to_pylist()
        except (pa.ArrowException, TypeError, ValueError) as error:
            raise StormError(f"{name}: {method} with message ids that can't be an Arrow array: {error}") from error
        return listed


@overload
def run_spout(
    spout: BaseRichSpout, calls: int | None = None, conf: Mapping[str, Any] | None = None, *, ack: bool = True
) -> RecordingSpoutCollector: ...


@overload
def run_spout(
    spout: BatchSpout, calls: int | None = None, conf: Mapping[str, Any] | None = None, *, ack: bool = True
) -> RecordingBatchSpoutCollector: ...


def run_spout(
    spout: Spout, calls: int | None = None, conf: Mapping[str, Any] | None = None, *, ack: bool = True
) -> SpoutCollector:
    """Opens a spout, calls `next_tuple`, or `next_batch` of a `BatchSpout`, and closes it.

    Args:
        spout: the spout.
        calls: how often to call; None to call until the spout is exhausted and nothing is pending.
        conf: configuration over the defaults.
        ack: whether each message is acked at once; for a `BatchSpout`, all messages of a call together.

    Returns: The emitted tuples.

    Raises:
        TupleError: the spout emitted something that does not fit its streams.
        StormError: without `calls`, the spout was not exhausted after a million of them.

    Example:
        >>> from storm_on_spark.testing import ListSpout
        >>> run_spout(ListSpout(["to be", "or not"])).values()
        [('to be',), ('or not',)]
    """
    with SpoutTester(spout, conf=conf) as tester:
        for _ in range(MOST_CALLS if calls is None else calls):
            if calls is None and spout.exhausted():
                break
            if isinstance(spout, BatchSpout):
                batches = tester.next_batch()
                if ack:
                    tester.ack([row for batch in batches for row in batch.message_ids if row is not None])
                continue
            for emission in tester.next_tuple():
                if ack and emission.message_id is not None:
                    tester.ack(emission.message_id)
        else:
            if calls is None:
                raise StormError(
                    f"{type(spout).__name__} was not exhausted after {MOST_CALLS} calls; say how many calls to make"
                )
    return tester.collector


def _key(message_id: Any) -> Any:
    """Returns the look-up key of a message id, which may be a list or a dict."""
    try:
        hash(message_id)
    except TypeError:
        return repr(message_id)
    return message_id
