"""An OTLP receiver over HTTP, which reads what comes with the protocol's own messages."""

from __future__ import annotations

import gzip
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.metrics.v1.metrics_pb2 import Metric, NumberDataPoint


class Receiver:
    """Keeps what it gets."""

    def __init__(self) -> None:
        self.got: list[ExportMetricsServiceRequest] = []
        self.headers: list[dict[str, str]] = []
        #: What it answers with.
        self.status = 200
        #: While this is not set, it does not answer.
        self.answers = threading.Event()
        self.answers.set()
        #: Requests that have come, answered or not.
        self.asked = 0
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                receiver.asked += 1
                receiver.answers.wait()
                if receiver.status == 200:
                    if self.headers["Content-Encoding"] == "gzip":
                        body = gzip.decompress(body)
                    receiver.headers.append(dict(self.headers))
                    receiver.got.append(ExportMetricsServiceRequest.FromString(body))
                self.send_response(receiver.status)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *args: object) -> None:
                """Says nothing."""

        self._http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._http.daemon_threads = False
        self._thread = threading.Thread(target=self._http.serve_forever, args=(0.01,))
        self._thread.start()
        self.url = f"http://127.0.0.1:{self._http.server_port}/v1/metrics"

    def close(self) -> None:
        self.answers.set()
        self._http.shutdown()
        self._thread.join()
        self._http.server_close()

    def metrics(self) -> dict[str, Metric]:
        """The metrics of the last request."""
        (resource,) = self.got[-1].resource_metrics
        (scope,) = resource.scope_metrics
        return {metric.name: metric for metric in scope.metrics}

    def resource(self) -> dict[str, str]:
        return attributes(self.got[-1].resource_metrics[0].resource)


def attributes(found: object) -> dict[str, str]:
    return {each.key: each.value.string_value for each in found.attributes}  # type: ignore[attr-defined]


def points(metric: Metric) -> list[NumberDataPoint]:
    return list(getattr(metric, metric.WhichOneof("data")).data_points)
