"""An admin as a whole: it serves REST, follows the tree, and acts while it leads."""

from __future__ import annotations

import contextlib
import logging
import socket
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from starlette.types import ASGIApp

import storm_on_spark
from storm_on_spark.api.config import validate_conf
from storm_on_spark.cluster.errors import FencedError, NotLeaderError, UnavailableError
from storm_on_spark.cluster.http.added_pages import AddedPages
from storm_on_spark.cluster.http.auth import Authentication
from storm_on_spark.cluster.http.server import HttpServer, listen
from storm_on_spark.cluster.leadership import ZooKeeperLeaderElector
from storm_on_spark.cluster.nimbus.settings import NimbusSettings
from storm_on_spark.cluster.records import NimbusSummary, encode
from storm_on_spark.cluster.security.addresses import is_loopback
from storm_on_spark.cluster.security.keyring import Keyring
from storm_on_spark.cluster.security.settings import SecuritySettings
from storm_on_spark.cluster.security.tls import Tls
from storm_on_spark.cluster.security.tokens import Tokens
from storm_on_spark.cluster.security.warnings import warn_if_open
from storm_on_spark.cluster.zookeeper.tree import Tree
from storm_on_spark.runtime.processes.closing import Service
from storm_on_spark.xd.admin.changes import ZooKeeperChanges
from storm_on_spark.xd.admin.definitions import ZooKeeperDefinitions
from storm_on_spark.xd.admin.jobs.runtime import ClusterJobRuntime
from storm_on_spark.xd.admin.leader import Leader
from storm_on_spark.xd.admin.picture import Picture
from storm_on_spark.xd.admin.rest.app import Parts, make_app
from storm_on_spark.xd.admin.rest.resources import DEFAULT_PORT
from storm_on_spark.xd.admin.runtime import ClusterRuntime
from storm_on_spark.xd.tree.mirror import Mirror
from storm_on_spark.xd.tree.modules import ClusterRegistry
from storm_on_spark.xd.tree.nodes import AdminNode, Leadership
from storm_on_spark.xd.tree.session import connected, zookeeper_settings

logger = logging.getLogger(__name__)

_LOOK_SECS: Final = 1.0
_RETRY_SECS: Final = 1.0


@dataclass(frozen=True)
class Offered:
    """What pages for browsers can read of an admin."""

    conf: Mapping[str, Any]
    parts: Parts
    picture: Picture
    """The copy of the tree, also while ZooKeeper can't be reached."""
    connected: Callable[[], bool]
    """Whether ZooKeeper can be reached."""
    authentication: Authentication
    address: str
    """`host:port` of the admin."""
    port: int
    secure: bool
    """Whether it serves HTTPS."""
    local: bool
    """Whether only this host reaches it."""


Pages = Callable[[ASGIApp, Offered], AddedPages]


class Admin(Service):
    """An admin.

    Args:
        conf: the configuration; logins, tokens and TLS are those of a Nimbus.
        port: of REST; 0 for any that is free.
        ended: set by the caller to end the admin, even while it waits for ZooKeeper.
        pages: adds pages for browsers; None for none.

    Example:
        >>> with Admin({"zk.client.connect": "localhost:2181"}) as admin:               # doctest: +SKIP
        ...     admin.address
        'localhost:9393'
    """

    def __init__(
        self,
        conf: Mapping[str, Any],
        port: int = DEFAULT_PORT,
        ended: threading.Event | None = None,
        pages: Pages | None = None,
    ) -> None:
        validate_conf(conf, "xd-admin")
        self._conf = dict(conf)
        self._port = port
        self._pages = pages
        self._stack = contextlib.ExitStack()
        self._ended = threading.Event() if ended is None else ended
        #: Set when the admin must look at the tree.
        self._wake = threading.Event()
        self._changed = threading.Condition()
        self.address = ""
        """`host:port` of REST, once it has been started."""
        self.scheme = "http"

    def start(self) -> None:
        """Waits for ZooKeeper and starts the admin. It serves once this returns, and leads when it is elected.

        Raises:
            SetupError: it can't listen, or others could reach it without authentication.
        """
        with contextlib.ExitStack() as stack:
            self._start(stack)
            self._stack = stack.pop_all()

    def close(self) -> None:
        """Steps down and ends the admin; streams keep running."""
        self._ended.set()
        self._stack.close()

    def _start(self, stack: contextlib.ExitStack) -> None:
        security, own = SecuritySettings.of(self._conf), NimbusSettings.of(self._conf)
        tokens = Tokens.of(security)
        authentication, keyring = Authentication.of(security, tokens), Keyring.of(security, tokens)
        tls = Tls.of_daemon(security)
        authentication.check_bind(own.bind_address)
        listener = stack.enter_context(contextlib.closing(listen(own.bind_address, self._port)))
        host = own.hostname or ("localhost" if is_loopback(own.bind_address) else socket.gethostname())
        port = listener.getsockname()[1]
        self.address, self.scheme = f"{host}:{port}", tls.scheme
        zookeeper = zookeeper_settings(self._conf)
        warn_if_open(zookeeper.hosts, keyring.signs or zookeeper.auth_scheme is not None, own.bind_address, tls)
        session = connected(zookeeper, self._ended, keyring)
        if session is None:
            return
        stack.callback(session.close)
        tree = Tree(session)
        mirror = stack.enter_context(Mirror(tree, on_change=self._on_change))
        elector = ZooKeeperLeaderElector(
            session,
            NimbusSummary(host=host, port=port, started_at=time.time(), version=storm_on_spark.__version__),
            # Definitions are in ZooKeeper, so any admin has all that a leader needs.
            gate=lambda: (),
            on_gained=lambda fence: self._wake.set(),
            on_lost=lambda reason: self._wake.set(),
            fetch=lambda missing: None,
            title="Admin",
            registered=False,
            queued=encode(AdminNode(address=self.address)),
            leading=lambda epoch: Leadership(leader=self.address, epoch=epoch),
        )
        stack.callback(elector.close)
        runtime = ClusterRuntime(tree, mirror, self._changed)
        registry = ClusterRegistry(tree)
        jobs = ClusterJobRuntime(tree, mirror, self._changed, registry)
        definitions, job_definitions = ZooKeeperDefinitions(tree), ZooKeeperDefinitions(tree, "job")
        parts = Parts(definitions, runtime, job_definitions, jobs, registry, ZooKeeperChanges(tree))
        app, pages = make_app(parts, authentication), None
        if self._pages is not None:
            offered = Offered(
                self._conf,
                parts,
                Picture(mirror),
                lambda: session.state == "CONNECTED",
                authentication,
                self.address,
                port,
                secure=tls.server is not None,
                local=is_loopback(own.bind_address),
            )
            pages = self._pages(app, offered)
            app = pages.app
        stack.enter_context(HttpServer(app, listener, tls=tls.server))
        if pages is not None:
            # Before the server ends, so that it needn't wait for open pages.
            stack.callback(pages.close)
        leader = Leader(mirror, tree)

        def act() -> None:
            while not self._ended.is_set():
                pause = _LOOK_SECS
                try:
                    leader.round(elector.fence(), session.session_id)
                except NotLeaderError:
                    pass
                except (FencedError, UnavailableError) as error:
                    logger.warning("Admin %s: %s", self.address, error)
                    pause = _RETRY_SECS
                except Exception:
                    logger.exception("Admin %s: a round failed", self.address)
                    pause = _RETRY_SECS
                self._wake.wait(pause)
                self._wake.clear()

        actor = threading.Thread(target=act, name="xd-admin", daemon=True)
        actor.start()
        stack.callback(self._end, actor)
        elector.add_to_leader_lock_queue()

    def _end(self, actor: threading.Thread) -> None:
        self._ended.set()
        self._wake.set()
        actor.join()

    def _on_change(self) -> None:
        self._wake.set()
        with self._changed:
            self._changed.notify_all()
