"""The current micro-batch, for people who watch: what the coordinator and the sink know of it."""

from __future__ import annotations

import time
from collections.abc import Callable

from storm_on_spark.api.info import ComponentAtWork, MicroBatchInfo, RepetitionInfo
from storm_on_spark.runtime.bolts.watching.at_work import clear_work, read_repetition, read_work
from storm_on_spark.runtime.storage import Folder

_NOTES_SECS = 1.0
"""No worker has written anything down before."""


class BatchAtHand:
    """Knows whether Spark prepares a micro-batch, runs one, or has nothing to do.

    Args:
        folder: the topology's own folder in the checkpoint, with the notes of workers.
        others: whether Spark has its own sources, which it asks beside ours.
        now: monotonic seconds.
    """

    def __init__(self, folder: Folder, *, others: bool, now: Callable[[], float] = time.monotonic) -> None:
        self._folder = folder
        self._others = others
        self._now = now
        #: The number of the micro-batch that runs, None while it is prepared, and since when; None if nothing is to do.
        self._at_hand: tuple[int | None, float] | None = None, now()
        self._first = True
        #: Questions in a row to which our source had nothing new.
        self._quiet = 0

    def planned(self) -> None:
        """Notes that our source has something to do; Spark prepares a micro-batch."""
        self._quiet, self._at_hand = 0, (None, self._now())

    def nothing_new(self) -> None:
        """Notes that our source has nothing to do.

        What sources of Spark's own have is known when it asks a second time: it has asked all of them in between.
        """
        self._quiet += 1
        if self._quiet > self._others:
            self._at_hand = None

    def began(self, number: int) -> None:
        """Notes that Spark runs a micro-batch."""
        self._at_hand = number, self._now()

    def ended(self) -> None:
        """Notes that the micro-batch has ended; Spark commits it."""
        had, self._at_hand = self._at_hand, None
        self._first, self._quiet = False, 0
        if had is not None and self._now() - had[1] >= _NOTES_SECS:
            clear_work(self._folder)

    def info(self) -> MicroBatchInfo | None:
        """Returns what is in hand now."""
        if (at_hand := self._at_hand) is None:
            return None
        number, since = at_hand
        return MicroBatchInfo(self._now() - since, number, self._first)

    def at_work(self, *, live: bool) -> tuple[ComponentAtWork, ...]:
        """Returns how far bolts are that take long.

        Args:
            live: whether tuples are also executed between micro-batches.
        """
        number, since = self._at_hand or (None, self._now())
        if number is None:
            return read_work(self._folder, None) if live else ()
        return read_work(self._folder, number) if self._now() - since >= _NOTES_SECS else ()

    def repetition(self) -> RepetitionInfo | None:
        """Returns how far the micro-batch is with what it executes again."""
        number, since = self._at_hand or (None, self._now())
        return read_repetition(self._folder) if number is not None and self._now() - since >= _NOTES_SECS else None
