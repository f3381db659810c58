"""Processes on the executors' machines, each kept by a Spark job of one task, which runs as long as it.

The task holds a slot of the executor, so Spark accounts for the processor that the process uses, does not take the
executor for idle, and starts the task elsewhere when the executor is lost.
"""

from __future__ import annotations

import contextlib
import dataclasses
import logging
import pickle
import secrets
import threading
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from pyspark import RDD, InheritableThread, SparkContext, TaskContext

from storm_on_spark.api.errors import SetupError
from storm_on_spark.runtime.processes.diagnostics.prints import MARK
from storm_on_spark.runtime.processes.lines.line import DEAD_SECS, SECRET_BYTES
from storm_on_spark.runtime.processes.lines.listener import listen_at
from storm_on_spark.runtime.spouts.remote.keeper import Place, keep_host
from storm_on_spark.spark.running.failures import reason_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

log = logging.getLogger(__name__)

_END_SECONDS = 10.0
_OWN_END_SECONDS = 1.0
_ENCRYPTED = ("spark.network.crypto.enabled", "spark.ssl.rpc.enabled")


def encrypted_by(spark: SparkSession) -> str:
    """Returns the setting by which a session's connections are encrypted; "" if they aren't."""
    conf = spark.sparkContext.getConf()
    return next((key for key in _ENCRYPTED if conf.get(key, "false") == "true"), "")


@dataclasses.dataclass(frozen=True)
class Kind:
    """What the jobs keep, in words and for the process itself."""

    name: str
    """In names of job groups."""
    one: str
    """One of them, in a sentence."""
    many: str
    """Several."""
    module: str
    """What a process executes."""
    asked_by: str
    """The setting that asks for them."""
    fewer: str
    """How to ask for fewer."""
    none: str
    """How to do without."""
    dead_secs: int = DEAD_SECS
    """How long a machine may be silent before its connection counts as broken."""
    stopped_secs: float | None = None
    """How long a process may be stopped before it is ended."""


class ExecutorJobs:
    """The jobs of one run, and the port at which the processes call.

    Args:
        spark: the session.
        name: the topology's.
        start_id: unique for this start.
        kind: what they keep.
        count: how many there will be.

    Raises:
        SetupError: the session's connections are encrypted, or its driver's address is not one of this machine.
    """

    def __init__(self, spark: SparkSession, name: str, start_id: str, kind: Kind, count: int) -> None:
        self._context = spark.sparkContext
        conf = self._context.getConf()
        if key := encrypted_by(spark):
            raise SetupError(
                f"{kind.asked_by} can't be used with {key}: what {kind.many} and driver send each other is "
                f"authenticated, but not encrypted; {kind.none}"
            )
        self._name = name
        self._kind = kind
        self._group = f"storm-{kind.name}-{start_id}"
        self._count = count
        driver = conf.get("spark.driver.host")
        assert driver is not None, "a running context has an address"
        bind = conf.get("spark.driver.bindAddress", driver) or driver
        #: Whether Spark asks for more executors when there are too few.
        self._grows = conf.get("spark.dynamicAllocation.enabled", "false") == "true"
        #: Held while a machine is chosen.
        self._choosing = threading.Lock()
        self._jobs: list[Job] = []
        try:
            self.listener = listen_at(bind)
        except OSError as error:
            raise SetupError(
                f"the driver can't listen for {kind.many} on {bind!r} (spark.driver.bindAddress): {error}"
            ) from error
        self.secret = secrets.token_bytes(SECRET_BYTES)
        """What callers must know."""
        ours = conf.get("spark.python.daemon.module") == "storm_on_spark.spark.worker_daemon"
        mark = MARK.decode() if ours else ""
        port = self.listener.getsockname()[1]
        self.place = Place(
            0, driver, port, self.secret.hex(), mark, kind.module, kind.one, kind.dead_secs, kind.stopped_secs
        )
        """Where a process calls, but for its number."""

    def job(self, number: int) -> Job:
        """Returns the job of another process, which is not started.

        Args:
            number: of the process.
        """
        job = Job(self, number, f"{self._group}-{number}")
        self._jobs.append(job)
        return job

    def no_room(self) -> str:
        """Returns why no process may take a task slot; empty if one may: micro-batches need one at least."""
        if self._grows:
            return ""
        scala: Any = self._context._jsc.sc()  # noqa: SLF001 # PySpark has no way to the number of slots
        slots = int(scala.maxNumConcurrentTasks(scala.resourceProfileManager().defaultResourceProfile()))
        if slots > self._count:
            return ""
        return (
            f"{self._count} {self._kind.many} and the micro-batches need {self._count + 1} task slots, Spark has "
            f"{slots}: give it more cores (spark.cores.max, spark.executor.cores), "
            f"or {self._kind.fewer}, or {self._kind.none}"
        )

    def choose_machine(self, job: Job) -> None:
        """Chooses a machine with the fewest of the other processes, of those that have executors; none without any."""
        machines = sorted(set(self._machines()))
        # Jobs ask on separate threads, all at once.
        with self._choosing:
            taken = [other.machine for other in self._jobs if other is not job]
            job.machine = min(machines, key=taken.count) if machines else None

    def _machines(self) -> list[str]:
        scala: Any = self._context._jsc.sc()  # noqa: SLF001 # PySpark doesn't say which executors there are
        driver = scala.env().blockManager().blockManagerId().port()
        executors = scala.statusTracker().getExecutorInfos()
        return [str(executor.host()) for executor in executors if executor.port() != driver]

    def cancel(self, job: Job) -> None:
        """Ends a Spark job."""
        self._context.cancelJobGroup(job.group)

    def run(self, job: Job) -> None:
        """Runs a job on the calling thread; returns when that has been stopped.

        Raises:
            Exception: Spark's, or py4j's.
        """
        context, machine = self._context, job.machine
        context.setJobGroup(
            job.group, f"{self._kind.one} {job.number} of topology {self._name}", interruptOnCancel=True
        )
        # A separate pool, where Spark shares slots out fairly among pools.
        context.setLocalProperty("spark.scheduler.pool", job.group)
        place = dataclasses.replace(self.place, number=job.number)
        task = _one_task(context, machine).mapPartitions(lambda _: _kept(place))
        task.collect()


class Job:
    """The Spark job that keeps one process.

    Args:
        jobs: all of the run.
        number: of the process.
        group: the job's group, which no other job has.
    """

    def __init__(self, jobs: ExecutorJobs, number: int, group: str) -> None:
        self._all = jobs
        self.number = number
        self.group = group
        #: The machine on which it was to run.
        self.machine: str | None = None
        self._thread: threading.Thread | None = None
        #: Why it ended the last time, if it failed.
        self._failure = ""
        self._ending = False

    def ensure(self) -> str:
        """Starts the job, unless it runs; returns why it can't be, or why it failed the last time."""
        running = self._thread is not None and self._thread.is_alive()
        try:
            reason = self._all.no_room()
            if reason:
                if running:
                    # Waiting for a slot, it would take one that the micro-batches need.
                    self._all.cancel(self)
                return reason
            if not running:
                self._all.choose_machine(self)
                self._thread = InheritableThread(target=self._run, name=f"executor-job-{self.number}", daemon=True)
                self._thread.start()
        except Exception as error:  # py4j's: the JVM is gone
            return f"Spark is gone: {type(error).__name__}"
        return self._failure

    def end(self, own_secs: float = _OWN_END_SECONDS) -> None:
        """Ends the job, and with it the process; returns when Spark has taken note of that.

        Args:
            own_secs: how long the process may take to end by itself, where the driver has just told it to.
        """
        self._ending = True
        thread = self._thread
        if thread is None:
            return
        thread.join(own_secs)
        if not thread.is_alive():
            return
        with contextlib.suppress(Exception):  # the JVM is gone, and the job with it
            self._all.cancel(self)
        thread.join(_END_SECONDS)

    def _run(self) -> None:
        try:
            self._all.run(self)
        except Exception as error:
            if not self._ending:
                self._failure = f"Spark's job for it failed: {reason_of(str(error))}"
                log.debug("the job %s ended: %s", self.group, error)


def _one_task(spark_context: SparkContext, machine: str | None) -> RDD[Any]:
    """Returns an RDD of one partition, which Spark computes on `machine` if it can."""
    if machine is None:
        return spark_context.parallelize([0], 1)
    jvm: Any = spark_context._jvm  # noqa: SLF001 # PySpark can't say where a partition should be computed
    scala: Any = spark_context._jsc.sc()  # noqa: SLF001
    pickled = jvm.scala.Tuple2(bytearray(pickle.dumps([0])), jvm.PythonUtils.toSeq([machine]))
    kind = jvm.scala.reflect.ClassTag.apply(jvm.java.lang.Class.forName("[B"))
    placed = scala.makeRDD(jvm.PythonUtils.toSeq([pickled]), kind)
    return RDD(jvm.org.apache.spark.api.java.JavaRDD.fromRDD(placed, kind), spark_context)


def _kept(place: Place) -> Iterator[Any]:
    context = TaskContext.get()
    assert context is not None
    keep_host(place, context.taskAttemptId())
    return iter(())
