"""Puppets in two layers, so that trees have depth, beside a spout whose tuples have no message ids."""

from __future__ import annotations

from topologies.parts import Numbers
from topologies.puppets import Puppet, Told

from storm_on_spark import BaseRichBolt, Fields, Topology, TopologyBuilder

UNTRACKED = 40


class Upper(Puppet):
    """Also passes orders on: `below X,Y ORDER` emits ORDER to `Lower`, anchored to X and Y, `below - ORDER` to none."""

    def do_below(self, tup, names, *order):
        anchors = None if names == "-" else [self.held[name] for name in names.split(",")]
        self.collector.emit([" ".join(order)], anchors)

    def declare_output_fields(self, declarer):
        declarer.declare(Fields("order"))


class Keeper(BaseRichBolt):
    """Neither acks nor fails what it gets."""

    def prepare(self, conf, context, collector):
        self.kept = []

    def execute(self, tup):
        self.kept.append(tup["n"])


def two_layers() -> Topology:
    builder = TopologyBuilder()
    builder.set_spout("told", Told())
    builder.set_spout("plain", Numbers(UNTRACKED, ids=False))
    builder.set_bolt("upper", Upper()).global_grouping("told")
    builder.set_bolt("lower", Puppet()).global_grouping("upper")
    builder.set_bolt("keeper", Keeper()).shuffle_grouping("plain")
    return builder.create_topology()
