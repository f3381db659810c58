"""What can't be read is left alone: records of another release, damaged ones."""

from __future__ import annotations

import json
from pathlib import Path

import cluster_records as made
import pytest
from memory_state import MemoryCode, MemoryState
from msgspec.structs import replace

from storm_on_spark.cluster.nimbus.accepting.submission import Submissions
from storm_on_spark.cluster.nimbus.code.gate import code_gate
from storm_on_spark.cluster.nimbus.leader import Leader
from storm_on_spark.cluster.nimbus.scheduling.liveness import Drivers, Heartbeats
from storm_on_spark.cluster.nimbus.settings import NimbusSettings
from storm_on_spark.cluster.paths import ASSIGNMENTS, CODE, OWNERS, STORMS, SUBMISSIONS, SUPERVISORS, WORKERBEATS
from storm_on_spark.cluster.records import (
    Record,
    Transition,
    encode,
)

T = "words-1-1"


class World:
    """A topology that runs, and a leader whose clock is told."""

    def __init__(self) -> None:
        self.state, self.code, self.clock = MemoryState(), MemoryCode(T), 0.0
        submissions = Submissions(
            self.state,
            self.code,
            "n:1",
            NimbusSettings.of({}),
            {},
            Path("checkpoints"),
            lambda: None,
            now=lambda: self.clock,
        )
        self.leader = Leader(
            self.state,
            self.code,
            submissions,
            Heartbeats(60),
            Drivers(120, 30),
            now=lambda: self.clock,
            clock=lambda: self.clock,
        )
        self.fence = self.state.lead()
        self.records: dict[str, Record] = {
            STORMS: made.storm(T, name="words"),
            ASSIGNMENTS: made.assignment(T),
            CODE: made.manifest(T, uploader="n:1", distributor="memory", metafile="{}"),
            OWNERS: made.ownership(T, pid=7),
            WORKERBEATS: made.beat(T, 0.0, pid=7, info={"status": "COMPLETED"}),
        }
        for folder, record in self.records.items():
            if folder != WORKERBEATS:
                self.state.put(record, folder, T)
        for name in "at":
            self.state.put(made.supervisor(name, slots=(6700,)), SUPERVISORS, name)

    def rounds(self) -> None:
        """Lets more time go by than any timeout, with supervisors that beat."""
        for _ in range(20):
            self.clock += 30.0
            for name in "at":
                found = self.state.snapshot().supervisors.get(name)
                if found is not None:
                    self.state.put(replace(found, heartbeat_at=self.clock), SUPERVISORS, name)
            self.leader.round(self.fence, self.state.snapshot())
            self.leader.sweep(self.fence, self.state.snapshot(), 0.0)


def newer(record: Record) -> bytes:
    return json.dumps({**json.loads(encode(record)), "format": 99, "priority": 3}).encode()


DAMAGES = {"newer": newer, "damaged": lambda record: encode(record)[:-5], "empty": lambda record: b"{}"}


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("folder", [STORMS, ASSIGNMENTS, CODE, OWNERS, WORKERBEATS])
def test_a_record_that_cant_be_read_ends_nothing(folder: str, damage: str) -> None:
    world = World()
    world.state.put(DAMAGES[damage](world.records[folder]), folder, T)
    if folder != WORKERBEATS:
        # So that nobody says that it is silent.
        world.state.put(replace(world.records[WORKERBEATS], info={}), WORKERBEATS, T)
        world.leader.drivers = Drivers(1e9, 1e9)
    before = dict(world.state.nodes)
    world.rounds()
    kept = {parts: node for parts, node in world.state.nodes.items() if parts[0] != SUPERVISORS}
    assert kept == {parts: node for parts, node in before.items() if parts[0] != SUPERVISORS}
    assert world.code.removed == []
    assert list(world.state.snapshot().problems) == [f"/storm/{folder}/{T}"]


def test_without_damage_the_same_world_does_change() -> None:
    # Else the test above could not fail.
    world = World()
    world.rounds()
    assert world.state.nodes[ASSIGNMENTS, T].version > 0
    world = World()
    del world.state.nodes[STORMS, T], world.state.nodes[OWNERS, T]
    world.rounds()
    assert not world.state.snapshot().assignments
    assert T in world.code.removed


def test_code_is_left_while_a_submission_cant_be_read() -> None:
    world = World()
    submission = made.submission(T, key="k")
    for folder in (STORMS, ASSIGNMENTS, OWNERS):
        del world.state.nodes[folder, T]
    world.state.put(newer(submission), SUBMISSIONS, "k")
    world.rounds()
    assert world.code.removed == []
    assert (CODE, T) in world.state.nodes


def test_a_supervisor_that_cant_be_read_keeps_its_topology() -> None:
    world = World()
    del world.state.nodes[OWNERS, T]
    world.state.put(newer(world.state.snapshot().supervisors["a"]), SUPERVISORS, "a")
    world.rounds()
    assert world.state.snapshot().assignments[T].supervisor_id == "a"


def test_others_are_scheduled_beside_an_assignment_that_cant_be_read_and_not_in_its_slot() -> None:
    world = World()
    world.state.put(newer(world.records[ASSIGNMENTS]), ASSIGNMENTS, T)
    for name in ("a-2-2", "b-3-3"):
        world.state.put(replace(world.records[STORMS], topology_id=name, name=name[0]), STORMS, name)
    world.clock = 1.0
    world.leader.round(world.fence, world.state.snapshot())
    found = world.state.snapshot().assignments
    assert [(a.topology_id, a.supervisor_id) for a in found.values()] == [("a-2-2", "t")]


def test_a_topology_that_is_killed_goes_whatever_its_assignment_says() -> None:
    world = World()
    transition = Transition(kind="kill", due_at=1.0, previous="ACTIVE")
    world.state.put(replace(world.records[STORMS], status="KILLED", transition=transition), STORMS, T)
    world.state.put(newer(world.records[ASSIGNMENTS]), ASSIGNMENTS, T)
    world.clock = 2.0
    world.leader.round(world.fence, world.state.snapshot())
    assert (STORMS, T) not in world.state.nodes
    assert (ASSIGNMENTS, T) not in world.state.nodes


def test_the_gate_counts_what_cant_be_read() -> None:
    world = World()
    world.state.put(newer(world.records[STORMS]), STORMS, T)
    gate = code_gate(world.state.snapshot())
    assert (gate.wanted, gate.foreign, gate.lost) == ((T,), (), ())
    world.state.put(newer(world.records[CODE]), CODE, T)
    gate = code_gate(world.state.snapshot())
    assert (gate.wanted, gate.foreign, gate.lost) == ((), (T,), ())
    world.state.put(b"nonsense", CODE, T)
    gate = code_gate(world.state.snapshot())
    assert (gate.wanted, gate.foreign, gate.lost) == ((), (), (T,))
