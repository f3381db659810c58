"""`/metrics` of a driver, for Prometheus, on this machine only."""

from __future__ import annotations

import logging
from collections.abc import Callable
from contextlib import ExitStack
from importlib.util import find_spec

from storm_on_spark.api.errors import SetupError
from storm_on_spark.api.info import ALL_TIME, TopologyInfo
from storm_on_spark.api.text.extras import needs_extra
from storm_on_spark.metrics.prometheus import Samples

log = logging.getLogger(__name__)

WINDOWS_READ = ("600", ALL_TIME)


def require_client() -> None:
    """Checks that the library is installed.

    Raises:
        SetupError: `prometheus_client` is not installed.
    """
    if find_spec("prometheus_client") is None:
        raise SetupError(needs_extra("topology.metrics.port", "cluster", "prometheus_client"))


def serve_metrics(port: int, name: str, info: Callable[[], TopologyInfo]) -> ExitStack:
    """Starts to serve a topology's metrics; `close` of the result ends it. A port that is taken is logged.

    Args:
        port: on 127.0.0.1.
        name: of the topology.
        info: returns its state with `WINDOWS_READ`; called in a thread.
    """
    from prometheus_client import start_http_server
    from prometheus_client.registry import CollectorRegistry

    stack = ExitStack()

    class Collected:
        def collect(self):  # type: ignore[no-untyped-def] # its client says nothing of types here
            samples = Samples()
            samples.add_topology(name, info())
            return samples.collect()

    registry = CollectorRegistry(auto_describe=False)
    registry.register(Collected())
    try:
        server, thread = start_http_server(port, "127.0.0.1", registry)
    except OSError as error:
        log.warning("topology.metrics.port %d can't be served, so this driver has no /metrics: %s", port, error)
        return stack
    stack.callback(thread.join)
    stack.callback(server.server_close)
    stack.callback(server.shutdown)
    return stack
