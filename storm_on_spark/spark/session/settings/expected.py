"""What a session will be, before it is started."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from storm_on_spark.spark.session.settings.real_time import is_here
from storm_on_spark.spark.session.settings.required import parallelism_of
from storm_on_spark.spark.session.settings.started import cores

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def expected_parallelism(master: str | None = None, conf: Mapping[str, str] | None = None) -> int | None:
    """Returns the `defaultParallelism` of the session that `local_session` returns for these arguments.

    No session is started. None if it is not known before a start, as on a cluster.
    """
    active = active_context()
    if active is not None:
        found: int = active.defaultParallelism
        return found
    return parallelism_of(expected_master(master, conf), conf or {}, cores())


def expected_master(master: str | None = None, conf: Mapping[str, str] | None = None) -> str:
    """Returns the master of the session that `local_session` returns for these arguments; no session is started."""
    active = active_context()
    # A master among the settings wins.
    return (
        str(active.master) if active is not None else (conf or {}).get("spark.master") or master or f"local[{cores()}]"
    )


def active_context() -> Any:
    """Returns PySpark's active context, or None.

    If its `stop` was interrupted, or its JVM was killed meanwhile, PySpark still has it as the active one, and every
    use fails. Such a context is stopped first, for which no JVM is needed.
    """
    pyspark = sys.modules.get("pyspark")
    if pyspark is None:
        return None
    made = pyspark.SparkContext
    context = made._active_spark_context  # noqa: SLF001 # no public way
    if context is None or getattr(context, "_jsc", None) is not None:
        return context
    with made._lock:  # noqa: SLF001 # a thread may be starting it
        context = made._active_spark_context  # noqa: SLF001
        if context is not None and getattr(context, "_jsc", None) is None:
            context.stop()
        return made._active_spark_context  # noqa: SLF001


class ComingSession:
    """A session that is started when it is needed; a topology in real time begins before that.

    Args:
        start: starts it.
        master: Spark's.
        parallelism: its default parallelism; None where only the session knows.
        session: the session, if there is one.

    Example:
        >>> coming = ComingSession(lambda: "a session", "local[2]", 2)
        >>> coming.master, coming.parallelism, coming.get()
        ('local[2]', 2, 'a session')
    """

    def __init__(
        self,
        start: Callable[[], SparkSession],
        master: str,
        parallelism: int | None,
        session: SparkSession | None = None,
    ) -> None:
        self._start = start
        self._master = master
        self._parallelism = parallelism
        #: None until it is needed.
        self.session = session

    @classmethod
    def of(cls, session: SparkSession) -> ComingSession:
        """Returns a `ComingSession` for a session that exists."""
        context = session.sparkContext
        return cls(lambda: session, str(context.master), context.defaultParallelism, session)

    @classmethod
    def local(
        cls, start: Callable[[], SparkSession], master: str | None = None, conf: Mapping[str, str] | None = None
    ) -> ComingSession:
        """Returns a `ComingSession` that `local_session` starts with these arguments."""
        coming = cls(start, expected_master(master, conf), expected_parallelism(master, conf))
        if is_there() or not is_here(coming.master):
            coming.get()
        return coming

    @property
    def master(self) -> str:
        """Spark's master."""
        return self._master

    @property
    def parallelism(self) -> int:
        """The session's default parallelism. Starts the session if it can't be known otherwise."""
        return self._parallelism or self.get().sparkContext.defaultParallelism

    def get(self) -> SparkSession:
        """Returns the session; starts it if need be.

        Raises:
            SetupError: Spark can't be started.
        """
        if self.session is None:
            self.session = self._start()
        return self.session


def is_there() -> bool:
    """Returns whether this process has a session, or a JVM that decides what one will be."""
    pyspark = sys.modules.get("pyspark")
    gateway = None if pyspark is None else pyspark.SparkContext._gateway  # noqa: SLF001 # no public way to ask
    return active_context() is not None or gateway is not None or "PYSPARK_GATEWAY_PORT" in os.environ
