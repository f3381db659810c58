"""Files of the checkpoint are damaged while no driver runs.

Damage that a crash can cause must be harmless: the last record of a spout log is incomplete, and no process was told of
it. Damage that no crash can cause must be noticed: the topology refuses to start, and names the file. Once the file is
restored, it continues as if nothing had happened.
"""

from __future__ import annotations

import re
import shutil
import time
from collections.abc import Callable
from pathlib import Path

from lab.faults.run import Run
from lab.faults.scenarios.pauses import stop
from lab.suite.scenario import ScenarioError
from storm_on_spark.runtime.batches.offsets import Offset
from storm_on_spark.runtime.spouts.log import SNAPSHOT, Mark, Segment, iter_cuts, list_segments, read_entries
from storm_on_spark.runtime.spouts.log.lineage import line_of, newest
from storm_on_spark.spark.checkpoint.directory import Checkpoint

_GROWTH_SECS = 20.0


def truncated_log(run: Run, times: int) -> None:
    """Kills the driver, and cuts the end off what a spout has written without the driver's knowledge.

    The driver is paused for a moment first. So the cut hits records that the driver does not know of, as with a SIGKILL
    in the middle of a write, but is sure to hit some.
    """
    run.start()
    for _ in run.moments(times):
        at = time.monotonic_ns()
        stop(run.pid)
        before = {path: path.stat().st_size for path in _last_segments(run)}
        log = _wait_for_growth(run, before)
        run.kill_driver()
        run.wait_until_gone()
        size = log.stat().st_size
        cut = run.rng.randrange(before[log] + 1, size)
        with log.open("r+b") as file:
            file.truncate(cut)
        run.restart()
        what = f"{log.parent.name}/{log.name} cut at {cut}"
        run.injected(what, f"it had {size} bytes, of which the driver knew at most {before[log]}", at)


def damaged_checkpoint(run: Run, times: int) -> None:
    """Kills the driver and damages one file; then restores it."""
    kinds = run.shuffled(_DAMAGES)
    run.start()
    for number in run.moments(max(times, len(kinds))):
        damage, expected = kinds[number % len(kinds)]
        # Killed there, so that there are outcomes that were not saved.
        run.trigger.touch()
        run.died()
        run.wait_until_gone()
        copy = run.folder / "copy"
        shutil.copytree(run.checkpoint, copy)
        what = damage(run)
        run.start()
        reason = run.refused()
        if re.search(expected, reason) is None:
            raise ScenarioError(f"{what}, and the topology gave this reason, not {expected!r}: {reason}")
        run.wait_until_gone()
        shutil.rmtree(run.checkpoint)
        copy.rename(run.checkpoint)
        over = time.monotonic_ns()
        run.restart()
        run.injected(what, f"refused with: {reason}", over)


def _last_segments(run: Run) -> list[Path]:
    return [folder / str(_line(folder)[-1]) for folder in run.spouts.iterdir() if _line(folder)]


def _line(folder: Path, planned: Mark = Mark()) -> list[Segment]:  # noqa: B008 # it is immutable
    """Returns the segments of a log that count."""
    segments = list_segments(folder)
    epoch = newest(segments, planned)
    assert epoch is not None
    return [segment for segment, _ in line_of(segments, epoch)]


def _wait_for_growth(run: Run, before: dict[Path, int]) -> Path:
    deadline = time.monotonic() + _GROWTH_SECS
    while time.monotonic() < deadline:
        grown = [path for path, size in before.items() if path.stat().st_size > size + 1]
        if grown:
            return run.rng.choice(grown)
        time.sleep(0.01)
    raise ScenarioError(f"no spout log has grown for {_GROWTH_SECS:.0f} s")


def _cut_planned(run: Run) -> str:
    task, mark, path = _planned_segment(run)
    size = run.rng.randrange(mark.position - _base(path))
    with path.open("r+b") as file:
        file.truncate(size)
    return f"log of spout task {task} cut at {size} of {path.name}, below position {mark.position} that was planned"


def _flip_spout_snapshot(run: Run) -> str:
    # Without the unplanned records after it: damage there doesn't count.
    task, mark, path = _planned_segment(run)
    with path.open("r+b") as file:
        file.truncate(mark.position - _base(path))
    folder = path.parent
    for later in _line(folder, mark):
        if later.base >= mark.position:
            (folder / str(later)).unlink()
    *_, last = iter_cuts(folder, _base(path), mark.position, mark.epoch)
    ((cut, snapshot),) = [
        (cut, body)
        for cut, _, body in read_entries(folder, last.snapshot, mark.position, lambda t: t == SNAPSHOT, mark.epoch)
        if cut.position == last.snapshot
    ]
    start, end = cut.position - _base(path), cut.end - _base(path)
    found = path.read_bytes().find(snapshot, start, end)
    if found < 0:  # in a brief record
        found, snapshot = start, path.read_bytes()[start:end]
    _flip(run, path, found, len(snapshot))
    return f"a bit of the snapshot in {task}/{path.name} flipped"


def _planned_segment(run: Run) -> tuple[int, Mark, Path]:
    """Returns a spout task, up to where Spark has planned, and the segment whose record ends there."""
    planned = _planned(run)
    task = run.rng.choice(sorted(planned.logs))
    mark, folder = planned.mark(task), run.spouts / str(task)
    segment = max(segment for segment in _line(folder, mark) if segment.base < mark.position)
    return task, mark, folder / str(segment)


def _planned(run: Run) -> Offset:
    checkpoint = Checkpoint(run.checkpoint)
    try:
        return checkpoint.planned()
    finally:
        checkpoint.close()


def _base(path: Path) -> int:
    segment = Segment.parse(path.name)
    assert segment is not None
    return segment.base


def _flip_outcomes(run: Run) -> str:
    # As if Spark had committed that micro-batch: outcomes of one that will run again are ignored.
    path = max((run.checkpoint / "storm" / "outcomes").glob("*.bin"))
    path = path.rename(path.with_name(f"{_last(run, 'commits'):012d}.bin"))
    return _flip_in(run, path)


def _flip_state(run: Run) -> str:
    # The state that the next micro-batch begins with; what is newer was not committed and will be written again.
    committed = max(int(path.name) for path in (run.checkpoint / "commits").iterdir() if path.name.isdigit())
    found = (run.checkpoint / "state").rglob(f"{committed + 1}.changelog")
    return _flip_in(run, run.rng.choice(sorted(path for path in found if path.stat().st_size > 200)))


def _cut_manifest(run: Run) -> str:
    path = run.checkpoint / "storm" / "manifest.json"
    path.write_bytes(path.read_bytes()[:-20])
    return "manifest.json cut short"


def _empty_offsets(run: Run) -> str:
    # With a commit: without one they are what a power loss may leave, and are planned again.
    planned, committed = _last(run, "offsets"), _last(run, "commits")
    shutil.copyfile(run.checkpoint / "commits" / str(committed), run.checkpoint / "commits" / str(planned))
    (run.checkpoint / "offsets" / str(planned)).write_bytes(b"")
    return f"offsets/{planned} emptied, of a micro-batch with a commit"


def _last(run: Run, log: str) -> int:
    """Returns the last micro-batch in one of Spark's logs."""
    return max(int(path.name) for path in (run.checkpoint / log).iterdir() if path.name.isdigit())


def _flip_in(run: Run, path: Path) -> str:
    _flip(run, path, 0, path.stat().st_size)
    return f"a bit of {path.relative_to(run.checkpoint)} flipped"


def _flip(run: Run, path: Path, start: int, length: int) -> None:
    data = bytearray(path.read_bytes())
    data[start + run.rng.randrange(length)] ^= 1 << run.rng.randrange(8)
    path.write_bytes(data)


_DAMAGES: tuple[tuple[Callable[[Run], str], str], ...] = (
    (_cut_planned, r"CheckpointError: .*part of the checkpoint is missing"),
    (_flip_spout_snapshot, r"spout log .* is damaged"),
    (_flip_outcomes, r"CheckpointError: .*outcomes/.*(damaged|not a file of|version|cut short)"),
    (_flip_state, r"state"),
    (_cut_manifest, r"CheckpointError: .*manifest\.json can't be read"),
    (_empty_offsets, r"CheckpointError: .*offset log .* can't be read"),
)
"""A damage to the checkpoint, and the message that the topology must give."""
