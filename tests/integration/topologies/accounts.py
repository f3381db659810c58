"""A topology with key-value state, whose workers are killed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from topologies.notes import NOTES, note
from topologies.parts import Numbers, Witness

from storm_on_spark import BaseBasicBolt, Fields, IStatefulBolt, Topology, TopologyBuilder
from storm_on_spark.testing import crash

COUNT = 300
KEYS = 7
CRASHES = (101, 202)
POISON = (50, 150, 202)


class Keyed(BaseBasicBolt):
    """Names the account that a number is for."""

    stateless = True

    def execute(self, tup, collector):
        collector.emit([tup["n"] % KEYS, tup["n"]])

    def declare_output_fields(self, declarer):
        declarer.declare(Fields("account", "n"))


class Accounts(IStatefulBolt):
    """Adds numbers up by account, closes accounts, goes over all of them; its worker dies at some numbers."""

    def prepare(self, conf, context, collector):
        self.conf, self.collector, self.task = conf, collector, context.this_task_id

    def init_state(self, state):
        self.accounts = state
        note(self.conf, "init", self.task, dict(state.items()))

    def execute(self, tup):
        account, n = tup["account"], tup["n"]
        balance = self.accounts.get(account, 0) + n
        self.accounts.put(account, balance)
        if n % 10 == 9:
            assert self.accounts.delete(account) == balance
            assert account not in self.accounts
        if n in CRASHES:
            crash(Path(self.conf[NOTES]) / f"crash-{n}")
        if n in POISON:
            raise ValueError(f"{n} is poison")
        self.collector.emit([account, balance], tup)
        self.collector.ack(tup)

    def pre_prepare(self, txid):
        note(self.conf, "hooks", self.task, "prepare", txid, None)

    def pre_commit(self, txid):
        note(self.conf, "hooks", self.task, "commit", txid, dict(self.accounts.items()))

    def declare_output_fields(self, declarer):
        declarer.declare(Fields("account", "balance"))


def expected() -> tuple[dict[int, int], list[tuple[int, int]]]:
    """The accounts at the end, and all that is emitted."""
    accounts: dict[int, int] = {}
    emitted = []
    for n in range(COUNT):
        if n in POISON:
            continue
        account = n % KEYS
        accounts[account] = accounts.get(account, 0) + n
        emitted.append((account, accounts[account]))
        if n % 10 == 9:
            del accounts[account]
    return accounts, emitted


def accounts() -> Topology:
    builder = TopologyBuilder()
    builder.set_spout("numbers", Numbers(COUNT, burst=10, replay=False)).set_max_spout_pending(60)
    builder.set_bolt("keyed", Keyed()).shuffle_grouping("numbers")
    builder.set_bolt("accounts", Accounts(), 2).fields_grouping("keyed", "account")
    builder.set_bolt("end", Witness()).global_grouping("accounts")
    return builder.create_topology()


def last_commits(hooks: list[tuple[Any, ...]]) -> dict[int, dict[int, int]]:
    """The accounts of each task, as its last `pre_commit` found them."""
    return {task: found for task, what, _, found in hooks if what == "commit"}
