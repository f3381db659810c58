"""The definition of a scenario."""

from __future__ import annotations

from dataclasses import dataclass

from lab.failover.cluster import Cluster
from lab.suite.scenario import Scenario as AnyScenario


@dataclass(frozen=True)
class Scenario(AnyScenario[Cluster]):
    """One kind of fault.

    Args:
        spark: whether real drivers run.
        faulty: whether it is about a fault, rather than a figure.
    """

    spark: bool = False
    faulty: bool = True
