"""The local bus: journals of files, in a folder that all containers share."""

from __future__ import annotations

import contextlib
import shutil
import time
from collections.abc import Callable
from pathlib import Path

from storm_on_spark.xd.bus.journal import Journal
from storm_on_spark.xd.bus.journals import JournalBus
from storm_on_spark.xd.bus.port import Alive


class LocalBus(JournalBus):
    """The local bus.

    Args:
        folder: that all containers share.
        sync: whether journals must survive the loss of the machine.
        most_bytes: that a journal keeps for those that have not read it yet.
        keep_secs: how long the journals of a destroyed stream stay.
        exists: whether a stream, by its name on the bus, was not destroyed.
        alive: whether an instance may go on.
        cluster: see `JournalBus`.
        clock: seconds.
    """

    def __init__(
        self,
        folder: Path,
        *,
        most_bytes: int,
        sync: bool = False,
        keep_secs: float = 600.0,
        exists: Callable[[str], bool] = lambda stream: True,
        alive: Alive = lambda name: True,
        cluster: Callable[[], str] = lambda: "",
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        super().__init__(
            folder,
            lambda place: Journal(place, sync=sync),
            most_bytes=most_bytes,
            keep_secs=keep_secs,
            exists=exists,
            alive=alive,
            sync=sync,
            cluster=cluster,
            clock=clock,
        )

    def remove(self, stream: str) -> None:
        """See `JournalBus`."""
        assert isinstance(self.folder, Path)
        # Another container that ran the stream may just be removing it.
        with contextlib.suppress(FileNotFoundError):
            shutil.rmtree(self.folder / stream)
