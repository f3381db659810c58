"""The conditions at the end of a run, computed from the ledger and the state alone.

Nothing here asks the tested code what it did. The ledger has what was emitted, acked, failed and executed. The bolts'
expected state follows from what was emitted; their actual state was read by Spark.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from lab.load import ledger
from lab.load.ledger import Records
from lab.load.topology import KEYS, Load, keys_of

_SHOWN = 5


@dataclass(frozen=True)
class Evidence:
    """The evidence of a run."""

    emits: Records
    acks: Records
    fails: Records
    sink: Records
    spouts: Sequence[Mapping[str, Any]]
    """What each spout task wrote when it was closed."""
    state: Mapping[str, Any] | None
    """What the driver read from the checkpoint when the topology was complete."""

    @classmethod
    def read(cls, folder: Path) -> Evidence:
        """Returns the evidence in the folder of a run."""
        records = folder / "ledger"
        state = folder / "state.json"
        return cls(
            emits=ledger.read(records, ledger.EMITS),
            acks=ledger.read(records, ledger.ACKS),
            fails=ledger.read(records, ledger.FAILS),
            sink=ledger.read(records, ledger.SINK),
            spouts=[json.loads(path.read_text()) for path in sorted(records.glob("spout-*.json"))],
            state=json.loads(state.read_text()) if state.exists() else None,
        )


@dataclass(frozen=True)
class Figures:
    """The counts of the oracles."""

    messages: int
    """Unique messages emitted."""
    replayed: int
    """Roots that failed, so that their message was emitted again."""
    lost: int
    """Messages that the sink never saw, or that were never acked."""
    wrong_outcomes: int
    """Roots without an outcome, with two different ones, or with one that the spout did not expect."""
    state_errors: int
    """By how much counts in the bolts' state are off, lost and counted twice alike, and what else is wrong in it."""
    duplicates: int
    """Tuples that the sink saw again."""
    told_again: int
    """Repeated calls of `ack` and `fail`: outside the spout's state they are side effects too."""


def check(load: Load, evidence: Evidence, *, host_dies: bool, strict_fails: bool) -> tuple[Figures, list[str]]:
    """Returns the figures of a run, and a sentence for each problem.

    Args:
        load: what was processed.
        evidence: what it left behind.
        host_dies: whether the fault ends spout hosts. Only then may `ack` and `fail` be called twice for a root.
        strict_fails: whether nothing but poison may fail.
    """
    problems: list[str] = []

    def complain(what: str, items: Sequence[Any] | np.ndarray[Any, Any]) -> int:
        if len(items):
            shown = ", ".join(str(item) for item in list(items)[:_SHOWN])
            problems.append(f"{len(items)} {what}: {shown}{', ...' if len(items) > _SHOWN else ''}")
        return len(items)

    emitted = np.unique(ledger.roots(evidence.emits))
    acked, failed = np.unique(ledger.roots(evidence.acks)), np.unique(ledger.roots(evidence.fails))
    everything = np.arange(load.messages)

    lost = complain("messages never reached the sink", np.setdiff1d(everything, _seen(evidence.sink)))
    lost += complain("messages were never acked", np.setdiff1d(everything, acked >> 16))

    wrong = complain("roots were both acked and failed", _names(np.intersect1d(acked, failed)))
    wrong += complain("roots had no outcome", _names(np.setdiff1d(emitted, np.union1d(acked, failed))))
    wrong += complain("outcomes were of roots never emitted", _names(np.setdiff1d(np.union1d(acked, failed), emitted)))
    numbers, times = np.unique(acked >> 16, return_counts=True)
    wrong += complain("messages were acked under several roots", numbers[times > 1])
    wrong += _check_spouts(evidence, len(acked), len(failed), complain)

    poison = {number << 16 for number in range(load.messages) if load.is_poison(number)}
    wrong += complain("poisonous roots were not failed", _names(np.setdiff1d(list(poison), failed)))
    if strict_fails:
        wrong += complain("roots failed without a reason", _names(np.setdiff1d(failed, list(poison))))

    told_again = len(evidence.acks) - len(acked) + len(evidence.fails) - len(failed)
    if told_again and not host_dies:
        problems.append(f"{told_again} outcomes were told twice though no spout host died")

    state_errors = _check_state(load, emitted, poison, evidence.state, problems)
    figures = Figures(
        messages=len(np.unique(emitted >> 16)),
        replayed=len(failed),
        lost=lost,
        wrong_outcomes=wrong,
        state_errors=state_errors,
        duplicates=len(evidence.sink) - len(np.unique(evidence.sink[["number", "attempt", "partner"]])),
        told_again=told_again,
    )
    return figures, problems


def _seen(sink: Records) -> np.ndarray[Any, Any]:
    return np.union1d(sink["number"], sink["partner"])


def _names(roots: np.ndarray[Any, Any]) -> list[str]:
    return [f"message {root >> 16} attempt {root & 0xFFFF}" for root in roots.tolist()]


def _check_spouts(evidence: Evidence, acked: int, failed: int, complain: Any) -> int:
    """Checks the spouts' own state, in which each outcome counts exactly once."""
    if len(evidence.spouts) != 2:
        return int(complain("spout tasks instead of 2 were closed", [len(evidence.spouts)]))
    wrong = sum(
        complain(f"{what} in the spouts' state", [item for spout in evidence.spouts for item in spout[name]])
        for name, what in (("open", "messages without an outcome"), ("strange", "outcomes of roots not under way"))
    )
    for name, seen in (("acked", acked), ("failed", failed)):
        counted = sum(spout[name] for spout in evidence.spouts)
        if counted != seen:
            wrong += complain(f"{name} roots counted by the spouts, not {seen}", range(counted))
    return int(wrong)


def _check_state(
    load: Load,
    emitted: np.ndarray[Any, Any],
    poison: set[int],
    state: Mapping[str, Any] | None,
    problems: list[str],
) -> int:
    """Compares the bolts' state with the result of a sequential program on the emitted roots."""
    if state is None:
        problems.append("the topology did not complete, so there is no state to look at")
        return load.messages
    counts: Counter[int] = Counter()
    sums: Counter[int] = Counter()
    windowed: Counter[int] = Counter()
    again = 0
    for root in emitted.tolist():
        number, attempt = root >> 16, root & 0xFFFF
        again += attempt > 0
        for key in keys_of(number):
            windowed[key] += 1
            if key >= KEYS or root not in poison:
                counts[key] += 1
                sums[key] += number
    errors = 0
    for name, expected in (
        ("counts", counts),
        ("sums", sums),
        *([("windowed", windowed)] if state.get("windowed") else []),
    ):
        found: Counter[int] = Counter()
        for part in state[name]:
            if twice := [key for key in part if int(key) in found]:
                problems.append(f"keys {twice[:_SHOWN]} are in the state of two tasks")
            found.update({int(key): value for key, value in part.items()})
        off = {key: found[key] - expected[key] for key in found | expected if found[key] != expected[key]}
        if off:
            problems.append(f"{name} by key are off: {dict(list(off.items())[:_SHOWN])}")
            errors += len(off) if name == "sums" else sum(map(abs, off.values()))
    for name, wanted in (("joined", load.messages // 2), ("alone", again), ("held", 0), ("pending", 0)):
        if state[name] != wanted:
            problems.append(f"{state[name]} tuples {name} in the state, not {wanted}")
            errors += abs(state[name] - wanted)
    return errors
