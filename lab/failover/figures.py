"""The figures."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

SESSION_SECS: Final = 3.0
"""`storm.zookeeper.session.timeout` of everything that the harness starts. The default is 20 s."""


@dataclass(frozen=True)
class Figure:
    """A time that is measured repeatedly.

    Args:
        title: for the table.
        limit: seconds that it may take; None if there is no limit.
    """

    title: str
    limit: float | None = None


FIGURES: Final = {
    "leader": Figure("new leader after SIGKILL of the leader", SESSION_SECS + 1),
    "spark-leader": Figure("the same, while a topology runs on Spark beside it"),
    "replica": Figure("submission until a second Nimbus has the code", 3.0),
    "read": Figure("a read of any live Nimbus, during failovers"),
    "host": Figure("topology runs again after its host died, drivers without Spark", SESSION_SECS + 15),
    "spark-host": Figure(
        "topology on Spark acks again after its host died, a spare driver stands by", SESSION_SECS + 15
    ),
    "spark-host-cold": Figure("the same without a spare driver", SESSION_SECS + 15),
    "spark-driver": Figure("topology on Spark acks again after its driver died, without a spare driver"),
    "scale": Figure("200 topologies assigned to 50 supervisors by a new leader", 10.0),
}


def median(times: Sequence[float]) -> float:
    """Returns the median."""
    return statistics.median(times)
