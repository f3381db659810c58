"""A driver without Spark: `python -m storm_on_spark.testing.simulated.driver`, as a supervisor starts it.

It takes part in the cluster as a real one does: it owns its topology, sends heartbeats and can be fenced. It only does
no work. So hundreds of topologies can be tried on one machine. Give its module to `Supervisor(conf, driver=...)`.

The topology's configuration sets its behaviour:

    simulated.tuples      it is complete after this many, at 100 a second; by default it never is
    simulated.fail        it fails to start, with this message
    simulated.hang        true: it stops beating once it runs
    simulated.deaf        true: it does not end when it is asked to
    simulated.child       true: it starts a process, which continues when it dies
"""

from __future__ import annotations

import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable
from concurrent.futures import Future
from pathlib import Path
from typing import Any

from storm_on_spark.api.errors import StormError
from storm_on_spark.api.info import TopologyInfo, TopologyStatus
from storm_on_spark.cluster.driver.begin import begin
from storm_on_spark.cluster.driver.main import Driver
from storm_on_spark.runtime.samples.book import SampleBook
from storm_on_spark.spark.checkpoint.stored import CheckpointFence

_RATE = 100.0


class SimulatedQuery:
    """The part of a `TopologyQuery` that a driver needs.

    Args:
        name: the topology's.
        conf: its configuration.
        active: whether it counts.
    """

    plan = None

    def __init__(self, name: str, conf: dict[str, Any], active: bool) -> None:
        self._name = name
        self._limit = float(conf.get("simulated.tuples", "inf"))
        self._active = active
        self._count = 0.0
        self._started = self._counted = time.monotonic()
        self._stopped = False
        #: Nothing executes tuples here, so requests for samples are only recorded.
        self._folder = tempfile.TemporaryDirectory()
        self.samples = SampleBook(Path(self._folder.name))

    @property
    def isActive(self) -> bool:  # noqa: N802 # as in Spark
        """Whether it has not ended."""
        return not self._stopped and self._tuples() < self._limit

    def activate(self) -> None:
        """Continues to count."""
        self._tuples()
        self._active = True

    def deactivate(self) -> None:
        """Stops counting."""
        self._tuples()
        self._active = False

    def stop(self) -> None:
        """Ends."""
        self._stopped = True

    def status_info(self, windows: Iterable[str] = ()) -> TopologyInfo:
        """Returns status and counters."""
        count = self._tuples()
        status: TopologyStatus = "ACTIVE" if self._active else "INACTIVE"
        if count >= self._limit:
            status = "COMPLETED"
        elif self._stopped:
            status = "KILLED"
        return TopologyInfo(self._name, status, time.monotonic() - self._started, int(count), int(count))

    def _tuples(self) -> float:
        now = time.monotonic()
        if self._active:
            self._count = min(self._limit, self._count + (now - self._counted) * _RATE)
        self._counted = now
        return self._count


class SimulatedDriver(Driver):
    """A driver that runs a `SimulatedQuery`."""

    def _start_spark(self, result: Future[Any]) -> None:
        result.set_result(None)

    def _load(self) -> Any:
        conf = self._spec.conf
        if conf.get("simulated.fail"):
            raise StormError(str(conf["simulated.fail"]))
        if conf.get("simulated.deaf"):
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
        if conf.get("simulated.child"):
            subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])

    def _start_query(self, compiled: Any, session: Any, fence: CheckpointFence) -> Any:
        if self._spec.conf.get("simulated.hang"):
            self._heart.step = "running"
            self._heart.beat()
            time.sleep(600)
        return SimulatedQuery(self._spec.name, self._spec.conf, self._active())

    def _end_spark(self) -> None:
        self._kill_others()


if __name__ == "__main__":
    SimulatedDriver(*begin()).run()
