"""A topology before and after its code was mended."""

from __future__ import annotations

from topologies.parts import Numbers, Tally, Witness

from storm_on_spark import BaseBasicBolt, Topology, TopologyBuilder

TOO_MUCH = 5


class Configured(Numbers):
    """Takes from its configuration how far it counts. What it kept in an attribute would be the old value."""

    def __init__(self) -> None:
        super().__init__(0)

    def next_tuple(self):
        self.count = self.conf["test.count"]
        super().next_tuple()

    def exhausted(self):
        return self.next >= self.conf["test.count"] and not self.replays


class Careless(BaseBasicBolt):
    """Raises at a number."""

    def prepare(self, conf, context):
        self.seen: list[int] = []
        self.old = "old"
        self.count = conf["test.count"]

    def execute(self, tup, collector):
        self.seen.append(tup["n"])
        if tup["n"] == TOO_MUCH:
            raise ValueError(f"{tup['n']} is too much")


class Mended(BaseBasicBolt):
    """The same without the mistake, with an attribute more and without one that nobody used."""

    def prepare(self, conf, context):
        self.seen: list[int] = []
        self.new = "new"
        self.count = conf["test.count"]

    def execute(self, tup, collector):
        self.seen.append(tup["n"])


def careless() -> Topology:
    builder = TopologyBuilder()
    builder.set_spout("numbers", Configured()).set_max_spout_pending(1)
    builder.set_bolt("tally", Careless(), 2).shuffle_grouping("numbers")
    return builder.create_topology()


def mended() -> Topology:
    """Other code, other executors, another limit, and a stateless bolt more."""
    builder = TopologyBuilder()
    builder.set_spout("numbers", Configured()).set_max_spout_pending(20)
    builder.set_bolt("tally", Mended(), 1).set_num_tasks(2).fields_grouping("numbers", "n")
    builder.set_bolt("witness", Witness(), 3).shuffle_grouping("numbers")
    return builder.create_topology()


class Forgetful(Tally):
    """Has become stateless."""

    stateless = True


def small(tasks: int = 2, *, bolt: str = "tally", stateless: bool = False, fields: str = "n") -> Topology:
    """A spout and a bolt, in several editions."""
    builder = TopologyBuilder()
    builder.set_spout("numbers", Numbers(50, burst=10) if fields == "n" else Renamed(50, burst=10))
    builder.set_bolt(bolt, Forgetful() if stateless else Tally(), tasks).shuffle_grouping("numbers")
    return builder.create_topology()


class Renamed(Numbers):
    """Its field has another name."""

    def declare_output_fields(self, declarer):
        declarer.declare("number")
