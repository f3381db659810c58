"""The identity of a batch."""

from __future__ import annotations

from typing import NamedTuple


class TransactionAttempt(NamedTuple):
    """One attempt to process a batch; Storm's `TransactionAttempt`."""

    txid: int
    """Numbers batches from 1, in the order in which they are committed."""
    attempt: int
    """Counts attempts from 0."""
