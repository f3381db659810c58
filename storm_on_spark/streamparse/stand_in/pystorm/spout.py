"""pystorm's spouts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any, ClassVar

from storm_on_spark.streamparse.stand_in.pystorm.component import Component


class Spout(Component):
    """A spout: override `next_tuple`."""

    def next_tuple(self) -> None:
        """Emits the next tuple, if there is one. Must not block."""
        raise NotImplementedError

    def ack(self, tup_id: Any) -> None:
        """The tree of the tuple that was emitted with `tup_id` is complete."""

    def fail(self, tup_id: Any) -> None:
        """The tree of the tuple that was emitted with `tup_id` failed or timed out."""

    def activate(self) -> None:
        """The topology is activated."""

    def deactivate(self) -> None:
        """The topology is deactivated."""

    def emit(  # type: ignore[override] # pystorm's spouts have no anchors
        self,
        tup: Sequence[Any],
        tup_id: Any = None,
        stream: str | None = None,
        direct_task: int | None = None,
        need_task_ids: bool = False,
    ) -> list[int] | None:
        """Emits a tuple, tracked if it has an id; see `Component.emit`."""
        return super().emit(tup, tup_id=tup_id, stream=stream, direct_task=direct_task, need_task_ids=need_task_ids)

    def _run(self) -> None:
        message = self.read_command()
        command = message["command"]
        if command == "next":
            self.next_tuple()
        elif command in ("ack", "fail"):
            getattr(self, command)(message["id"])
        elif command in ("activate", "deactivate"):
            getattr(self, command)()
        else:
            self.logger.error("Received invalid command from Storm: %r", message)
        self.send_message({"command": "sync"})


class ReliableSpout(Spout):
    """A spout that emits a failed tuple again, up to `max_fails` times; then it counts as acked, as in pystorm."""

    max_fails: ClassVar[int] = 3

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.failed_tuples: Counter[Any] = Counter()
        self.unacked_tuples: dict[Any, tuple[Any, ...]] = {}

    def emit(  # type: ignore[override]
        self,
        tup: Sequence[Any],
        tup_id: Any = None,
        stream: str | None = None,
        direct_task: int | None = None,
        need_task_ids: bool = False,
    ) -> list[int] | None:
        """Emits a tuple and keeps it until it is acked.

        Raises:
            ValueError: it has no id.
        """
        if tup_id is None:
            raise ValueError("a ReliableSpout emits with an id (tup_id) only: without one, a tuple can't be tracked")
        self.unacked_tuples[tup_id] = (tup, stream, direct_task, need_task_ids)
        return super().emit(tup, tup_id=tup_id, stream=stream, direct_task=direct_task, need_task_ids=need_task_ids)

    def ack(self, tup_id: Any) -> None:
        """Forgets a tuple."""
        self.failed_tuples.pop(tup_id, None)
        if self.unacked_tuples.pop(tup_id, None) is None:
            self.logger.error("Received ack for unknown tuple ID: %r", tup_id)

    def fail(self, tup_id: Any) -> None:
        """Emits a tuple again, or gives it up."""
        known = self.unacked_tuples.get(tup_id)
        if known is None:
            self.logger.error("Received fail for unknown tuple ID: %r", tup_id)
        elif self.failed_tuples[tup_id] >= self.max_fails:
            self.logger.info("Acking tuple ID %r after it exceeded retry limit (%r)", tup_id, self.max_fails)
            self.ack(tup_id)
        else:
            tup, stream, direct_task, need_task_ids = known
            self.emit(tup, tup_id=tup_id, stream=stream, direct_task=direct_task, need_task_ids=need_task_ids)
            self.failed_tuples[tup_id] += 1
