"""The machine loses its power, and a replaced writer resumes."""

from __future__ import annotations

import shutil
import tempfile
import threading
import time
from collections.abc import Sequence
from pathlib import Path

from lab.faults.power import Synced, knows_births
from lab.faults.preload import Preload, compiler
from lab.faults.run import Run
from lab.suite.scenario import ScenarioError
from storm_on_spark.runtime.batches.offsets import Offset
from storm_on_spark.runtime.spouts.log import SNAPSHOT, SpoutLog, WriterEpoch, list_segments
from storm_on_spark.spark.checkpoint.directory import Checkpoint

_SEGMENT_BYTES = 20_000
_WAIT_SECS = 60.0


def power(run: Run, times: int) -> None:
    """Kills everything; of the checkpoint remains the data forced to the disk, and a random part of the rest."""
    preload = Preload(run.folder)
    synced = Synced(run.folder / "synced", run.checkpoint)
    run.environment = {**preload.environment, **synced.environment}
    run.start()
    lost = 0
    for number in run.moments(times):
        at = time.monotonic_ns()
        if number % 2:
            # Between sink and commit.
            run.trigger.touch()
            run.died()
        else:
            run.kill_driver()
        run.wait_until_gone()
        loss = synced.lose_power(run.rng)
        lost += len(loss.gone) + len(loss.torn)
        run.restart()
        run.injected("power loss", f"{loss}: {', '.join([*loss.gone, *loss.torn])}", at)
    if not lost:
        raise ScenarioError("nothing was lost by any power loss: the fault did not happen")


def two_writers(run: Run, times: int) -> None:
    """Makes a writer of the former driver append and begin segments while the next driver's spouts write."""
    run.start()
    for _ in run.moments(times):
        at = time.monotonic_ns()
        run.kill_driver()
        run.wait_until_gone()
        zombies = _zombies(run)
        awake = threading.Thread(target=_haunt, args=(run, zombies), name="zombies")
        awake.start()
        run.restart()
        run.injected("a writer that was replaced goes on", "", at)
        for zombie in zombies:
            zombie.stop.set()
        awake.join()
        proofs = [zombie.proof() for zombie in zombies]
        run.injections[-1].proof = "; ".join(proofs)


def rolled_back(run: Run, times: int) -> None:
    """Puts back an older copy of one part of the checkpoint: refused. Then that part as it was: continues."""
    _put_back(run, times, (("storm/spouts", "part of the checkpoint is missing"), ("state", "")))


def all_rolled_back(run: Run, times: int) -> None:
    """Puts back an older copy of all of the checkpoint, beside newer tables: refused. Then as it was: continues."""
    _put_back(run, times, ((".", "older than what was written with it"),))


def _put_back(run: Run, times: int, parts: Sequence[tuple[str, str]]) -> None:
    """Puts back older copies of parts of the checkpoint, each of which must be refused with certain words."""
    run.start()
    for number in run.moments(times):
        run.kill_driver()
        run.wait_until_gone()
        part, words = parts[number % len(parts)]
        older, newer = run.folder / "older", run.folder / "newer"
        shutil.copytree(run.checkpoint / part, older)
        # It must have progressed by some micro-batches that need the parts to be removed.
        at = time.monotonic_ns()
        run.restart()
        run.injected("a kill, to have an older copy", "ended by signal 9", at)
        run.kill_driver()
        run.wait_until_gone()
        (run.checkpoint / part).rename(newer)
        older.rename(run.checkpoint / part)
        run.start()
        reason = run.refused()
        if words not in reason:
            raise ScenarioError(f"an older copy of {part}, and the topology gave this reason: {reason}")
        run.wait_until_gone()
        shutil.rmtree(run.checkpoint / part)
        newer.rename(run.checkpoint / part)
        over = time.monotonic_ns()
        run.restart()
        run.injected(f"an older copy of {part}", f"refused with: {reason}", over)


def no_power() -> str | None:
    """Returns why a power failure can't be simulated here."""
    if not compiler():
        return "needs a C compiler"
    return None if knows_births(Path(tempfile.gettempdir())) else "needs a file system that knows when files were made"


class _Zombie:
    """A writer of the former driver, which knows nothing of the next one.

    It writes the tuples of its last record again and again: read, they would be counted twice.
    """

    def __init__(self, folder: Path, planned: Offset) -> None:
        self.stop = threading.Event()
        self._task = folder.name
        self.owner = max(segment.epoch.owner for segment in list_segments(folder))
        mark = planned.mark(int(folder.name))
        self.log = SpoutLog(folder, _SEGMENT_BYTES, epoch=WriterEpoch(self.owner, 1000), planned=mark)
        assert self.log.last is not None
        self._begin = self.log.end
        self._last = self.log.last
        self._snapshot = self.log.snapshot()
        self._entries = [
            (target, body) for _, target, body in self.log.entries(self._last.position, lambda t: t != SNAPSHOT)
        ]
        self.records = 0

    def replaced(self) -> bool:
        """Whether a later writer has begun."""
        return any(segment.epoch.owner > self.owner for segment in list_segments(self.log.folder))

    def append(self) -> None:
        """Writes a record."""
        last = self._last
        counts = {"tuples": last.tuples, "messages": last.messages, "first": last.first, "clock": last.clock}
        snapshot = self._snapshot if self.log.wants_snapshot else None
        self.log.append(self._entries, snapshot=snapshot, **counts)
        self.records += 1

    def proof(self) -> str:
        """Returns where both wrote.

        Raises:
            ScenarioError: they did not write the same positions.
        """
        others = [segment.base for segment in list_segments(self.log.folder) if segment.epoch.owner > self.owner]
        if not any(self._begin <= base < self.log.end for base in others) and not self.records:
            raise ScenarioError(f"the writer of {self.log.folder} that was replaced wrote nothing")
        return f"task {self._task}: {self.records} records from {self._begin} to {self.log.end}"


def _zombies(run: Run) -> Sequence[_Zombie]:
    checkpoint = Checkpoint(run.checkpoint)
    try:
        planned = checkpoint.planned()
    finally:
        checkpoint.close()
    return [_Zombie(folder, planned) for folder in sorted(run.spouts.iterdir())]


def _haunt(run: Run, zombies: Sequence[_Zombie]) -> None:
    deadline = time.monotonic() + _WAIT_SECS
    try:
        while not all(zombie.stop.is_set() for zombie in zombies) and time.monotonic() < deadline:
            for zombie in zombies:
                if zombie.replaced():
                    zombie.append()
            time.sleep(0.02)
    finally:
        for zombie in zombies:
            zombie.log.close()
