"""A driver's metrics by OTLP, pushed by OpenTelemetry's own exporter to a collector.

The exporter reads what belongs to the connection from OpenTelemetry's own variables of the environment, such as
`OTEL_EXPORTER_OTLP_HEADERS`: tokens have no place in a topology's configuration.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from importlib.util import find_spec
from typing import Final
from urllib.parse import urlsplit

from storm_on_spark.api.errors import ConfigError, SetupError
from storm_on_spark.api.info import TopologyInfo
from storm_on_spark.api.text.extras import needs_extra
from storm_on_spark.metrics.opentelemetry import topology_data

log = logging.getLogger(__name__)

KEY: Final = "topology.metrics.otlp.endpoint"
_EXPORTERS_LOGGER: Final = "opentelemetry.exporter.otlp.proto.http.metric_exporter"
_END_SECS: Final = 15.0


def checked_endpoint(endpoint: str) -> str:
    """Returns a URL that metrics can be pushed to.

    Raises:
        ConfigError: it is none, or it may hold a secret.
        SetupError: OpenTelemetry is not installed.

    Example:
        >>> checked_endpoint("localhost:4318")
        Traceback (most recent call last):
        ...
        storm_on_spark.api.errors.ConfigError: topology.metrics.otlp.endpoint is a URL like http://localhost:4318/v1/metrics
    """
    try:
        url = urlsplit(endpoint)
        whole = url.scheme in ("http", "https") and url.hostname and url.port != 0
    except ValueError:
        whole = False
    if not whole:
        # Not what was given: it may hold a password.
        raise ConfigError(f"{KEY} is a URL like http://localhost:4318/v1/metrics", key=KEY)
    if "@" in url.netloc or url.query or url.fragment:
        raise ConfigError(
            f"{KEY} has a user, a query or a fragment, and would show a secret in configurations and logs; "
            "give tokens as headers in the variable OTEL_EXPORTER_OTLP_HEADERS of the driver's environment",
            key=KEY,
        )
    missing = [package for package in ("sdk", "exporter") if not _is_there(f"opentelemetry.{package}")]
    if missing:
        raise SetupError(needs_extra(KEY, "otlp", "opentelemetry-sdk", "opentelemetry-exporter-otlp-proto-http"))
    return endpoint


def _is_there(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:  # the package around it is missing
        return False


class OtlpPush:
    """Pushes a topology's metrics on a thread of its own, so that a slow collector delays no tuple.

    Args:
        endpoint: a checked URL.
        every_secs: seconds between two pushes.
        name: of the topology.
        info: returns its state with the windows of `WINDOWS_READ`; called on that thread.
        wall: seconds since the epoch.
    """

    def __init__(
        self,
        endpoint: str,
        every_secs: float,
        name: str,
        info: Callable[[], TopologyInfo],
        wall: Callable[[], float] = time.time,
    ) -> None:
        from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter

        self._exporter = OTLPMetricExporter(endpoint=endpoint)
        self._every_secs = every_secs
        self._name = name
        self._info = info
        self._wall = wall
        self._ends = threading.Event()
        #: Whether the last push failed, and the log has said so.
        self._fails = False
        #: Whether the end leaves out the last push.
        self._gives_up = False
        self._thread = threading.Thread(target=self._run, name="metrics-otlp", daemon=True)

    def start(self) -> None:
        """Starts to push."""
        logging.getLogger(_EXPORTERS_LOGGER).addFilter(self._is_news)
        self._thread.start()

    def close(self) -> None:
        """Pushes the last metrics, unless the collector was away already. Waits at most 15 s."""
        self._gives_up = self._fails
        self._ends.set()
        if self._gives_up:
            # Ends the pause before the exporter's next attempt.
            self._exporter.shutdown()
        self._thread.join(_END_SECS)
        logging.getLogger(_EXPORTERS_LOGGER).removeFilter(self._is_news)

    def _run(self) -> None:
        while not self._ends.wait(self._every_secs):
            self._push()
        if not self._gives_up:
            self._push()
            self._exporter.shutdown()

    def _push(self) -> None:
        from opentelemetry.sdk.metrics.export import MetricExportResult

        try:
            data = topology_data(self._name, self._info(), int(self._wall() * 1e9))
            pushed = self._exporter.export(data) is MetricExportResult.SUCCESS
        except Exception as error:  # of a library
            if not self._fails:
                log.warning("metrics can't be pushed by OTLP: %r", error)
            pushed = False
        if pushed and self._fails:
            log.warning("metrics are pushed by OTLP again")
        self._fails = not pushed

    def _is_news(self, record: logging.LogRecord) -> bool:
        """Lets the exporter say once, and not at each push, that its collector is away."""
        if record.thread != self._thread.ident:
            return True
        news, self._fails = not self._fails, True
        return news
