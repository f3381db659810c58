"""Whether a driver may start on what it finds in its checkpoint. No I/O."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from storm_on_spark.cluster.records import CheckpointInfo
from storm_on_spark.spark.checkpoint.directory import Found


@dataclass(frozen=True)
class Verdict:
    """The next action of a driver."""

    do: Literal["go on", "start from scratch", "refuse"]
    reason: str = ""


GO_ON = Verdict("go on")
FROM_SCRATCH = Verdict("start from scratch")


def starts_from_scratch(known: CheckpointInfo, launch: int) -> bool:
    """Returns whether a driver of that launch is to forget what the topology had."""
    return 0 < known.from_scratch <= launch


def judge(known: CheckpointInfo | None, launch: int, found: Found, location: str, host: str, name: str) -> Verdict:
    """Returns whether a topology may start.

    One that has committed something, on whatever machine, has state. Where that is not what the checkpoint holds, a
    start would begin from zero, or continue from another's numbers, without a word.

    Args:
        known: what ZooKeeper says of the topology's state; None if it has never committed anything.
        launch: of the driver.
        found: what is in the checkpoint.
        location: where that is.
        host: where the driver runs.
        name: the topology's.

    Example:
        >>> known = CheckpointInfo(topology_id="t-1-1", location="/c", identity="t-ab", launch=1, host="a")
        >>> judge(known, 2, Found("t-ab", "t", True), "/c", "b", "t").do
        'go on'
        >>> verdict = judge(known, 2, Found(), "/c", "b", "t")
        >>> verdict.do, verdict.reason[:79]
        ('refuse', "topology 't' has state: checkpoint t-ab, at /c of host a. On host b there is no")
    """
    if known is None:
        return GO_ON
    if starts_from_scratch(known, launch):
        return FROM_SCRATCH
    if not known.identity or (found.identity == known.identity and found.committed):
        return GO_ON
    if not found.identity:
        there = f"there is nothing at {location}"
    elif found.identity == known.identity:
        there = f"what it had committed is gone from {location}"
    else:
        there = f"{location} holds another checkpoint, {found.identity} of topology {found.name!r}"
    return Verdict(
        "refuse",
        f"topology {name!r} has state: checkpoint {known.identity}, at {known.location} of host {known.host}. On host "
        f"{host} {there}. Give this host that checkpoint, as by storage that all hosts share; or have the topology "
        f"forget its state: `storm-spark rebalance {name} --wait 0 --from-scratch`",
    )
