"""Spouts on the executors' machines: each spout host is kept by a Spark job of one task, which runs as long as it.

The task holds a slot of the executor, so Spark accounts for the processor that a spout uses, does not take the executor
for idle, and starts the task elsewhere when the executor is lost.
"""

from __future__ import annotations

import contextlib
import dataclasses
import logging
import pickle
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from pyspark import RDD, InheritableThread, SparkContext, TaskContext

from storm_on_spark.api.errors import SetupError
from storm_on_spark.runtime.processes.diagnostics.prints import MARK
from storm_on_spark.runtime.spouts.host_process import HostProcess
from storm_on_spark.runtime.spouts.messages import Message, Setup
from storm_on_spark.runtime.spouts.remote.host import RemoteHost
from storm_on_spark.runtime.spouts.remote.keeper import Place, keep_host
from storm_on_spark.runtime.spouts.remote.line import Line
from storm_on_spark.runtime.spouts.remote.listener import Hello, HostListener
from storm_on_spark.spark.running.failures import reason_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

log = logging.getLogger(__name__)

_END_SECONDS = 10.0
_OWN_END_SECONDS = 1.0
_ENCRYPTED = ("spark.network.crypto.enabled", "spark.ssl.rpc.enabled")


class ExecutorSpouts:
    """Makes the spout hosts of one run, on executors.

    Args:
        spark: the session.
        name: the topology's.
        start_id: unique for this start.
        hosts: how many there will be.

    Raises:
        SetupError: the session's connections are encrypted, or its driver's address is not one of this machine.
    """

    def __init__(self, spark: SparkSession, name: str, start_id: str, hosts: int) -> None:
        self._context = spark.sparkContext
        conf = self._context.getConf()
        for key in _ENCRYPTED:
            if conf.get(key, "false") == "true":
                raise SetupError(
                    f"topology.spouts.placement: executors can't be used with {key}: what spouts and driver send each "
                    "other is authenticated, but not encrypted; set topology.spouts.placement to driver"
                )
        self._name = name
        self._group = f"storm-spouts-{start_id}"
        self._count = hosts
        driver = conf.get("spark.driver.host")
        assert driver is not None, "a running context has an address"
        bind = conf.get("spark.driver.bindAddress", driver)
        #: Whether Spark asks for more executors when there are too few.
        self._grows = conf.get("spark.dynamicAllocation.enabled", "false") == "true"
        #: Held while a machine is chosen.
        self._choosing = threading.Lock()
        self._hosts: list[RemoteHost] = []
        self._jobs: list[_Job] = []
        try:
            self._listener = HostListener(bind or driver, self._on_host)
        except OSError as error:
            raise SetupError(
                f"the driver can't listen for spout hosts on {bind!r} (spark.driver.bindAddress): {error}"
            ) from error
        ours = conf.get("spark.python.daemon.module") == "storm_on_spark.spark.worker_daemon"
        mark = MARK.decode() if ours else ""
        secret = self._listener.secret.hex()
        self._place = Place(0, driver, self._listener.port, secret, mark)

    def host(
        self,
        tasks: Sequence[int],
        setup: Callable[[], Setup],
        on_message: Callable[[Message], None],
        on_gone: Callable[[HostProcess, str], float | None],
    ) -> HostProcess:
        """Returns a host for these tasks; see `HostProcess`."""
        job = _Job(self, len(self._jobs), f"{self._group}-{len(self._jobs)}")
        host = RemoteHost(job, tasks, setup, on_message, on_gone)
        self._jobs.append(job)
        self._hosts.append(host)
        return host

    @property
    def hosts(self) -> Sequence[RemoteHost]:
        """The hosts that there are."""
        return tuple(self._hosts)

    def close(self) -> None:
        """Takes no more calls; the hosts must have been stopped."""
        self._listener.close()

    def no_room(self) -> str:
        """Returns why no host may take a task slot; empty if one may: micro-batches need one at least."""
        if self._grows:
            return ""
        scala: Any = self._context._jsc.sc()  # noqa: SLF001 # PySpark has no way to the number of slots
        slots = int(scala.maxNumConcurrentTasks(scala.resourceProfileManager().defaultResourceProfile()))
        if slots > self._count:
            return ""
        return (
            f"{self._count} spout hosts and the micro-batches need {self._count + 1} task slots, Spark has {slots}: "
            "give it more cores (spark.cores.max, spark.executor.cores), or set topology.workers to fewer hosts, or "
            "topology.spouts.placement to driver"
        )

    def choose_machine(self, job: _Job) -> None:
        """Chooses a machine with the fewest of the other hosts, of those that have executors; none without any."""
        machines = sorted(set(self._machines()))
        # Hosts ask on separate threads, all at once.
        with self._choosing:
            taken = [other.machine for other in self._jobs if other is not job]
            job.machine = min(machines, key=taken.count) if machines else None

    def _machines(self) -> list[str]:
        scala: Any = self._context._jsc.sc()  # noqa: SLF001 # PySpark doesn't say which executors there are
        driver = scala.env().blockManager().blockManagerId().port()
        executors = scala.statusTracker().getExecutorInfos()
        return [str(executor.host()) for executor in executors if executor.port() != driver]

    def cancel(self, job: _Job) -> None:
        """Ends a host's Spark job."""
        self._context.cancelJobGroup(job.group)

    def run(self, job: _Job) -> None:
        """Runs the job of a host on the calling thread; returns when that has been stopped.

        Raises:
            Exception: Spark's, or py4j's.
        """
        context, machine = self._context, job.machine
        context.setJobGroup(job.group, f"spout host {job.number} of topology {self._name}", interruptOnCancel=True)
        # A separate pool, where Spark shares slots out fairly among pools.
        context.setLocalProperty("spark.scheduler.pool", job.group)
        place = dataclasses.replace(self._place, number=job.number)
        task = _one_task(context, machine).mapPartitions(lambda _: _kept(place))
        task.collect()

    def _on_host(self, line: Line, hello: Hello) -> None:
        if hello.number < len(self._hosts):
            self._hosts[hello.number].answer(line, hello)
        else:
            line.close()


class _Job:
    """The Spark job that keeps one host's process.

    Args:
        spouts: all of the run.
        number: which host.
        group: the job's group, which no other job has.
    """

    def __init__(self, spouts: ExecutorSpouts, number: int, group: str) -> None:
        self._spouts = spouts
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
            reason = self._spouts.no_room()
            if reason:
                if running:
                    # Waiting for a slot, it would take one that the micro-batches need.
                    self._spouts.cancel(self)
                return reason
            if not running:
                self._spouts.choose_machine(self)
                self._thread = InheritableThread(target=self._run, name=f"spout-job-{self.number}", daemon=True)
                self._thread.start()
        except Exception as error:  # py4j's: the JVM is gone
            return f"Spark is gone: {type(error).__name__}"
        return self._failure

    def end(self) -> None:
        """Ends the job, and with it the process; returns when Spark has taken note of that."""
        self._ending = True
        thread = self._thread
        if thread is None:
            return
        # By itself, where the driver has just stopped the host's process.
        thread.join(_OWN_END_SECONDS)
        if not thread.is_alive():
            return
        with contextlib.suppress(Exception):  # the JVM is gone, and the job with it
            self._spouts.cancel(self)
        thread.join(_END_SECONDS)

    def _run(self) -> None:
        try:
            self._spouts.run(self)
        except Exception as error:
            if not self._ending:
                self._failure = f"Spark's job for it failed: {reason_of(str(error))}"
                log.debug("the job of spout host %d ended: %s", self.number, error)


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
