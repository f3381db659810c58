"""The Spark session of a container, for the streams that it runs as one topology."""

from __future__ import annotations

import logging
import threading
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from storm_on_spark.launch.conf_text import spark_conf

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

logger = logging.getLogger(__name__)


class SharedSession:
    """A session that is started when the first stream needs it, and again when its JVM has died.

    `spark.master` of the configuration sets where it runs. The default is all cores of this machine.

    Args:
        conf: of the container.
    """

    def __init__(self, conf: Mapping[str, Any]) -> None:
        self._conf = dict(conf)
        self._lock = threading.Lock()
        self._spark: SparkSession | None = None
        self._own = False

    def get(self) -> SparkSession:
        """Returns the session.

        Raises:
            SetupError: Spark can't be started.
        """
        from pyspark import SparkContext

        from storm_on_spark.spark.session import local_session, stop_session

        with self._lock:
            if self._spark is not None and self._own and not _lives(self._spark):
                logger.warning("Spark has ended; starting it again")
                stop_session(self._spark)
                self._spark = None
            if self._spark is None:
                self._own = SparkContext._active_spark_context is None  # noqa: SLF001 # no public way to ask
                self._spark = local_session(conf=spark_conf(self._conf))
            return self._spark

    def close(self) -> None:
        """Stops the session if it was started here."""
        from storm_on_spark.spark.session import stop_session

        with self._lock:
            if self._spark is not None and self._own:
                stop_session(self._spark)
            self._spark = None


def _lives(spark: SparkSession) -> bool:
    from py4j.protocol import Py4JError

    try:
        return not spark.sparkContext._jsc.sc().isStopped()  # noqa: SLF001 # no public way to ask
    except (Py4JError, OSError, AttributeError):
        return False
