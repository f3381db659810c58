"""Storm's `IStatefulBolt` through Spark."""

from __future__ import annotations

import pytest
from topologies import accounts, ledger
from topologies.notes import read_notes
from topologies.parts import Received

from storm_on_spark.spark.state import read_key_value_state, state_values
from storm_on_spark.testing import crashes


def test_key_value_state_is_exact_over_killed_workers_and_poison_and_its_hooks_surround_every_commit(
    complete, tmp_path
):
    # The hooks are those of micro-batches, and what a killed worker has sent on is counted.
    info = complete(accounts.accounts(), {"topology.partitions": 2})

    assert [crashes(tmp_path / f"crash-{n}") for n in accounts.CRASHES] == [1, 1], "a worker did not die"
    assert (info.acked, info.failed) == (accounts.COUNT - len(accounts.POISON), len(accounts.POISON))
    final, emitted = accounts.expected()
    received = [Received(*record).values for record in read_notes(tmp_path, "received")]
    assert sorted(received) == sorted(emitted)

    hooks = read_notes(tmp_path, "hooks")
    found = accounts.last_commits(hooks)
    assert len(found) == 2, "both tasks have accounts"
    assert {key: value for part in found.values() for key, value in part.items()} == final
    assert sum(map(len, found.values())) == len(final)
    for task in found:
        mine = [(what, txid) for number, what, txid, _ in hooks if number == task]
        assert [what for what, _ in mine] == ["prepare", "commit"] * (len(mine) // 2)
        assert mine[::2] == [("prepare", txid) for _, txid in mine[1::2]]
        txids = [txid for _, txid in mine[1::2]]
        assert txids == sorted(txids)

    # Whoever took over from a worker that died found what was committed.
    begun = read_notes(tmp_path, "init")
    assert any(state for _, state in begun)
    assert all(state in ({}, *(part for *_, part in hooks)) for _, state in begun)


@pytest.mark.parametrize("partitions", [2, pytest.param(1, marks=pytest.mark.soak)])
def test_key_value_state_that_is_larger_than_memory_is_exact_over_killed_workers_and_poison(
    complete, tmp_path, spark_session, partitions
):
    info = complete(ledger.ledger(), {**ledger.CONF, "topology.partitions": partitions}, timeout=180)

    assert [crashes(tmp_path / f"crash-{n}") for n in ledger.CRASHES] == [1, 1, 1], "a worker did not die"
    assert (info.acked, info.failed) == (ledger.COUNT - len(ledger.POISON), len(ledger.POISON))
    checkpoint = tmp_path / "checkpoint"
    pages = state_values(spark_session, checkpoint, "pages")
    assert len({task for task, *_ in pages}) == 2, "both tasks have more than fits in memory"
    found = read_key_value_state(spark_session, checkpoint, "ledger")
    assert len(found) == 2
    accounts_of_both = [item for part in found.values() for item in part.items()]
    assert len(accounts_of_both) == len(ledger.expected())
    assert dict(accounts_of_both) == ledger.expected()
