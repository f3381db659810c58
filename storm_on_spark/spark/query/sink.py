"""The sink: one action per micro-batch."""

from __future__ import annotations

import contextlib
import logging
import secrets
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from py4j.java_gateway import JavaGateway, JavaObject
from py4j.protocol import Py4JError
from pyspark.java_gateway import ensure_callback_server_started
from pyspark.sql import DataFrame, SparkSession

from storm_on_spark.api.errors import CheckpointError, SetupError, StormError
from storm_on_spark.runtime.batches.coordinator import Coordinator
from storm_on_spark.runtime.batches.output import BatchOutput
from storm_on_spark.runtime.batches.written import WriteError, Written
from storm_on_spark.runtime.bolts.watching.stall import clear_notes, read_notes
from storm_on_spark.runtime.reports.report import Failure
from storm_on_spark.runtime.storage import Folder

log = logging.getLogger(__name__)


_LOOK_SECS = 10.0
_TOLD = "told by the topology"


class _NotTwice(logging.Filter):
    """Keeps py4j from logging what a `Sink` raised, with its stack: on a terminal that drowns the reason."""

    def filter(self, record: logging.LogRecord) -> bool:
        error = record.exc_info[1] if record.exc_info else None
        return error is None or _TOLD not in error.__dict__


logging.getLogger("py4j.clientserver").addFilter(_NotTwice())


_FD_SETSIZE = 1024
"""`select` takes files with lower numbers only (POSIX)."""
_opening = threading.Lock()
"""Held while the server for the JVM's calls starts: PySpark takes one that another thread still starts for ready."""


def open_callbacks(spark: SparkSession) -> None:
    """Makes sure that the JVM can call a `Sink` in this process.

    py4j waits for these calls with `select`. Where its socket has too high a number, its thread ends with an error
    that is logged nowhere, and a query's first micro-batch would wait for ever.

    Raises:
        SetupError: the process has too many open files.
    """
    gateway = spark.sparkContext._gateway  # noqa: SLF001 # there is no public way to it
    assert gateway is not None
    with _opening:
        first = gateway.__dict__.get("_callback_server") is None
        ensure_callback_server_started(gateway)  # type: ignore[no-untyped-call]
        if first:
            _set_token(gateway)
        number = gateway._callback_server.server_socket.fileno()  # noqa: SLF001
    if number >= _FD_SETSIZE:
        raise SetupError(
            f"this process has too many open files: Spark's calls into Python wait at file {number}, and py4j can only "
            f"do that below {_FD_SETSIZE}. Close files, or start the topology in a new process before they are opened."
        )


def _set_token(gateway: JavaGateway) -> None:
    """Gives both ends of the JVM's calls a token, so that no other process of this machine can make such calls.

    py4j has this token, but PySpark does not set it, and the JVM's end loses its own when PySpark names the port. It is
    set before the first call, so no connection is without it.
    """
    token = secrets.token_hex(32)
    server = JavaObject("GATEWAY_SERVER", gateway._gateway_client)  # noqa: SLF001 # as PySpark gets it
    try:
        field = gateway.jvm.java.lang.Class.forName("py4j.CallbackClient").getDeclaredField("authToken")
        field.setAccessible(True)
        field.set(server.getCallbackClient(), token)
    except Py4JError as error:
        log.warning("Other processes of this machine can call Spark's port in this one: py4j takes no token: %s", error)
        return
    gateway.callback_server_parameters.auth_token = token


class Sink:
    """Takes what comes out of the last stage: outcomes, carried tuples, reports, and what the driver is to write.

    Args:
        coordinator: receives outcomes and carried tuples.
        on_failure: called when the topology must end.
        folder: the topology's own folder in the checkpoint, where workers note that a bolt hung.
        written: what the driver writes to.
    """

    def __init__(
        self, coordinator: Coordinator, on_failure: Callable[[Failure], None], folder: Folder, written: Written
    ) -> None:
        self._coordinator = coordinator
        self._on_failure = on_failure
        self._folder = folder
        self._written = written
        #: When to look for workers' notes again, in a store, where that takes a round trip.
        self._look_at = 0.0

    def __call__(self, frame: DataFrame, batch: int) -> None:
        """Runs the micro-batch; what it raises keeps Spark from committing it."""
        self._coordinator.at_hand.began(batch)
        try:
            self._run(frame, batch)
        except Exception as error:
            # The error ends the query; the topology reports it.
            error.__dict__[_TOLD] = True
            raise
        finally:
            self._coordinator.at_hand.ended()

    def _run(self, frame: DataFrame, batch: int) -> None:
        with self._writing():
            self._written.begin(frame.sparkSession, batch)
        output = BatchOutput.of(bytes(row[1]) for row in frame.collect())
        # Spark looks up the caller of each RDD unless the thread says who it is, and `collect` takes back what it says:
        # a tenth of a small micro-batch's time on this thread.
        frame.sparkSession.sparkContext._jsc.setCallSite("micro-batch")  # noqa: SLF001 # no public door
        if (fatal := output.fatal) is not None:
            self._coordinator.metrics.add_failure(fatal)
            self._on_failure(fatal)
            raise StormError(fatal.message)
        with self._writing():
            # While nothing of the micro-batch is durable yet: outcomes follow what they stand for.
            reports = self._written.write(frame.sparkSession, batch, output.written)
            self._coordinator.deliver(batch, output.outcomes, output.carried)
        self._coordinator.metrics.add_reports([*self._overcome(), *output.reports, *reports], batch)

    @contextlib.contextmanager
    def _writing(self) -> Iterator[None]:
        """Ends the topology if a sink or the checkpoint can't be written."""
        try:
            yield
        except (WriteError, OSError, CheckpointError) as error:
            if isinstance(error, WriteError):
                failure = error.failure
                self._coordinator.metrics.add_failure(failure)
            else:
                whole = isinstance(error, CheckpointError)
                failure = Failure("", None, str(error) if whole else f"the checkpoint can't be written: {error}")
            self._on_failure(failure)
            raise StormError(failure.message) from error

    def _overcome(self) -> list[Failure]:
        """Returns what hung in this micro-batch, which ended: a later failure must not be explained by it."""
        now = time.monotonic()
        if not isinstance(self._folder, Path) and now < self._look_at:
            return []
        self._look_at = now + _LOOK_SECS
        stalls = read_notes(self._folder)
        if stalls:
            clear_notes(self._folder)
        return [
            Failure(
                stall.component, stall.task, f"{stall.sentence}; its worker was ended, and another went on", "", False
            )
            for stall in stalls
        ]
