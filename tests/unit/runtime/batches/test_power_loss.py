"""The machine loses its power at any moment: with `topology.durability: machine` nothing that was acked is lost.

The disk keeps what was forced to it. Of all else it keeps anything: files, parts of files, zeros, none. What Spark
keeps is played: its state is on the disk when `force` has returned, its commit when `committed` has, by luck
before.
"""

from __future__ import annotations

import copy
import os
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import pytest
from simulation import POINTS, Simulation, build, seeds
from stormtest import make_worker

from storm_on_spark.runtime.batches.coordinator import Coordinator
from storm_on_spark.runtime.storage import durable
from storm_on_spark.testing.simulated import SimulatedSpark

pytestmark = pytest.mark.usefixtures("hosts_in_this_process")


class Disk:
    """What is forced to the disk of a folder; in place of the kernel's calls."""

    def __init__(self, folder: Path, random: Random, patch: pytest.MonkeyPatch) -> None:
        self.folder = folder
        self.random = random
        #: Inode -> what is on the disk of it; and the names that are.
        self.data: dict[int, bytes] = {}
        self.names: set[str] = set()
        self.lost = 0
        #: Whether the power is about to go, so that nothing gets to the disk any more.
        self.dying = False
        patch.setattr(os, "fdatasync", self._file)
        patch.setattr(os, "fsync", self._file)
        patch.setattr(durable, "syncfs", self._everything)

    def _file(self, descriptor: int) -> None:
        path = Path(os.readlink(f"/proc/self/fd/{descriptor}"))
        if self.dying:
            return
        if path.is_dir():
            self.names |= {str(entry) for entry in path.iterdir()}
        elif path.exists():
            self.data[path.stat().st_ino] = path.read_bytes()

    def _everything(self, descriptor: int) -> int:
        for path in self._files():
            self.data[path.stat().st_ino] = path.read_bytes()
            self.names.add(str(path))
        return 0

    def lose_power(self) -> None:
        """Leaves what is on the disk for sure, and of the rest what it may have."""
        kept = {}
        for path in self._files():
            content, sure = path.read_bytes(), self.data.get(path.stat().st_ino, b"")
            if not content.startswith(sure):
                sure = b""  # of a file that is gone, whose inode this one has
            if str(path) in self.names or self.random.random() < 0.5:
                rest = content[len(sure) :]
                cut = self.random.randrange(len(rest) + 1)
                kept[path] = sure + self.random.choice(
                    (rest, b"", bytes(len(rest)), rest[:cut], bytes(cut) + rest[cut:])
                )
            self.lost += kept.get(path) != content
        for path in self._files():
            path.unlink()
        self.data.clear()
        for path, content in kept.items():
            path.write_bytes(content)
            self.data[path.stat().st_ino] = content
        self.names = {str(path) for path in kept}

    def _files(self) -> list[Path]:
        return [path for path in self.folder.rglob("*") if path.is_file()]


class OnADisk(SimulatedSpark):
    """A cluster whose machine can lose its power."""

    def __init__(self, *args: Any, disk: Callable[[Path], Disk], **kwargs: Any) -> None:
        #: Micro-batches of which Spark's word is on the disk; and the number of offsets that are.
        self.sure_commits = 0
        self.sure_offsets = 1
        self.dies_at_the_barrier = False
        self.history: list[Any] = [{}]
        super().__init__(*args, **kwargs)
        self.disk = disk(self.folder)

    def make_coordinator(self, durable: Any = None) -> Coordinator:
        return super().make_coordinator(_Durable(self))

    def force(self) -> None:
        if self.dies_at_the_barrier:
            # With outcomes and carried tuples written, and not forced to the disk.
            self._killed("executed", "executed")
        durable.sync_file_system(self.folder)
        self.sure_offsets = len(self.offsets)

    def committed_on_disk(self, batch: int) -> None:
        self.sure_commits = batch + 1

    def start(self) -> None:
        self.coordinator = self.make_coordinator()
        self.coordinator.start(self.offsets[-1], self.committed - 1)

    def step(self, killed_at: str | None = None) -> bool:
        self.dies_at_the_barrier = killed_at == "executed" and self.random.random() < 0.7
        try:
            return super().step(None if self.dies_at_the_barrier else killed_at)
        finally:
            if len(self.history) == self.committed:
                self.history.append(copy.deepcopy(self.state))

    def _killed(self, killed_at: str | None, here: str) -> None:
        # What hosts still write, nobody has heard of.
        self.disk.dying = killed_at == here
        super()._killed(killed_at, here)

    def lose_power(self) -> None:
        self.disk.dying = False
        commits = self.random.choice((self.sure_commits, self.committed))
        offsets = self.random.choice((max(self.sure_offsets, commits + 1), len(self.offsets)))
        self.committed, self.offsets = commits, self.offsets[:offsets]
        self.state = copy.deepcopy(self.history[commits])
        del self.history[commits + 1 :]
        self.outcomes = [outcome for outcome in self.outcomes if outcome[0] < commits]
        self.sure_commits, self.sure_offsets = commits, offsets
        self.disk.lose_power()


class _Durable:
    """The cluster as the coordinator sees it: `committed` is a number there, and a call here."""

    def __init__(self, cluster: OnADisk) -> None:
        self.force, self.committed = cluster.force, cluster.committed_on_disk


class Powered(Simulation):
    """The simulation of kills, in which the machine dies with the driver."""

    def __init__(self, folder: Path, seed: int, patch: pytest.MonkeyPatch) -> None:
        super().__init__(folder, seed, limit=40, kills=0.3, retries=0.3)
        spec = make_worker(
            build(40), {"topology.acker.executors": 2, "topology.durability": "machine"}, self.random.choice([1, 2, 3])
        ).spec
        self.plan = spec.plan
        disk = lambda place: Disk(place, self.random, patch)  # noqa: E731
        self.cluster = OnADisk(spec, folder, self.random, retries=0.3, disk=disk)

    def on_death(self) -> None:
        self.note_numbers()
        self.cluster.lose_power()
        self.noted = min(self.noted, len(self.cluster.offsets) - 1)
        self.checked = min(self.checked, len(self.cluster.outcomes))


@pytest.mark.parametrize("seed", seeds(8))
def test_nothing_that_was_acked_is_lost_with_the_machine(
    tmp_path: Path, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    simulation = Powered(tmp_path, seed, monkeypatch)
    simulation.run()
    simulation.check_end()
    assert set(simulation.kinds) >= set(POINTS), "a fault did not happen"
    assert simulation.cluster.disk.lost > 0, "nothing was lost by any power loss"
