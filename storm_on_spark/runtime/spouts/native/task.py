"""The task of a native spout: keeps the rows that were not acked in the micro-batch that read them.

It is an ordinary spout task: kept rows are attributes of the instance, which are saved with the spout log,
and replayed rows go through the log.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from storm_on_spark.api.task.context import TopologyContext
from storm_on_spark.runtime.codec import chunk
from storm_on_spark.runtime.codec.chunk import Kind
from storm_on_spark.runtime.run.spec import RunSpec
from storm_on_spark.runtime.run.wiring import Wiring
from storm_on_spark.runtime.spouts.spout_task import SpoutTask
from storm_on_spark.runtime.tracking import acker
from storm_on_spark.runtime.tracking.fold import U8Array
from storm_on_spark.runtime.tracking.ids import U64Array, is_native

_REASONS = {acker.FAILED: "a bolt failed its tuple", acker.TIMED_OUT: "its tuple timed out"}


class NativeSpoutTask(SpoutTask):
    """A `NativeSpout`'s task, opened and restored; arguments and errors are those of `SpoutTask`."""

    def __init__(self, spec: RunSpec, wiring: Wiring, context: TopologyContext, *args: Any, **more: Any) -> None:
        self._reader = spec.readers.get(context.this_component_id)
        super().__init__(spec, wiring, context, *args, **more)

    def _open(self, conf: Mapping[str, Any], context: TopologyContext, state: bytes | None) -> None:
        if self._reader is not None:
            self.spout.read_by(self._reader)
        super()._open(conf, context, state)

    def reached(self) -> tuple[int, str | None] | None:
        """Returns how far the task has read, if it can; see `ReadsItself.reached`."""
        return None if self._reader is None else self._guard("reached", self.spout.reached)

    def settle(self, batch: int, roots: U64Array, codes: U8Array, left: Sequence[bytes] = ()) -> None:
        """Tells the spout which rows were not acked, and the outcomes of the rows that it emitted again.

        The outcomes of a micro-batch are sent again after a crash. Those already in the snapshot are ignored,
        because their rows may have been emitted again since.
        """
        news, native = batch > self.settled_batch, is_native(roots)
        super().settle(batch, roots[~native], codes[~native])
        if news:
            self._settle_rows(roots[native], codes[native], left)

    def _settle_rows(self, roots: U64Array, codes: U8Array, left: Sequence[bytes]) -> None:
        self.stats.acked += int((codes == acker.ACKED).sum())
        self.stats.failed += int((codes != acker.ACKED).sum())
        self.stats.timed_out += int((codes == acker.TIMED_OUT).sum())
        for body in left:
            header = chunk.read_header(body)
            if header.kind == Kind.READ:
                self._guard("passed", self.spout.passed, chunk.read_position(body))
                continue
            kept, payload = chunk.read_native_roots(header, body)
            self._guard("keep", self.spout.keep, kept.tolist(), chunk.read_batch(payload))
        if not (waiting := self.spout.kept()):
            return
        ours = np.isin(roots, np.fromiter(waiting, np.uint64, len(waiting)))
        for root, code in zip(roots[ours].tolist(), codes[ours].tolist(), strict=True):
            if code == acker.ACKED:
                self._guard("row_acked", self.spout.row_acked, root)
            else:
                self._guard("row_failed", self.spout.row_failed, root, _REASONS[code])

    def pending_count(self) -> int:
        """Returns the number of pending messages: rows in flight, and rows that wait to be emitted again."""
        return self.again_count() + len(self.spout.kept())

    def again_count(self) -> int:
        """Returns how many of them wait for another attempt or are in flight in one."""
        return super().pending_count() + self.waiting_count()

    def waiting_count(self) -> int:
        """Returns how many of them wait for another attempt and are not in flight."""
        waiting: int = self.spout.waiting()
        return waiting
