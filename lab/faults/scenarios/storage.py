"""The disk with the checkpoint is full or fails, and then recovers."""

from __future__ import annotations

import contextlib
import errno
import os
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

from lab.faults.preload import Preload, compiler
from lab.faults.run import Run
from lab.suite.scenario import ScenarioError

_DISK_MB = 256
_FILL_SECS = 60.0
_PLACES = (".", "offsets", "commits", "state", "storm/outcomes")
"""Where in the checkpoint writes fail: everywhere, in Spark's folders, or in those of Storm on Spark."""


def full_checkpoint(run: Run, times: int) -> None:
    """Fills the file system on which all of the checkpoint is."""
    _fill_up(run, times, run.checkpoint)


def full_spout_log(run: Run, times: int) -> None:
    """Fills the file system on which only the spout logs are."""
    _fill_up(run, times, run.spouts)


def errors_in_checkpoint(run: Run, times: int) -> None:
    """Makes writes to the checkpoint fail: to all of it or to one of its folders."""
    _refuse(run, times, [run.checkpoint / place for place in run.shuffled(_PLACES)])


def errors_in_spout_log(run: Run, times: int) -> None:
    """Makes writes to the spout logs fail."""
    _refuse(run, times, [run.spouts])


def no_mounts() -> str | None:
    """Returns why no file system can be mounted here."""
    return None if os.geteuid() == 0 else "needs root, to mount a small file system"


def no_compiler() -> str | None:
    """Returns why the library with the faults can't be built here."""
    return None if compiler() else "needs a C compiler"


def _fill_up(run: Run, times: int, place: Path) -> None:
    place.mkdir(parents=True, exist_ok=True)
    run.cleanup.enter_context(_small_disk(place))
    ballast = place / "ballast"
    run.start()
    for _ in run.moments(times):
        deadline = time.monotonic() + _FILL_SECS
        with ballast.open("ab", buffering=0) as file:
            # Repeatedly: the topology deletes old files, and would otherwise continue with the freed space.
            while not run.ended():
                _fill(file.fileno())
                if time.monotonic() > deadline:
                    raise ScenarioError(f"the topology runs on for {_FILL_SECS:.0f} s though its disk is full")
                time.sleep(0.01)
        reason = run.refused()
        free = os.statvfs(place).f_bavail
        ballast.unlink()
        if os.strerror(errno.ENOSPC) not in reason:
            raise ScenarioError(f"the disk was full, but the topology failed with: {reason}")
        over = time.monotonic_ns()
        run.restart()
        run.injected(f"full disk at {place.name}", f"{free} blocks left; the topology ended with: {reason}", over)


def _refuse(run: Run, times: int, places: list[Path]) -> None:
    preload = Preload(run.folder)
    run.environment = preload.environment
    run.start()
    for number in run.moments(times):
        place, before = places[number % len(places)], preload.refused
        preload.refuse_writes(place)
        reason = run.refused()
        preload.allow_writes()
        refused = preload.refused - before
        if not refused or os.strerror(errno.EIO) not in reason:
            raise ScenarioError(f"{refused} writes to {place} were refused, but the topology failed with: {reason}")
        over = time.monotonic_ns()
        run.restart()
        proof = f"{refused} writes refused; the topology ended with: {reason}"
        run.injected(f"I/O errors at {place.name}", proof, over)


@contextlib.contextmanager
def _small_disk(place: Path) -> Iterator[None]:
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={_DISK_MB}m,mode=700", "tmpfs", place], check=True)
    try:
        yield
    finally:
        # Lazily: processes with open files there are about to be killed.
        subprocess.run(["umount", "--lazy", place], check=True)


def _fill(file: int) -> None:
    """Writes until not a byte more fits."""
    size = 1 << 20
    while size:
        try:
            os.write(file, bytes(size))
        except OSError as error:
            if error.errno != errno.ENOSPC:
                raise
            size //= 8
