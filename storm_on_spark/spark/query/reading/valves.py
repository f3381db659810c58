"""Valves: hold single sources of a running query, so that Spark reads nothing of them for the time being.

Spark has no way to pause a source. But before each micro-batch it asks the sources in `uniqueSources` of the query's
execution how far they reach. There, Spark's own wrapper for `Trigger.AvailableNow` replaces a source that is held. It
says how far the source reached when it was prepared; it is never prepared, so it has no news.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any, Final

from py4j.java_gateway import is_instance_of
from py4j.protocol import Py4JError, Py4JJavaError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

log = logging.getLogger(__name__)

_STREAM: Final = "org.apache.spark.sql.connector.read.streaming.MicroBatchStream"
_REPORTING: Final = "org.apache.spark.sql.connector.read.streaming.SupportsAdmissionControl"


class Valves:
    """Holds the sources of a query's native spouts.

    Args:
        always: those whose rows the spout's task reads, so that Spark never does.
    """

    def __init__(self, always: Collection[str] = ()) -> None:
        self._always = frozenset(always)
        #: By component: where its sources stand among those of the query.
        self._places: Mapping[str, Collection[int]] = {}
        self._lock = threading.Lock()
        self._execution: Any = None
        self._gateway: Any = None
        #: By the number of a source: the source and its wrapper, once it was held.
        self._wrappers: dict[int, tuple[Any, Any]] = {}
        self._held: frozenset[str] = frozenset()

    def attach(self, query: StreamingQuery, spark: SparkSession, places: Mapping[str, Collection[int]]) -> None:
        """Takes the query, when it has started in a session.

        Args:
            query: the query.
            spark: its session.
            places: by component, where its sources stand among those of the query.
        """
        with self._lock:
            self._places = places
            self._held = frozenset()  # a query that is started again holds nothing yet
            self._gateway = spark.sparkContext._gateway  # noqa: SLF001 # there is no public way to it
            self._execution = query._jsq.streamingQuery()  # noqa: SLF001

    def hold(self, components: frozenset[str]) -> None:
        """Lets the sources of all components read but of these; it counts for micro-batches that are planned later."""
        components |= self._always
        if components == self._held:
            return
        with self._lock:
            try:
                if self._execution is None or not self._set(components):
                    return  # it is called again for each micro-batch
            except Py4JError as error:
                log.debug("the sources of a query that ends are not held: %s", error)
                return
        for component in sorted(components - self._held - self._always):
            log.info('native spout "%s" reads nothing for now: too many of its messages are not done', component)
        for component in sorted(self._held - components):
            log.info('native spout "%s" reads again', component)
        self._held = components

    def _set(self, components: frozenset[str]) -> bool:
        sources = self._execution.sources()
        limits = self._execution.uniqueSources()
        if limits.isEmpty():
            return False  # Spark still plans the query
        for component, places in self._places.items():
            for place in places:
                source, wrapper = self._wrapper(place, sources)
                was, now = (source, wrapper) if component in components else (wrapper, source)
                if limits.contains(was):
                    limit = limits.apply(was)
                    limits = limits.removed(was).updated(now, limit)
        getattr(self._execution, "uniqueSources_$eq")(limits)
        return True

    def _wrapper(self, place: int, sources: Any) -> tuple[Any, Any]:
        if place not in self._wrappers:
            source = sources.apply(place)
            runtime = self._gateway.jvm.org.apache.spark.sql.execution.streaming.runtime
            is_stream = is_instance_of(self._gateway, source, _STREAM)
            if is_stream and is_instance_of(self._gateway, source, _REPORTING):
                _ask_once(source)
            kind = runtime.AvailableNowMicroBatchStreamWrapper if is_stream else runtime.AvailableNowSourceWrapper
            self._wrappers[place] = source, kind(source)
        return self._wrappers[place]


def _ask_once(source: Any) -> None:
    """Asks a source how far it reaches if it can't say how far it was found to reach, as Kafka's before it was asked.

    Spark reports that with each micro-batch, and ends the query if it can't. Its thread waits for this one here.
    """
    try:
        latest = source.reportLatestOffset()
        if latest is not None:
            latest.json()
    except Py4JJavaError:
        source.latestOffset(source.initialOffset(), source.getDefaultReadLimit())
