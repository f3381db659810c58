"""Where metrics and samples of a running topology go besides its own status: consumers, `/metrics`, OTLP, loggers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from storm_on_spark.runtime.processes.diagnostics.metrics_port import WINDOWS_READ, require_client, serve_metrics
from storm_on_spark.runtime.processes.diagnostics.otlp import OtlpPush, checked_endpoint
from storm_on_spark.runtime.reports.consumers import Consumers, consumers_of
from storm_on_spark.runtime.run.settings import ReportSettings
from storm_on_spark.runtime.samples.loggers import EventLoggers, loggers_of

if TYPE_CHECKING:
    from storm_on_spark.runtime.batches.metrics.recorder import Recorder
    from storm_on_spark.spark.running.topology import TopologyQuery


class Outlets:
    """What the configuration of a topology asks for.

    Args:
        conf: of the topology.

    Raises:
        ConfigError: a consumer or an event logger can't be made, or the endpoint of OTLP is not a URL.
        SetupError: `prometheus_client` or OpenTelemetry is missing.
    """

    def __init__(self, conf: Mapping[str, Any]) -> None:
        self._reports = ReportSettings.of(conf)
        # Before the topology runs, so that nothing has to be undone.
        self._consumers = consumers_of(self._reports.consumers, conf) if self._reports.consumers else []
        self._loggers = loggers_of(self._reports.event_loggers, conf) if self._reports.event_loggers else []
        if self._reports.metrics_port is not None:
            require_client()
        if self._reports.otlp_endpoint is not None:
            checked_endpoint(self._reports.otlp_endpoint)

    def open(self, topology: TopologyQuery, name: str, recorder: Recorder, port: int) -> None:
        """Opens them; they end with the topology.

        Args:
            topology: that runs.
            name: its name.
            recorder: counts over windows.
            port: of the slot.
        """
        if self._consumers:
            consumers = Consumers(self._consumers, self._reports.bucket_secs, recorder.ever, port)
            consumers.start()
            topology.at_end(consumers.close)
        if self._loggers:
            loggers = EventLoggers(self._loggers, topology.samples)
            loggers.start()
            topology.at_end(loggers.close)
        if self._reports.metrics_port is not None:
            served = serve_metrics(self._reports.metrics_port, name, lambda: topology.status_info(WINDOWS_READ))
            topology.at_end(served.close)
        if self._reports.otlp_endpoint is not None:
            push = OtlpPush(
                self._reports.otlp_endpoint,
                self._reports.bucket_secs,
                name,
                lambda: topology.status_info(WINDOWS_READ),
            )
            push.start()
            topology.at_end(push.close)
