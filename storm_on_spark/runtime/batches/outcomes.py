"""Outcomes of messages, as the ackers of a micro-batch report them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from storm_on_spark.runtime.codec import chunk
from storm_on_spark.runtime.tracking.acker import Outcome


def read_outcome(body: bytes) -> Outcome:
    """Returns what an OUTCOME chunk holds."""
    return Outcome(*chunk.read_outcome(chunk.read_header(body), body))


def merged(outcomes: Sequence[Outcome]) -> Outcome:
    """Returns outcomes of several ackers as one, by root."""
    roots = np.concatenate([outcome.roots for outcome in outcomes])
    codes = np.concatenate([outcome.codes for outcome in outcomes])
    order = np.argsort(roots, kind="stable")
    return Outcome(roots[order], codes[order])
