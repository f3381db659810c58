"""Topologies that run until they are told to stop."""

from __future__ import annotations

from topologies.notes import note
from topologies.parts import Numbers, Tally

from storm_on_spark import Topology, TopologyBuilder


class Endless(Numbers):
    """Never exhausted; notes when it is activated, deactivated and closed."""

    def __init__(self) -> None:
        super().__init__(10**12)

    def activate(self):
        note(self.conf, "life", "activate", self.next)

    def deactivate(self):
        note(self.conf, "life", "deactivate", self.next)

    def close(self):
        note(self.conf, "life", "close", self.next, self.acked)


def lasting() -> Topology:
    builder = TopologyBuilder()
    builder.set_spout("numbers", Endless()).set_max_spout_pending(100)
    builder.set_bolt("tally", Tally(), 2).shuffle_grouping("numbers")
    return builder.create_topology()
