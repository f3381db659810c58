"""Two drivers that each believe to own the same checkpoint."""

from __future__ import annotations

import os
import shutil
import time

from lab.faults.run import Run
from lab.suite.scenario import ScenarioError

_REPLACED = "was taken over"
_RACES = ("CONCURRENT_STREAM_LOG_UPDATE", "another one runs on this checkpoint")
"""Messages of Spark and of this project about two drivers that plan the same micro-batch."""


def two_owners(run: Run, times: int) -> None:
    """Freezes the driver with all its processes, starts another one as if on another machine, and thaws the first.

    The new driver has separate process ids, so it can't see the old one. The old one resumes while the new one works.
    It must end by itself. It may write a finished plan before it ends; then the new one ends as well, and the next
    start continues.
    """
    run.start()
    for _ in run.moments(times):
        frozen = run.freeze()
        at = time.monotonic_ns()
        run.start(elsewhere=True)
        run.wait_for("submitted")
        # At any moment in the new one's first micro-batches.
        time.sleep(run.rng.uniform(0, 2))
        reason = run.thaw()
        if not any(word in reason for word in (_REPLACED, *_RACES)):
            raise ScenarioError(f"the driver that was replaced ended with: {reason}")
        proof = f"{frozen} processes were frozen and woke up; the driver ended with: {reason}"
        if not run.recovers(at):
            reason = run.refused()
            if not any(word in reason for word in _RACES):
                raise ScenarioError(f"the driver that replaced the other one ended with: {reason}")
            proof += f"; the new driver ended with: {reason}"
            run.wait_until_gone()
            run.start(elsewhere=True)
        run.injected("two owners", proof, at)


def no_namespaces() -> str | None:
    """Returns why a driver can't have separate process ids here."""
    if os.geteuid() != 0 or shutil.which("unshare") is None:
        return "needs root and unshare, for process ids of its own"
    return None
