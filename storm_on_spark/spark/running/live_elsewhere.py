"""Real time where executors may be on other machines: the first live process is here, further ones are on executors."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Final

from storm_on_spark.api.streams.constants import SYSTEM_COMPONENT, SYSTEM_TASK
from storm_on_spark.runtime.live.client import LiveClient
from storm_on_spark.runtime.live.remote.asking import DEAD_SECS
from storm_on_spark.runtime.live.remote.leader import KeptLeader
from storm_on_spark.runtime.processes.lines.calls import Address
from storm_on_spark.runtime.reports.report import Failure
from storm_on_spark.spark.running.executor_jobs import ExecutorJobs, Job, Kind, encrypted_by

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_KIND = Kind(
    "live",
    "live process",
    "live processes",
    "storm_on_spark.runtime.live.remote.process",
    "topology.profile: realtime on several machines",
    "set topology.workers to fewer live processes",
    "choose another topology.profile",
    DEAD_SECS,
    DEAD_SECS,
)
_LOOK_SECS: Final = 1.0
"""How often it is checked whether the jobs run."""
_PATIENCE_SECS: Final = 30.0
"""How long a job may have no place before a person is told."""


def why_batches_elsewhere(spark: SparkSession) -> str:
    """Returns why tuples wait for micro-batches in a session whose executors may be on other machines; "" if not."""
    if key := encrypted_by(spark):
        return f"{key} is set, and what live processes on several machines send each other is not encrypted"
    return ""


class LiveElsewhere:
    """The live processes of one run, between `open` and `close`.

    Args:
        spark: the session.
        name: the topology's.
        start_id: unique for this start.
        processes: how many there are: the first is beside the driver, the others are on executors.

    Raises:
        SetupError: the session's connections are encrypted, or its driver's address is not one of this machine.
    """

    def __init__(self, spark: SparkSession, name: str, start_id: str, processes: int) -> None:
        self._processes = processes
        self._jobs = ExecutorJobs(spark, name, start_id, _KIND, processes - 1)
        self._over = threading.Event()
        self._thread: threading.Thread | None = None
        self._leader: KeptLeader | None = None
        self._kept: list[Job] = []
        place = self._jobs.place
        self.address = Address(place.driver, place.port, self._jobs.secret, DEAD_SECS)
        """Where the first one hears calls of other machines."""

    def open(self, client: LiveClient, report: Callable[[Iterable[Failure]], object]) -> None:
        """Starts all of them; returns at once.

        Args:
            client: to the first live process.
            report: takes errors of the topology that don't end it: that a job has no place.
        """
        self._leader = KeptLeader(client, self._processes, (self._jobs.listener, self._jobs.secret))
        self._leader.__enter__()
        self._kept = [self._jobs.job(number) for number in range(1, self._processes)]
        self._thread = threading.Thread(target=self._run, args=(report,), name="live-jobs", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Ends all of them; returns when they are gone."""
        self._over.set()
        if self._thread is not None:
            self._thread.join()
        if self._leader is not None:
            self._leader.__exit__()
        for job in self._kept:
            job.end(own_secs=0)
        self._jobs.listener.close()

    def _run(self, report: Callable[[Iterable[Failure]], object]) -> None:
        waited = dict.fromkeys(self._kept, 0.0)
        while not self._over.wait(_LOOK_SECS):
            for job in self._kept:
                reason = job.ensure()
                waited[job] = waited[job] + _LOOK_SECS if reason else 0.0
                if _PATIENCE_SECS <= waited[job] < _PATIENCE_SECS + _LOOK_SECS:
                    sentence = f"tuples wait for micro-batches, as live process {job.number} has no place: {reason}"
                    report([Failure(SYSTEM_COMPONENT, SYSTEM_TASK, sentence, fatal=False)])
