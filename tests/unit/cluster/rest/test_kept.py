"""What is worked out once for all readers: never older than the records, and bounded."""

from __future__ import annotations

import dataclasses
from typing import Any, cast

import msgspec
from cluster_records import assignment, beat, manifest, storm, supervisor

from storm_on_spark.api.info import ComponentInfo, TopologyInfo
from storm_on_spark.cluster.heartbeats.knowledge import Knowledge
from storm_on_spark.cluster.nimbus.control import Control
from storm_on_spark.cluster.records import StormBase, WorkerBeat
from storm_on_spark.cluster.rest.picture.kept import Kept
from storm_on_spark.cluster.rest.picture.snapshot import Picture, driver_info
from storm_on_spark.cluster.rest.picture.warned import topology_warnings
from storm_on_spark.cluster.state.snapshot import ClusterSnapshot, Code
from storm_on_spark.web.pages.question import Question
from storm_on_spark.web.pages.topology import topology
from storm_on_spark.web.rates import Rates
from storm_on_spark.web.sites.cluster import ClusterSite


def said(acked: int, pending: int = 0) -> dict[str, Any]:
    parts = {"s": ComponentInfo("s", "spout", 1, acked=acked), "b": ComponentInfo("b", "bolt", 4, executed=acked)}
    return TopologyInfo("t", "ACTIVE", 100.0, acked=acked, pending=pending, components=parts).to_dict()


def of_records(base: StormBase, last: WorkerBeat) -> ClusterSnapshot:
    return ClusterSnapshot(
        storms={"t": base},
        assignments={"t": assignment()},
        supervisors={"a": supervisor(heartbeat_at=100.0)},
        workerbeats={"t": last},
        code={"t": Code(manifest(), frozenset({"n:1"}))},
    )


class Known:
    """The part of a `Control` that pages of a topology read."""

    def __init__(self, base: StormBase, last: WorkerBeat) -> None:
        self.conf: dict[str, object] = {}
        self.user, self.version, self.scheme, self.stale_since = "me", "1", "http", None
        self.base, self.last = base, last

    def now(self) -> float:
        return 101.0

    def heartbeats(self) -> Knowledge:
        return Knowledge()

    def errors(self, topology_id: str) -> None:
        return

    def snapshot(self) -> ClusterSnapshot:
        return of_records(self.base, self.last)

    def topology(self, topology_id: str) -> StormBase:
        return self.base


def test_what_a_heartbeat_says_is_worked_out_once_and_anew_for_the_next_one() -> None:
    first, second = beat(time=100.0, info=said(5)), beat(time=103.0, info=said(9))
    info = Picture(of_records(storm(), first), 101.0, "me", "1").info("t")
    assert info is not None
    assert info.acked == 5
    assert Picture(of_records(storm(), first), 102.0, "me", "1").info("t") is info
    later = Picture(of_records(storm(), second), 104.0, "me", "1").info("t")
    assert later is not None
    assert later.acked == 9
    # Who still has the older records in hand gets what those say.
    again = Picture(of_records(storm(), first), 104.0, "me", "1").info("t")
    assert again is not None
    assert again.acked == 5


def test_an_equal_heartbeat_that_makes_no_sense_is_no_better_the_second_time() -> None:
    broken = beat(time=100.0, info={"status": 7})
    assert driver_info(broken) is None
    assert driver_info(broken) is None
    found = driver_info(beat(time=100.0, info=said(3)))
    assert found is not None
    assert found.acked == 3


def test_another_configuration_counts_at_the_next_request() -> None:
    last = beat(time=100.0, info=said(0, pending=10))

    def rules(conf: dict[str, object]) -> list[str]:
        base = msgspec.structs.replace(storm(), conf=conf)
        return [each.rule for each in topology_warnings(Picture(of_records(base, last), 101.0, "me", "1"), base)]

    assert "spout" not in rules({})
    assert "spout" in rules({"topology.max.spout.pending": 10})
    assert "spout" not in rules({"topology.max.spout.pending": 11})


def test_a_page_shows_the_next_heartbeat_configuration_and_rebalance() -> None:
    known = Known(storm(), beat(time=100.0, info=said(0, pending=10)))
    site, rates = ClusterSite(cast(Control, known)), Rates()

    def page() -> dict[str, object]:
        return topology(Question(site, rates, {"id": "t"}, {}))

    def rules() -> list[str]:
        return [each.rule for each in page()["warnings"]]  # type: ignore[attr-defined]

    assert "spout" not in rules()
    known.base = msgspec.structs.replace(known.base, conf={"topology.max.spout.pending": 10, "my.key": 1})
    assert "spout" in rules()
    assert site.topology("t").conf["my.key"] == 1
    shape = site.topology("t").shape
    assert site.topology("t").shape is shape
    known.base = msgspec.structs.replace(known.base, executors={"b": 2})
    assert [part.executors for name, part in site.topology("t").shape.parts.items() if name == "b"] == [2]
    known.last = beat(time=103.0, info=said(300))
    view = page()["view"]
    assert view.info is not None and view.info.acked == 300  # type: ignore[attr-defined] # noqa: PT018
    assert page()["pace"].acked == 100.0  # type: ignore[attr-defined]


def test_the_page_of_a_topology_warns_of_a_spout_that_falls_behind() -> None:
    growth = {"secs": 540.0, "backlog": {"1": 9000}, "backlog_before": {"1": 10}}
    known = Known(storm(), beat(time=100.0, info={**said(5), "load": {"growth": growth}}))
    made = topology(Question(ClusterSite(cast(Control, known)), Rates(), {"id": "t"}, {}))
    found = [each.text for each in made["warnings"] if each.rule == "backlog"]
    assert len(found) == 1
    assert found[0].startswith("9,000 tuples wait in")


def test_rates_are_the_same_until_something_changes() -> None:
    known = Known(storm(), beat(time=100.0, info=said(100)))
    site, rates = ClusterSite(cast(Control, known)), Rates()
    pace = rates.look(site.topology("t"))
    assert rates.look(site.topology("t")) is pace
    fewer = dataclasses.replace(site.topology("t"), looked_at=105.0)
    assert rates.look(fewer) is not pace


def test_only_so_many_values_are_kept_and_those_asked_for_last() -> None:
    kept, made = Kept[str](2), []

    def of(key: str) -> str:
        return kept.of(key, (), lambda: made.append(key) or key)  # type: ignore[func-returns-value]

    for key in ("a", "b", "a", "c", "a", "b"):
        assert of(key) == key
    assert len(kept) == 2
    assert made == ["a", "b", "c", "b"]
