"""Many topologies on many supervisors."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from cluster_records import storm
from world import World

from storm_on_spark.cluster.daemons.nimbus import Nimbus
from storm_on_spark.cluster.paths import STORMS
from storm_on_spark.cluster.records import encode

TOPOLOGIES, SUPERVISORS = 200, 50


def fill(world: World, topologies: int, supervisors: int) -> None:
    """Makes supervisors, and topologies that nobody has scheduled yet."""
    for number in range(supervisors):
        world.idle_supervisor(f"s{number:03}", slots=-(-topologies // supervisors))
    made = []
    for number in range(topologies):
        name = f"t-{number}-1"
        base = storm(name, name="t", submitted_at=float(number), conf={"my.key": "x" * 500})
        made.append(world.session.client.create_async(world.session.paths.of(STORMS, name), encode(base)))
    for each in made:
        each.get(timeout=60)


def test_two_hundred_topologies_on_fifty_supervisors(world: World, tmp_path: Path) -> None:
    fill(world, TOPOLOGIES, SUPERVISORS)
    with Nimbus({**world.conf, "storm.local.dir": str(tmp_path / "local")}, port=0):
        placed = world.until(lambda seen: len(seen.assignments) == TOPOLOGIES, "all assigned", 60)
        load = Counter(assignment.supervisor_id for assignment in placed.assignments.values())
        assert set(load.values()) == {TOPOLOGIES // SUPERVISORS}
        assert len({(a.supervisor_id, a.port) for a in placed.assignments.values()}) == TOPOLOGIES
        world.idle_supervisor("spare", slots=TOPOLOGIES // SUPERVISORS)
        world.no_supervisor("s007")
        after = world.until(
            lambda seen: all(a.supervisor_id != "s007" for a in seen.assignments.values()), "its topologies moved"
        )
        moved = {name for name, a in after.assignments.items() if a != placed.assignments[name]}
        assert moved == {name for name, a in placed.assignments.items() if a.supervisor_id == "s007"}
