"""What a driver does to a checkpoint only as long as it owns it."""

from __future__ import annotations

import contextlib
from collections.abc import Callable

from storm_on_spark.runtime.batches.offsets import Offset
from storm_on_spark.runtime.reports.report import Failure
from storm_on_spark.spark.checkpoint.directory import Checkpoint
from storm_on_spark.spark.checkpoint.owner import Fence


def fenced_poll(
    poll: Callable[[Offset], Offset], fence: Fence, on_failure: Callable[[Failure], None]
) -> Callable[[Offset], Offset]:
    """Returns `poll`, which touches the checkpoint, restricted to the owner of the fence."""

    def owned() -> bool:
        reason = fence.lost()
        if reason is not None:
            on_failure(Failure("", None, reason))
        return reason is None

    def fenced(start: Offset) -> Offset:
        if not owned():
            return start
        end = poll(start)
        return end if end == start or owned() else start

    return fenced


def tidy(store: Checkpoint, fence: Fence | None) -> None:
    """Removes what killed processes left half-written, unless another driver owns the checkpoint."""
    # Don't remove what another owner is just writing.
    if fence is None or fence.lost() is None:
        # This must not prevent a start or an end; the disk may be broken.
        with contextlib.suppress(OSError):
            store.remove_half_written()
