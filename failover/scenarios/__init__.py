"""The faults, one module for each family, and the table of them all."""

from __future__ import annotations

from failover.scenarios import leaders
from failover.scenarios.scenario import Scenario

SCENARIOS = (
    Scenario("gate", "SIGKILL of the only Nimbus that has all code", leaders.gate),
    Scenario("leader", "SIGKILL of the leader", leaders.killed),
    Scenario("zombie", "SIGSTOP of the leader beyond its session, then SIGCONT", leaders.stopped),
    Scenario("partition", "the leader cut off from ZooKeeper", leaders.partition),
    Scenario("expiry", "session expiry of the leader", leaders.expired),
)

__all__ = ["SCENARIOS", "Scenario"]
