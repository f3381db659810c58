"""Which sessions allow real time."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping

from storm_on_spark.plan.settings import LiveSettings
from storm_on_spark.runtime.processes.run_folder import MOST_SOCKET_PATH, new_start_id, run_folder


def why_batches_here(conf: Mapping[str, object], master: str, *, in_store: bool = False, by_hand: bool = False) -> str:
    """Returns why tuples wait for micro-batches in a session; "" if nothing there prevents real time.

    Args:
        conf: the topology's configuration.
        master: Spark's.
        in_store: whether the checkpoint is in a store, and not in a directory.
        by_hand: whether the topology's clock is driven by hand.

    Example:
        >>> why_batches_here({}, "local[2]"), why_batches_here({"topology.profile": "realtime"}, "spark://host:7077")
        ('', '')
        >>> why_batches_here({}, "spark://host:7077")
        'executors of spark://host:7077 may be on other machines than the spouts'
    """
    if by_hand:
        return "a live process has a clock of its own, and this topology's clock is driven by hand"
    # A warning follows if a live process can't be started.
    if LiveSettings.of(conf).asked:
        return ""
    if in_store:
        return "the checkpoint is in a store, which would be written to for each few messages"
    if not is_here(master):
        return f"executors of {master} may be on other machines than the spouts"
    size = len(os.fsencode(run_folder(new_start_id()) / "live"))
    if size > MOST_SOCKET_PATH:
        where = f"a socket in {tempfile.gettempdir()}"
        return f"{where} has a path of {size} bytes, and {MOST_SOCKET_PATH} are allowed; set TMPDIR"
    return ""


def is_here(master: str) -> bool:
    """Returns whether Spark executes everything in the driver's own JVM.

    Example:
        >>> is_here("local[*, 4]"), is_here("local-cluster[2,1,1024]")
        (True, False)
    """
    return master == "local" or master.startswith("local[")
