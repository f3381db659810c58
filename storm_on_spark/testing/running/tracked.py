"""Tracked topologies: a test waits until spouts have emitted a number of tuples, and all of these are processed.

Storm's counterparts are `TrackedTopology` and `Testing.trackedWait` (`org.apache.storm.testing`).
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from storm_on_spark.spark.running.topology import TopologyQuery

_POLL_SECONDS = 0.02


class TrackedTopology:
    """A running topology, and how many tuples of its spouts a test has waited for.

    Unlike Storm's, it is made once the topology runs. A cluster may run several, each with its own counters.

    Args:
        query: the result of `LocalCluster.submit_topology` or `CompiledTopology.start`, or `RunningTopology.query`.

    Example:
        >>> with LocalCluster() as cluster:                                     # doctest: +SKIP
        ...     tracked = TrackedTopology(cluster.submit_topology("words", {}, topology))
        ...     tracked_wait(tracked, 2)
    """

    def __init__(self, query: TopologyQuery) -> None:
        self.query = query
        self.waited_for = 0
        """The number of the spouts' tuples that `tracked_wait` has seen processed."""


def tracked_wait(tracked: TrackedTopology, amount: int = 1, timeout: float = 240) -> None:
    """Waits until the spouts have emitted exactly `amount` more tuples, and the topology has processed all tuples.

    Then every tuple is executed and its effect on state is committed. Tuples with a message id are acked or failed.
    Tuples without a message id, and those that a spout emits again, count like all others.

    Args:
        tracked: the topology.
        amount: how many tuples more than at the end of the last wait, of all spouts together; 0 or more.
        timeout: the longest wait in seconds.

    Raises:
        ValueError: `amount` is negative.
        AssertionError: the spouts emitted more than that.
        TimeoutError: it did not happen in time, or not before the topology ended.
        TopologyFailedError: the topology failed before.
    """
    if amount < 0:
        raise ValueError(f"amount is the number of tuples to wait for, 0 or more, not {amount}")
    query, target = tracked.query, tracked.waited_for + amount
    deadline = time.monotonic() + timeout
    while True:
        active = query.isActive
        settled = query.settled()
        if settled == target:
            tracked.waited_for = target
            return
        if query.failure is not None:
            raise query.failure
        info = query.status_info()
        more = info.emitted - tracked.waited_for
        counts = f"{more} of {amount} emitted since the last wait, pending {info.pending}, {info.status}"
        if info.emitted > target:
            raise AssertionError(f"the spouts emitted more tuples than the test waits for: {counts}")
        if not active or time.monotonic() > deadline:
            why = f"within {timeout} s" if active else "before the topology ended"
            raise TimeoutError(f"the tuples were not processed {why}: {counts}")
        time.sleep(_POLL_SECONDS)
