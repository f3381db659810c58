"""What docs/reliability.md says and no other test shows: figures, defaults, limits."""

from __future__ import annotations

from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from stormtest import Source, anchored, ids, make_worker, solo

from storm_on_spark.api import BaseRichBolt, BaseStatefulBolt, TopologyBuilder
from storm_on_spark.api.config import effective_conf
from storm_on_spark.api.errors import ComponentError
from storm_on_spark.api.state import KeyValueState
from storm_on_spark.runtime.batches.rules.restarts import RestartPolicy
from storm_on_spark.runtime.state.keyvalue.state import StoredState
from storm_on_spark.runtime.state.keyvalue.store import MemoryStore
from storm_on_spark.runtime.tracking.acker import INIT, AckerState, Contribution
from storm_on_spark.spark.checkpoint.location import local_directory


def test_the_defaults_are_those_of_the_page() -> None:
    conf = effective_conf({})
    assert conf["topology.message.timeout.secs"] == 30
    assert conf["topology.task.stall.secs"] == 60
    assert conf["topology.spout.log.max.bytes"] == 256 << 20
    assert conf["topology.max.spout.pending"] is None
    assert conf["topology.fail.fast"] is False


def test_a_pending_tree_takes_seventeen_bytes() -> None:
    sizes = []
    for count in (1, 1001):
        state = AckerState()
        roots = np.arange(1, 1 + count, dtype=np.uint64)
        state.apply([Contribution(roots, roots * 7, np.full(count, INIT, np.uint8), period=0)], period=0)
        sizes.append(len(state.dump(0)))
    assert sizes[1] - sizes[0] == 17 * 1000


def test_the_sixth_death_of_a_spout_host_in_a_row_is_the_last() -> None:
    policy = RestartPolicy()
    pauses = [policy.next_pause(1.0) for _ in range(6)]
    assert pauses[0] == 0
    assert max(pause for pause in pauses[:5] if pause is not None) == 4
    assert pauses.index(None) == 5
    assert policy.next_pause(60.0) == 0, "after a minute of life failures are forgotten"


class Raises(BaseRichBolt):
    """Raises for every tuple."""

    def execute(self, tup: Any) -> None:
        raise ValueError(tup[0])


def test_fail_fast_can_be_set_per_component() -> None:
    builder = TopologyBuilder()
    builder.set_spout("source", Source())
    builder.set_bolt("careful", Raises()).global_grouping("source").add_configuration("topology.fail.fast", True)
    builder.set_bolt("patient", Raises()).global_grouping("source")
    worker = make_worker(builder)
    careful, patient = (worker.prepare(worker.wiring.plan.components[name].tasks[0]) for name in ("careful", "patient"))
    assert len(patient.execute([anchored([1])], ids(), 1).errors) == 1
    with pytest.raises(ComponentError, match="ValueError: 1"):
        careful.execute([anchored([1])], ids(), 1)


def test_a_value_that_is_changed_in_place_and_not_put_again_is_lost_with_the_worker() -> None:
    state, store = StoredState(), MemoryStore()
    state.put("list", [1])
    written = state.commit(store, 0)
    assert written is not None
    state.get("list").append(2)
    assert state.commit(store, written.entries) is None
    other = StoredState()
    other.load(store, written.entries)
    assert other.get("list") == [1]


class Hooked(BaseStatefulBolt):
    """Raises in one of the methods that are not `execute`."""

    def __init__(self, where: str) -> None:
        self.where = where

    def _maybe(self, where: str) -> None:
        if where == self.where:
            raise RuntimeError(f"not in {where}")

    def init_state(self, state: KeyValueState) -> None:
        self._maybe("init_state")

    def execute(self, tup: Any) -> None:
        """Takes everything."""

    def pre_prepare(self, txid: int) -> None:
        self._maybe("pre_prepare")

    def pre_commit(self, txid: int) -> None:
        self._maybe("pre_commit")

    def pre_rollback(self) -> None:
        self._maybe("pre_rollback")

    def __getstate__(self) -> dict[str, Any]:
        if hasattr(self, "collector"):
            self._maybe("__getstate__")
        return {"where": self.where}

    def prepare(self, conf: Any, context: Any, collector: Any) -> None:
        self.collector = collector


@pytest.mark.parametrize("where", ["init_state", "pre_prepare", "pre_commit", "pre_rollback", "__getstate__"])
def test_an_error_around_a_commit_ends_the_topology(where: str) -> None:
    def run() -> None:
        bolt = solo(Hooked(where))
        bolt.execute([anchored([1])], ids(), 1)
        assert bolt.snapshot is not None
        bolt.roll_back(bolt.snapshot, ())

    with pytest.raises(ComponentError, match=f"RuntimeError: not in {where}"):
        run()


def test_a_directory_and_its_uri_are_one_place(tmp_path: Path) -> None:
    assert local_directory(tmp_path.as_uri()) == local_directory(str(tmp_path)) == tmp_path


def test_the_page_names_every_folder_of_a_checkpoint() -> None:
    """The code's own list, in the docstring of `checkpoint`, and the page's are the same."""
    from storm_on_spark.spark.checkpoint import directory as checkpoint

    page = (Path(__file__).parents[3] / "docs" / "reliability.md").read_text()
    assert checkpoint.__doc__ is not None
    for line in chain(checkpoint.__doc__.splitlines(), ["storm/stalls/"]):
        name = line.strip().partition("  ")[0].partition(" ")[0]
        if name.startswith("storm/"):
            assert name in page, name
