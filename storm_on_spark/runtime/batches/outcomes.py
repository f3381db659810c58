"""Outcomes of messages, as the ackers of a micro-batch report them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from storm_on_spark.runtime.codec import chunk
from storm_on_spark.runtime.codec.chunk import Kind
from storm_on_spark.runtime.tracking.acker import Outcome
from storm_on_spark.runtime.tracking.ids import spout_task_of
from storm_on_spark.runtime.tracking.runs import Runs


@dataclass(frozen=True)
class Reported:
    """What the ackers of a micro-batch report."""

    outcomes: list[Runs] = field(default_factory=list)
    left: list[tuple[int, bytes]] = field(default_factory=list)
    """The LEFT and READ chunks, each with the task of the spout whose rows it is about."""
    rows_left: Counter[int] = field(default_factory=Counter)
    """By task of a native spout: its rows that the micro-batch did not ack."""

    @classmethod
    def of(cls, chunks: Sequence[bytes]) -> Reported:
        """Returns what is in OUTCOME, LEFT and READ chunks."""
        found = cls()
        for body in chunks:
            header = chunk.read_header(body)
            if header.kind == Kind.LEFT:
                roots, _ = chunk.read_native_roots(header, body)
                task = int(spout_task_of(roots[:1])[0])
                found.left.append((task, body))
                found.rows_left[task] += len(roots)
            elif header.kind == Kind.READ:
                found.left.append((header.source, body))
            else:
                found.outcomes.append(chunk.read_runs(header, body))
        return found


def merged(outcomes: Sequence[Outcome]) -> Outcome:
    """Returns outcomes of several ackers as one, by root."""
    if not outcomes:
        return Outcome(np.empty(0, np.uint64), np.empty(0, np.uint8))
    roots = np.concatenate([outcome.roots for outcome in outcomes])
    codes = np.concatenate([outcome.codes for outcome in outcomes])
    order = np.argsort(roots, kind="stable")
    return Outcome(roots[order], codes[order])
