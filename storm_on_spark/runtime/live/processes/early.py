"""A live process that a driver starts beside Spark: a new topology executes tuples while Spark still starts.

What it executes is in the spout logs and in the file of rounds before any spout is told, so Spark's first micro-batch
takes it over as any other, or executes the same rounds again if the process is gone by then. A topology that has been
committed before waits for Spark, which has its state.
"""

from __future__ import annotations

import logging
import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable
from typing import Final

from storm_on_spark.plan.live_homes import processes_of
from storm_on_spark.plan.settings import LiveSettings
from storm_on_spark.runtime.batches.offsets import Offset
from storm_on_spark.runtime.live.client import LiveClient
from storm_on_spark.runtime.live.conduct import BEGINNING
from storm_on_spark.runtime.live.messages import Adopt
from storm_on_spark.runtime.run.spec import RunSpec

log = logging.getLogger(__name__)

_ASK_SECS: Final = 0.02
"""How often the process is asked until it has taken the tasks."""
_LOOK_SECS: Final = 0.2
"""How often spouts that open, or are restarted, are told of it."""
_IDLE_SECS: Final = 1.0
"""How often the process is looked at once Spark's micro-batches take what it executes."""
_SETTLE_SECS: Final = 30.0
"""How long Spark's first micro-batch waits at most for a process that has not taken the tasks."""
_FIRST_SECS: Final = 5.0
"""How long Spark's start waits at most for a process that has not taken the tasks."""
_BEGUN_SECS: Final = 0.5
"""The same for the first messages, once it has."""
_END_SECS: Final = 5.0


class EarlyTasks:
    """The first live process of a new topology, until the topology ends.

    Args:
        client: to the live process of the run.
        spec: the run.
        announce: tells the process the time, and spouts of the process; may be called from any thread.
        settled: called once the process has the tasks, or won't have them: what spouts emit before only waits.
    """

    def __init__(
        self, client: LiveClient, spec: RunSpec, announce: Callable[[], object], settled: Callable[[], None]
    ) -> None:
        self._client = client
        self._spec = spec
        self._announce = announce
        self._on_settled = settled
        self._barrier_secs = LiveSettings.of(spec.plan.conf).checkpoint_ms / 1000
        #: Set once the process has the tasks, or won't have them any more.
        self._settled = threading.Event()
        #: Set once Spark's micro-batches ask for barriers.
        self._handed_over = threading.Event()
        self._over = threading.Event()
        self._process: subprocess.Popen[bytes] | None = None
        # The kernel ends the process with the thread that started it, so that thread lives as long.
        self._thread = threading.Thread(target=self._run, name="live-early", daemon=True)

    def start(self) -> None:
        """Starts the process; returns at once."""
        self._thread.start()

    def go_first(self, begun: Callable[[], bool]) -> None:
        """Returns when Spark may start, which takes all cores of a small machine: the first messages come before it.

        Args:
            begun: whether a message has been acked.
        """
        if self._settled.wait(_FIRST_SECS):
            until = time.monotonic() + _BEGUN_SECS
            while not begun() and time.monotonic() < until:
                time.sleep(_ASK_SECS)

    def hand_over(self) -> None:
        """Returns when Spark's first micro-batch may come: the process has the tasks, or there is none."""
        if not self._settled.wait(_SETTLE_SECS):
            log.warning("the live process was not ready in %.0f s, so Spark's workers start another one", _SETTLE_SECS)
            self._over.set()
            self._thread.join()
        self._handed_over.set()

    def close(self) -> None:
        """Ends the process; returns when it is gone."""
        self._over.set()
        if self._thread.is_alive():
            self._thread.join()

    def _run(self) -> None:
        try:
            self._process = self._client.start(processes_of(self._spec.plan), beside=os.getpid())
            if self._process is not None:
                self._attend(self._process)
        except OSError as error:
            log.warning("tuples wait for Spark, as the live process can't be started: %s", error)
        finally:
            self._settle()

    def _settle(self) -> None:
        if not self._settled.is_set():
            self._on_settled()
            self._settled.set()

    def _attend(self, process: subprocess.Popen[bytes]) -> None:
        barrier_at = float("inf")
        while process.poll() is None and not self._over.is_set():
            if not self._settled.is_set():
                if self._adopted():
                    self._settle()
                    barrier_at = time.monotonic() + self._barrier_secs
                self._over.wait(_ASK_SECS)
                continue
            if not self._handed_over.is_set():
                self._announce()
                if time.monotonic() >= barrier_at:
                    # Tasks go back to the last barrier when a bolt raises; it should not be long ago.
                    self._client.barrier(Offset(), {})
                    barrier_at = time.monotonic() + self._barrier_secs
            self._over.wait(_IDLE_SECS if self._handed_over.is_set() else _LOOK_SECS)
        end(process)

    def _adopted(self) -> bool:
        if not self._client.listens():
            return False
        self._announce()
        return self._client.adopt(Adopt(self._spec.start_id, self._spec.dumps(), BEGINNING, Offset(), {}, ()))


def end(process: subprocess.Popen[bytes]) -> None:
    """Ends the first live process, and waits until it has."""
    if process.poll() is None:
        # It leaves in order, and the others end with it.
        process.send_signal(signal.SIGTERM)
    try:
        process.wait(_END_SECS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
