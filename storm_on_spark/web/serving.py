"""The pages of a single run, on a server that only this host reaches."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from storm_on_spark.cluster.http.server import HttpServer, listen
from storm_on_spark.runtime.processes.closing import Service
from storm_on_spark.web.access.gate import CodesOnly, Gate
from storm_on_spark.web.access.sessions import Sessions
from storm_on_spark.web.app import App
from storm_on_spark.web.pages.registry import TOPOLOGIES
from storm_on_spark.web.rendering import ROOT
from storm_on_spark.web.sites.run import RunSite

if TYPE_CHECKING:
    from storm_on_spark.spark.running.topology import TopologyQuery

HOST = "127.0.0.1"


def listen_here(port: int = 0) -> socket.socket:
    """Returns a socket that listens on this host only.

    Args:
        port: 0 for any free one.

    Raises:
        SetupError: the port can't be used.
    """
    return listen(HOST, port)


class RunPages(Service):
    """The pages of one topology.

    Args:
        query: what runs.
        listener: the socket at which the server listens, of `listen_here`; one at any free port for None.
        log: the file that Spark logs to.
        stopped: see `RunSite`.

    Example:
        >>> pages = RunPages(query)                                             # doctest: +SKIP
        >>> pages.start()                                                       # doctest: +SKIP
        >>> pages.link()                                                        # doctest: +SKIP
        'http://127.0.0.1:40123/ui/login?code=...'
    """

    def __init__(
        self,
        query: TopologyQuery,
        listener: socket.socket | None = None,
        log: Path | None = None,
        stopped: Callable[[], object] | None = None,
    ) -> None:
        listener = listener or listen_here()
        self.address = f"{HOST}:{listener.getsockname()[1]}"
        self._sessions = Sessions()
        gate = Gate(self._sessions, CodesOnly(), listener.getsockname()[1])
        self._app = App(RunSite(query, log, stopped=stopped), gate, TOPOLOGIES)
        self._server = HttpServer(self._app.asgi(), listener)

    def start(self) -> None:
        """Starts the server and returns when it serves."""
        self._server.start()

    def link(self) -> str:
        """Returns a link that logs in one browser."""
        return f"http://{self.address}{ROOT}/login?code={self._sessions.new_code('operator', 'the one who runs it')}"

    def close(self) -> None:
        """Ends the server."""
        self._app.close()
        with contextlib.suppress(RuntimeError):
            self._server.close()
