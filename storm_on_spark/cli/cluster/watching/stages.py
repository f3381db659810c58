"""The stage of a topology between its submission and its first batch, from its page in REST."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

_IDLE_SECS: Final = 8.0
"""The longest wait for the first tuple: a spout may be idle, or a source of Spark may have a long micro-batch."""


@dataclass(frozen=True)
class Stage:
    """A stage."""

    name: str
    """`scheduling`, `starting`, `running`, `first batch`, `idle`, `inactive`, `completed` or `failed`."""
    text: str
    """Text for people, after the topology's name."""
    is_done: bool = False
    """Whether waiting is over."""
    failure: str | None = None
    """Why the topology failed, if it did."""


def stage_of(page: Mapping[str, Any], active_secs: float = 0.0) -> Stage:
    """Returns the stage of a topology.

    Args:
        page: `topology/:id`.
        active_secs: how long its driver has been active.

    Example:
        >>> page = {"driverStatus": "ACTIVE", "workers": [{"host": "a", "port": 6700}], "schedulerInfo": None,
        ...         "spoutStats": {"emitted": 1200, "acked": 800}, "bolts": [{"executed": 900}], "failure": None}
        >>> stage_of(page).text
        'has done its first micro-batch on a:6700: its spouts emitted 1,200, 800 acked'
        >>> stage_of({**page, "workers": [], "driverStatus": None, "schedulerInfo": "all 8 slots are taken"}).text
        'waits for a slot: all 8 slots are taken'
    """
    status, total = page["driverStatus"], page["spoutStats"]
    counts = f"its spouts emitted {total['emitted']:,}, {total['acked']:,} acked"
    if status == "FAILED":
        return Stage("failed", "failed", failure=page["failure"] or "its driver ended; see its errors")
    if status == "COMPLETED":
        return Stage("completed", f"is complete: {counts}", is_done=True)
    if not page["workers"]:
        reason = page["schedulerInfo"]
        return Stage("scheduling", f"waits for a slot: {reason}" if reason else "scheduling")
    worker = page["workers"][0]
    where = f"{worker['host']}:{worker['port']}"
    if status is None:
        return Stage("starting", f"starting its driver on {where}")
    if status == "INACTIVE":
        return Stage("inactive", f"is ready on {where}, and inactive", is_done=True)
    # Without bolts, a tuple is done as soon as it is emitted.
    if any(bolt["executed"] for bolt in page["bolts"]) or (total["emitted"] and not page["bolts"]):
        return Stage("first batch", f"has done its first micro-batch on {where}: {counts}", is_done=True)
    if not total["emitted"] and active_secs >= _IDLE_SECS:
        return Stage("idle", f"runs on {where}; its spouts have emitted nothing yet", is_done=True)
    return Stage("running", f"first batch on {where}")
