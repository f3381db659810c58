"""A topology with key-value state that is larger than the memory it is given, whose workers are killed."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from topologies.notes import NOTES
from topologies.parts import Numbers

from storm_on_spark import BaseBasicBolt, BaseStatefulBolt, Fields, Topology, TopologyBuilder
from storm_on_spark.testing import crash

COUNT = 1500
EACH = 40
KEYS = 20_011
CRASHES = (400, 900, 1300)
POISON = (350, 901)
CONF = {"topology.state.memory.mb": 1, "topology.batch.max.tuples": 200}


def keys_of(n: int) -> list[str]:
    return [f"account {(n * EACH + index) * 7 % KEYS}" for index in range(EACH)]


class Keyed(BaseBasicBolt):
    """Names the accounts that a number is for."""

    stateless = True

    def execute(self, tup, collector):
        for key in keys_of(tup["n"]):
            collector.emit([key, tup["n"]])

    def declare_output_fields(self, declarer):
        declarer.declare(Fields("account", "n"))


class Ledger(BaseStatefulBolt):
    """Adds numbers up by account, and closes some; its worker dies at some numbers."""

    def prepare(self, conf, context, collector):
        self.conf, self.collector = conf, collector

    def init_state(self, state):
        self.accounts = state

    def execute(self, tup):
        account, n = tup["account"], tup["n"]
        self.accounts.put(account, self.accounts.get(account, 0) + n)
        if n % 50 == 49:
            self.accounts.delete(account)
        if n in CRASHES:
            crash(Path(self.conf[NOTES]) / f"crash-{n}")
        if n in POISON:
            raise ValueError(f"{n} is poison")
        self.collector.ack(tup)

    def declare_output_fields(self, declarer):
        pass


def expected() -> dict[str, int]:
    """The accounts at the end."""
    accounts: Counter[str] = Counter()
    for n in range(COUNT):
        if n in POISON:
            continue
        for key in keys_of(n):
            accounts[key] += n
            if n % 50 == 49:
                del accounts[key]
    return dict(accounts)


def ledger() -> Topology:
    builder = TopologyBuilder()
    builder.set_spout("numbers", Numbers(COUNT, replay=False))
    builder.set_bolt("keyed", Keyed()).shuffle_grouping("numbers")
    builder.set_bolt("ledger", Ledger(), 2).fields_grouping("keyed", Fields("account"))
    return builder.create_topology()
