"""The windows of a running topology, and the file beside the checkpoint from which the next start continues them.

The file is written in the background, so rarely that it takes half a per cent of a processor at most. A process that is
killed loses what was counted since, usually a second; what runs again is not counted twice. A file that can't be read
or written never ends a topology: the log says so once, and counting continues.

Each file is named by the number of its writer among all that ever ran on the checkpoint. The highest one counts, so a
driver that lives on after it has lost the topology changes nothing.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Final

from storm_on_spark.api.info import ALL_TIME, WindowInfo
from storm_on_spark.metrics.amounts import FORMER_TASK, Amounts, Name, moved
from storm_on_spark.metrics.history import Saved, dump, load
from storm_on_spark.metrics.views import windows_info
from storm_on_spark.metrics.windows import Timeline, Windows
from storm_on_spark.runtime.storage import Folder, as_storage
from storm_on_spark.runtime.storage.background import in_background
from storm_on_spark.runtime.storage.interface import Storage

log = logging.getLogger(__name__)

_SAVE_SECS: Final = 1.0
_TIMES_ITS_CPU: Final = 200
_TIMES_ITS_TIME: Final = 10
"""A file is written after this multiple of the time that the last one took."""
_SUFFIX: Final = ".metrics"


class Recorder:
    """Counts over windows. Any thread may use it.

    Args:
        folder: where the file is; None for windows that end with the process.
        monotonic: seconds.
        wall: seconds since the epoch, read once.
    """

    def __init__(
        self,
        folder: Folder | None = None,
        monotonic: Callable[[], float] = time.monotonic,
        wall: Callable[[], float] = time.time,
    ) -> None:
        self._storage: Storage | None = None if folder is None else as_storage(folder)
        self._monotonic = monotonic
        self._lock = threading.Lock()
        self._timeline = Timeline(wall(), monotonic)
        self._windows = Windows(self._timeline.now())
        #: The last micro-batch that is counted.
        self._batch = -1
        self._owner = 0
        self._number = 0
        #: Files to remove when the next one is written.
        self._old: list[str] = []
        self._due: float | None = None
        self._saving = False
        self._changed = False
        self._said = False

    def open(self, owner: int, committed: int | None, tasks: Mapping[str, Iterable[int]]) -> None:
        """Continues the windows of the last process.

        Args:
            owner: the number of this process among all that ever ran on the checkpoint.
            committed: the last micro-batch that Spark has committed; None if all were.
            tasks: of each component.
        """
        self._owner = owner
        self._due = self._monotonic()
        if self._storage is None:
            return
        try:
            names = [found.name for found in self._storage.list_folder() if found.name.endswith(_SUFFIX)]
        except OSError as error:
            self._say("can't be listed", error)
            return
        self._old = names
        for name in sorted(names, reverse=True):
            try:
                saved = load(self._storage.read(name))
            except (OSError, ValueError) as error:
                self._say(f"{name} can't be read, so what it counted is missing in windows", error)
                continue
            self._continue(saved, committed, tasks)
            return

    def _continue(self, saved: Saved, committed: int | None, tasks: Mapping[str, Iterable[int]]) -> None:
        present = {component: frozenset(numbers) for component, numbers in tasks.items()}
        with self._lock:
            self._windows, self._batch = saved.windows, saved.batch
            self._timeline = Timeline(self._timeline.now(), self._monotonic, saved.windows.seen)
            known = {(key[0], key[1]) for key in self._windows.ever}
            if any(task != FORMER_TASK and task not in present.get(name, ()) for name, task in known):
                self._windows.map(lambda amounts: moved(amounts, present))
        if committed is not None and saved.batch > committed + 1:
            log.warning(
                "the metrics are of micro-batch %d, and the checkpoint is older: of micro-batch %d. What runs again is "
                "counted again",
                saved.batch,
                committed,
            )
            self._batch = committed

    def count(self, component: str, task: int, amounts: Mapping[Name, int]) -> None:
        """Counts what a task reports."""
        if amounts:
            keyed = {(component, task, *name): amount for name, amount in amounts.items()}
            with self._lock:
                self._windows.add(keyed, self._timeline.now())
                self._changed = True

    def begin_batch(self, batch: int) -> bool:
        """Returns whether a micro-batch is to be counted: it is not if it was before."""
        with self._lock:
            new = batch > self._batch
            self._batch = max(batch, self._batch)
            return new

    def info(self, chosen: Iterable[str]) -> dict[str, WindowInfo]:
        """Returns what was counted in windows."""
        with self._lock:
            return windows_info(self._windows, self._timeline.now(), chosen)

    def ever(self) -> Amounts:
        """Returns all that was ever counted."""
        with self._lock:
            return self._windows.sums(ALL_TIME, self._timeline.now())

    # --- the file ---------------------------------------------------------------

    def save_if_due(self) -> None:
        """Writes the file in the background if it is time to."""
        with self._lock:
            if self._storage is None or self._due is None or self._saving or not self._changed:
                return
            if self._monotonic() < self._due:
                return
            self._saving = True
        in_background(self._save, "metrics")

    def close(self) -> None:
        """Writes the file for the last time."""
        with self._lock:
            due, self._due = self._due, None
        if due is not None and self._storage is not None and self._changed:
            self._save()

    def _save(self) -> None:
        began, cpu = self._monotonic(), time.thread_time()
        storage = self._storage
        assert storage is not None
        try:
            with self._lock:
                self._changed = False
                self._number += 1
                name = f"{self._owner:08d}-{self._number:010d}{_SUFFIX}"
                data = dump(Saved(self._windows, self._batch))
            storage.create(name, data)
            old, self._old = self._old, [name]
            for before in old:
                storage.delete(before)
        except OSError as error:
            self._say("can't be written, so a restart may not know of what was counted", error)
        spent, used = self._monotonic() - began, time.thread_time() - cpu
        with self._lock:
            self._saving = False
            if self._due is not None:
                self._due = self._monotonic() + max(_SAVE_SECS, _TIMES_ITS_CPU * used, _TIMES_ITS_TIME * spent)

    def _say(self, what: str, error: Exception) -> None:
        if not self._said:
            self._said = True
            url = "" if self._storage is None else self._storage.url
            log.warning("the metrics in %s: %s: %s", url, what, error)
