"""Two drivers that both take themselves for the owner of one checkpoint."""

from __future__ import annotations

import os
import shutil
import time

from lab.faults.run import Run
from lab.suite.scenario import ScenarioError

_REPLACED = "was taken over"
_RACES = ("CONCURRENT_STREAM_LOG_UPDATE", "another one runs on this checkpoint")
"""Words of Spark and of ours for two drivers that plan the same micro-batch."""


def two_owners(run: Run, times: int) -> None:
    """Freezes the driver with all its processes, starts another one as if on another machine, and lets it thaw.

    The new driver has process ids of its own, so it can't see that the old one is there. The old one wakes up while the
    new one works. It must end by itself. It may have had a plan in hand that it writes before it ends; then the new one
    ends as well, and the next start goes on.
    """
    run.start()
    for _ in run.moments(times):
        frozen = run.freeze()
        at = time.monotonic_ns()
        run.start(elsewhere=True)
        run.wait_for("submitted")
        # Anywhere in the new one's first micro-batches.
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
    """Returns why no driver can have process ids of its own here."""
    if os.geteuid() != 0 or shutil.which("unshare") is None:
        return "needs root and unshare, for process ids of its own"
    return None
