"""A thread of the driver that keeps the first live process running, where workers on other machines can't start it."""

from __future__ import annotations

import logging
import os
import socket
import threading
from typing import Final

from storm_on_spark.runtime.live.client import LiveClient
from storm_on_spark.runtime.live.processes.early import end

log = logging.getLogger(__name__)

_LOOK_SECS: Final = 0.5
"""How often a process that has ended is noticed, and started again."""


class KeptLeader:
    """The first live process of a run, for as long as the block lasts.

    Args:
        client: to the live process of the run.
        processes: number of live processes.
        door: where the others call it; see `LiveProcess`.
    """

    def __init__(self, client: LiveClient, processes: int, door: tuple[socket.socket, bytes]) -> None:
        self._client = client
        self._processes = processes
        self._door = door
        self._over = threading.Event()
        # The kernel ends the process with the thread that started it, so that thread lives as long.
        self._thread = threading.Thread(target=self._run, name="live-leader", daemon=True)

    def __enter__(self) -> KeptLeader:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _run(self) -> None:
        process = None
        while not self._over.is_set():
            if process is None or process.poll() is not None:
                try:
                    # None if one was started just now.
                    process = self._client.start(self._processes, os.getpid(), self._door)
                except OSError as error:
                    log.warning("tuples wait for micro-batches, as the live process can't be started: %s", error)
            self._over.wait(_LOOK_SECS)
        if process is not None:
            end(process)
