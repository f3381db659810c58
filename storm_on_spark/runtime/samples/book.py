"""The samples that the driver has gathered: the last ones in memory, and in a file of bounded size."""

from __future__ import annotations

import contextlib
import os
import threading
from collections import deque
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from storm_on_spark.runtime.samples.events import MOST_LINE, TupleEvent, decoded, encoded
from storm_on_spark.runtime.samples.sampler import MOST_A_FLUSH
from storm_on_spark.runtime.samples.switch import FOLDER, RATES, changed, checked_percent, write_rates
from storm_on_spark.runtime.storage import Folder, as_storage, inside

MOST_KEPT: Final = 4000
"""Samples in memory: some 2 MB."""
FILE_BYTES: Final = 1 << 20
"""A file that is larger becomes the one before it, and the one before that goes."""
SAMPLES_LOG: Final = "events.log"
"""The file of a driver in a cluster, beside its log; Storm's name."""
_MOST_FILES: Final = 400
"""Objects that are read at one time."""


class SampleBook:
    """What is sampled, and what was.

    Args:
        folder: the topology's own folder in the checkpoint.
        file: where samples are added, one on a line; None for memory alone.
    """

    def __init__(self, folder: Folder, file: Path | None = None) -> None:
        self._folder = folder
        self.file = file
        self._lock = threading.Lock()
        self._kept: deque[TupleEvent] = deque(maxlen=MOST_KEPT)
        #: Those that event loggers have still to get; None if there are none.
        self._news: deque[TupleEvent] | None = None
        self._rates: dict[str, float] = {}
        self._levels: dict[str, str] = {}
        #: Whether anything was sampled since the start.
        self._ever = False

    @property
    def rates(self) -> dict[str, float]:
        """Percentages by component; `*` stands for the others."""
        with self._lock:
            return dict(self._rates)

    @property
    def ever(self) -> bool:
        """Whether anything was sampled since the start."""
        return self._ever

    def set(self, component: str, percent: float) -> None:
        """Samples a share of the tuples of a component, or of all for an empty name; 0 for none.

        Raises:
            ValueError: it is not a percentage.
            OSError: the checkpoint can't be written.
        """
        self.set_all(changed(self.rates, component, checked_percent(percent)))

    def set_all(self, rates: dict[str, float]) -> None:
        """Samples these percentages, and nothing else.

        Raises:
            OSError: the checkpoint can't be written.
        """
        with self._lock:
            if rates == self._rates and self._ever:
                return
            if rates or self._ever:
                write_rates(self._folder, rates, self._levels)
            self._rates, self._ever = dict(rates), self._ever or bool(rates)

    def set_levels(self, levels: Mapping[str, str]) -> None:
        """Tells processes on other machines which levels loggers have; they learn it where they look what to sample.

        Args:
            levels: logger -> level, where levels are changed.

        Raises:
            OSError: the checkpoint can't be written.
        """
        with self._lock:
            if levels != self._levels:
                write_rates(self._folder, self._rates, levels)
                self._levels = dict(levels)

    def forget(self) -> None:
        """Switches off what a start before this one sampled, and removes what it left."""
        storage = as_storage(inside(self._folder, FOLDER))
        with contextlib.suppress(OSError):
            for found in storage.list_folder():
                storage.delete(found.name)

    def follow(self) -> deque[TupleEvent]:
        """Returns where samples are put from now on, beside what is kept; the oldest go if nobody takes them out."""
        self._news = deque(maxlen=MOST_KEPT)
        return self._news

    def gather(self) -> list[TupleEvent]:
        """Takes over what processes have put down since; returns what is kept, oldest first."""
        with self._lock:
            if self._ever:
                self._take_over()
            return sorted(self._kept, key=lambda event: event.time)

    def _take_over(self) -> None:
        storage = as_storage(inside(self._folder, FOLDER))
        new: list[TupleEvent] = []
        with contextlib.suppress(OSError):
            for found in storage.list_folder()[:_MOST_FILES]:
                if found.name.rpartition("/")[2] == RATES:
                    continue
                with contextlib.suppress(FileNotFoundError):
                    new += decoded(storage.read(found.name, 0, MOST_A_FLUSH * MOST_LINE))
                storage.delete(found.name)
        self._kept += new
        if self._news is not None:
            self._news += sorted(new, key=lambda event: event.time)
        if new and self.file is not None:
            self._write(self.file, encoded(sorted(new, key=lambda event: event.time)))

    def _write(self, path: Path, data: bytes) -> None:
        with contextlib.suppress(OSError):
            if path.exists() and path.stat().st_size > FILE_BYTES:
                path.replace(path.with_name(path.name + ".1"))
            with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600), "ab") as file:
                file.write(data)
