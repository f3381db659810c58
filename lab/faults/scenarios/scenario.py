"""The definition of a scenario."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from lab.faults.run import Run
from lab.faults.stores import KINDS
from lab.load.topology import Load
from lab.suite.scenario import Scenario as AnyScenario


def _nothing_missing() -> str | None:
    return None


@dataclass(frozen=True)
class Scenario(AnyScenario[Run]):
    """One kind of fault. Once it is played the run only has to complete.

    Args:
        master: Spark's.
        conf: configuration of the topology.
        least_secs: of emitting messages, at the same rate; for faults that last while messages are acked.
        limit_secs: within which progress must resume; None where no fault is injected.
        host_dies: whether spout hosts end with it, so that `ack` may be called again for what was acked last.
        tables: whether bolts that write into tables and files are there, too.
        windows: whether a windowed bolt is there, too, which holds tuples.
        micro_batches_only: whether it says nothing about real time.
        nothing_but_poison_fails: whether not one more message may fail than without a fault.
        on: the kinds of storage that it is for.
        missing: returns what it lacks on this machine, or None.
    """

    master: str = "local[2]"
    conf: Mapping[str, Any] = field(default_factory=dict)
    least_secs: float = 0.0
    limit_secs: float | None = None
    host_dies: bool = False
    tables: bool = False
    windows: bool = False
    micro_batches_only: bool = False
    nothing_but_poison_fails: bool = False
    on: Sequence[str] = KINDS[:1]
    missing: Callable[[], str | None] = _nothing_missing

    def load(self, wanted: Load) -> Load:
        """Returns the load of a run: the one that is wanted, or a longer one.

        Example:
            >>> Scenario("pause", "a pause", lambda run, times: None, least_secs=90.0).load(Load(30_000, 30.0))
            Load(messages=90000, seconds=90.0)
        """
        if wanted.seconds >= self.least_secs:
            return wanted
        return Load(2 * round(wanted.rate * self.least_secs / 2), self.least_secs)
