"""pystorm's bolts."""

from __future__ import annotations

import re
import threading
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from storm_on_spark.streamparse.named import named_tuple
from storm_on_spark.streamparse.stand_in.pystorm.component import Component, Tuple

_NO_IDENTIFIER = re.compile(r"\W|^(?=\d)")


class Bolt(Component):
    """A bolt: override `process`."""

    auto_anchor: bool = True
    """Emits are anchored to the tuple that is being processed."""
    auto_ack: bool = True
    """A tuple is acked when `process` returns."""
    auto_fail: bool = True
    """A tuple fails when `process` raises."""

    _current_tups: list[Any] = []  # noqa: RUF012 # replaced, never changed: pystorm's subclasses and tests read it

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._source_tuple_types: dict[str, dict[str, Any]] = defaultdict(dict)

    def _setup_component(self, storm_conf: Mapping[str, Any], context: Mapping[str, Any]) -> None:
        super()._setup_component(storm_conf, context)
        for source, streams in context.get("source->stream->fields", {}).items():
            for stream, fields in streams.items():
                self._source_tuple_types[source][stream] = named_tuple(type_name(source, stream), tuple(fields))

    @staticmethod
    def is_tick(tup: Tuple) -> bool:
        """Whether a tuple is a tick."""
        return tup.component == "__system" and tup.stream == "__tick"

    def read_tuple(self) -> Tuple:
        """Returns the next tuple."""
        message = self.read_command()
        kind = self._source_tuple_types[message["comp"]].get(message["stream"])
        values = tuple(message["tuple"])
        return Tuple(
            message["id"],
            message["comp"],
            message["stream"],
            message["task"],
            values if kind is None else kind(*values),
        )

    def process(self, tup: Any) -> None:
        """Processes one tuple."""
        raise NotImplementedError

    def process_tick(self, tup: Any) -> None:
        """Processes a tick; does nothing unless it is overridden."""

    def emit(  # type: ignore[override] # pystorm's bolts have no `tup_id`
        self,
        tup: Sequence[Any],
        stream: str | None = None,
        anchors: Sequence[Any] | None = None,
        direct_task: int | None = None,
        need_task_ids: bool = False,
    ) -> list[int] | None:
        """Emits a tuple, anchored to `anchors`: tuples or their ids; see `Component.emit`."""
        if anchors is None:
            anchors = self._current_tups if self.auto_anchor else ()
        return super().emit(
            tup,
            stream=stream,
            anchors=[_id(anchor) for anchor in anchors],
            direct_task=direct_task,
            need_task_ids=need_task_ids,
        )

    def ack(self, tup: Any) -> None:
        """Acks a tuple, given by itself or by its id."""
        self.send_message({"command": "ack", "id": _id(tup)})

    def fail(self, tup: Any) -> None:
        """Fails a tuple, given by itself or by its id."""
        self.send_message({"command": "fail", "id": _id(tup)})

    def _run(self) -> None:
        tup = self.read_tuple()
        self._current_tups = [tup]
        self._take(tup)
        # Not after an exception: then these are the tuples to fail.
        self._current_tups = []

    def _take(self, tup: Tuple) -> None:
        if self.is_heartbeat(tup):
            self.send_message({"command": "sync"})
            return
        (self.process_tick if self.is_tick(tup) else self.process)(tup)
        if self.auto_ack:
            self.ack(tup)

    def _handle_run_exception(self, exc: BaseException) -> None:
        if len(self._current_tups) == 1:
            tup = self._current_tups[0]
            self.raise_exception(exc, tup)
            if self.auto_fail:
                self.fail(tup)


class BatchingBolt(Bolt):
    """A bolt that keeps tuples until ticks say that it is time, and processes them in groups.

    As in pystorm, groups are processed with the tick after `ticks_between_batches` others.
    """

    ticks_between_batches: int = 1

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._batches: dict[Any, list[Any]] = defaultdict(list)
        self._tick_counter = 0
        self._current_key: Any = None

    def group_key(self, tup: Any) -> Any:
        """Returns the group that a tuple belongs to; all belong to one unless it is overridden."""
        return None

    def process_batch(self, key: Any, tups: list[Any]) -> None:
        """Processes the tuples of one group."""
        raise NotImplementedError

    def emit(self, tup: Sequence[Any], **kwargs: Any) -> None:  # type: ignore[override] # as pystorm's
        """Emits a tuple; task ids are not to be had."""
        super().emit(tup, **{**kwargs, "need_task_ids": False})

    def process(self, tup: Any) -> None:
        """Puts a tuple into its group."""
        self._batches[self.group_key(tup)].append(tup)

    def process_tick(self, tup: Any) -> None:
        """Acks the tick, and processes the groups if it is time."""
        self._tick_counter += 1
        self.ack(tup)
        if self._batches and self._tick_counter > self.ticks_between_batches:
            self.process_batches()
            self._tick_counter = 0

    def process_batches(self) -> None:
        """Processes all groups, and acks the tuples of each when it is done."""
        for key, tups in self._batches.items():
            if not tups:
                continue  # It was done, or failed, before another group raised.
            self._current_key, self._current_tups = key, tups
            self.process_batch(key, tups)
            if self.auto_ack:
                for tup in tups:
                    self.ack(tup)
            # A later group that raises does not fail this one.
            self._current_key, self._batches[key] = None, []
        self._batches = defaultdict(list)

    def _take(self, tup: Tuple) -> None:
        if self.is_heartbeat(tup):
            self.send_message({"command": "sync"})
        elif self.is_tick(tup):
            self.process_tick(tup)
        else:
            self.process(tup)

    def _handle_run_exception(self, exc: BaseException) -> None:
        self.raise_exception(exc, self._current_tups)
        if not self.auto_fail:
            return
        groups = [tups for key, tups in self._batches.items() if self.exit_on_exception or key == self._current_key]
        failed = set()
        for tup in [*(tup for tups in groups for tup in tups), *self._current_tups]:
            if tup.id not in failed:
                failed.add(tup.id)
                self.fail(tup)
        self._batches[self._current_key] = []
        self._current_key = None


class TicklessBatchingBolt(BatchingBolt):
    """A batching bolt that goes by time.

    In a topology here a tick of the adapter is the clock; there is no thread.
    """

    secs_between_batches: float = 2

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.exc_info: Any = None
        self._batch_lock = threading.RLock()

    def process_tick(self, tup: Any) -> None:
        """Acks the tick, and does nothing else."""
        self.ack(tup)


def type_name(source: str, stream: str) -> str:
    """Returns the name of the named tuple of a stream."""
    return f"{_NO_IDENTIFIER.sub('_', source.title())}{_NO_IDENTIFIER.sub('_', stream.title())}Tuple"


def _id(tup: Any) -> Any:
    return tup.id if isinstance(tup, Tuple) else tup
