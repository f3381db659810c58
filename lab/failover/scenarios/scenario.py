"""What a scenario is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from lab.failover.cluster import Cluster


@dataclass(frozen=True)
class Scenario:
    """One kind of fault.

    Args:
        name: for the command line.
        title: for the table.
        play: starts the daemons, injects the fault (repeatedly where that makes sense) and says what it expects.
        spark: whether real drivers run.
        faulty: whether it is about a fault, rather than a figure.
    """

    name: str
    title: str
    play: Callable[[Cluster, int], None]
    spark: bool = False
    faulty: bool = True
