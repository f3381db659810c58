"""A Nimbus as a whole: its parts put together, and the thread that acts while it leads."""

from __future__ import annotations

import contextlib
import logging
import os
import socket
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from types import TracebackType
from typing import Any, Final

from starlette.types import ASGIApp

import storm_on_spark
from storm_on_spark.api.config import KEYS, Config, validate_conf
from storm_on_spark.api.errors import SetupError
from storm_on_spark.cluster.code.distributor import Peers, make_distributor
from storm_on_spark.cluster.errors import FencedError, NotLeaderError, UnavailableError
from storm_on_spark.cluster.heartbeats.factory import heartbeat_reader
from storm_on_spark.cluster.heartbeats.settings import HeartbeatSettings
from storm_on_spark.cluster.http.added_pages import AddedPages
from storm_on_spark.cluster.http.auth import Authentication
from storm_on_spark.cluster.http.server import HttpServer, listen
from storm_on_spark.cluster.leadership.clock import ClusterClock
from storm_on_spark.cluster.leadership.zookeeper_elector import ZooKeeperLeaderElector
from storm_on_spark.cluster.nimbus.accepting.inbox import Inbox
from storm_on_spark.cluster.nimbus.accepting.submission import OnStep, Submissions
from storm_on_spark.cluster.nimbus.code.gate import code_gate
from storm_on_spark.cluster.nimbus.code.sync import CodeSync
from storm_on_spark.cluster.nimbus.control import Control
from storm_on_spark.cluster.nimbus.leader import Leader
from storm_on_spark.cluster.nimbus.new_signatures import sign_anew
from storm_on_spark.cluster.nimbus.scheduling.liveness import Drivers, Heartbeats
from storm_on_spark.cluster.nimbus.settings import NimbusSettings
from storm_on_spark.cluster.paths import NIMBUSES
from storm_on_spark.cluster.records import NimbusSummary
from storm_on_spark.cluster.rest.app import make_app
from storm_on_spark.cluster.security.addresses import is_loopback
from storm_on_spark.cluster.security.keyring import Keyring
from storm_on_spark.cluster.security.permissions import Permissions
from storm_on_spark.cluster.security.proofs import auth_of
from storm_on_spark.cluster.security.settings import SecuritySettings
from storm_on_spark.cluster.security.tls import Tls
from storm_on_spark.cluster.security.tokens import Tokens
from storm_on_spark.cluster.security.warnings import warn_if_open
from storm_on_spark.cluster.state import ClusterState, ClusterView, Fence
from storm_on_spark.cluster.thrift.login import login_users
from storm_on_spark.cluster.thrift.service import frame_service
from storm_on_spark.cluster.thrift.settings import ThriftSettings
from storm_on_spark.cluster.zookeeper.session import ZooKeeperSession
from storm_on_spark.cluster.zookeeper.settings import ZooKeeperSettings
from storm_on_spark.runtime.processes.lock_file import locked

logger = logging.getLogger(__name__)

_ACTED_ON: Final = frozenset(
    {"submissions", "storms", "assignments", "supervisors", "owners", "code", "drains", "unhealthy", "leader-info"}
)
"""Folders whose changes the leader looks at at once."""
_RETRY_SECS: Final = 1.0
_LEAST_PAUSE_SECS: Final = 0.05
_PREFIXES: Final = ("nimbus.", "pacemaker.", "storm.", "ui.")


def nimbus_conf(conf: Mapping[str, Any]) -> dict[str, Any]:
    """Returns a configuration with the defaults of what a Nimbus reads.

    Raises:
        ConfigError: a key or value makes no sense.

    Example:
        >>> nimbus_conf({"nimbus.thrift.port": 7000})["nimbus.seeds"]
        ['localhost']
    """
    validate_conf(conf, "nimbus")
    defaults = {name: key.default for name, key in KEYS.items() if name.startswith(_PREFIXES)}
    return {**defaults, **{name: value for name, value in conf.items() if value is not None}}


@dataclass(frozen=True)
class Offered:
    """What pages for browsers get of a Nimbus."""

    control: Control
    authentication: Authentication
    port: int
    secure: bool
    """Whether it serves HTTPS."""
    local: bool
    """Whether only this host reaches it."""


Pages = Callable[[ASGIApp, Offered], AddedPages]


class Nimbus:
    """A Nimbus: serves REST, keeps code, wants to lead.

    Args:
        conf: its configuration.
        port: where REST listens; `nimbus.thrift.port` for None, any free port for 0.
        on_step: as for `Submissions`.
        now: seconds since the epoch.
        pages: adds pages for browsers to its HTTP; None for none.

    Example:
        >>> with Nimbus({"storm.zookeeper.port": 2181}) as nimbus:                  # doctest: +SKIP
        ...     nimbus.address
        'localhost:6627'
    """

    def __init__(
        self,
        conf: Mapping[str, Any],
        port: int | None = None,
        on_step: OnStep = lambda step, topology_id: None,
        now: Callable[[], float] = time.time,
        pages: Pages | None = None,
    ) -> None:
        self._pages = pages
        self.conf = nimbus_conf(conf)
        self.settings = NimbusSettings.of(self.conf)
        self._port = self.settings.port if port is None else port
        self._on_step = on_step
        self._now = now
        self._stack = contextlib.ExitStack()
        self._wake = threading.Event()
        self._stopped = threading.Event()
        #: The leadership, and how often the connection had broken by then: what was seen before that says nothing.
        self._led: tuple[Fence, int] | None = None
        #: Whether storage is to be cleared up with the next round.
        self._sweep = False
        self.address = ""
        """`host:port`, once it has been started."""

    def start(self) -> None:
        """Starts it; it serves when this returns, and leads when its turn comes.

        Raises:
            SetupError: it can't listen, or others could reach it without authentication.
            UnavailableError: ZooKeeper is out of reach.
            CodeError: the code distributor can't work here.
        """
        with contextlib.ExitStack() as stack:
            self._start(stack)
            self._stack = stack.pop_all()

    def stop(self) -> None:
        """Steps down and ends everything."""
        self._stopped.set()
        self._wake.set()
        self._stack.close()

    def __enter__(self) -> Nimbus:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def _start(self, stack: contextlib.ExitStack) -> None:
        conf, own = self.conf, self.settings
        security = SecuritySettings.of(conf)
        tokens = Tokens.of(security)
        by_operation = Permissions.of(conf).by_topology
        authentication = Authentication.of(security, tokens, by_operation=by_operation)
        tls = Tls.of_daemon(security)
        users = login_users(ThriftSettings.of(conf))
        no_thrift = _why_no_thrift(authentication, tls, users is not None)
        self._tokens, self._signed_with = tokens, None if tokens is None else tokens.first
        bind = own.bind_address
        authentication.check_bind(bind)
        listener = stack.enter_context(contextlib.closing(listen(bind, self._port)))
        host = own.hostname or ("localhost" if is_loopback(bind) else socket.gethostname())
        port = listener.getsockname()[1]
        self.address = f"{host}:{port}"
        summary = NimbusSummary(host=host, port=port, started_at=self._now(), version=storm_on_spark.__version__)
        local = Path(own.local_dir).absolute()
        folder = local / "nimbus"
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        stack.callback(os.close, _locked(folder))

        zookeeper = ZooKeeperSettings.from_conf(conf)
        keyring = Keyring.of(security, tokens)
        guarded = keyring.signs or zookeeper.auth_scheme is not None
        warn_if_open(zookeeper.hosts, guarded, bind, tls)
        session = stack.enter_context(ZooKeeperSession(zookeeper, keyring=keyring))
        _ensure_folders(session)
        self._state = state = ClusterState(session)
        self.view = view = stack.enter_context(ClusterView(session, self._now))
        # For whatever one leader writes down and another goes by.
        self._cluster_now = cluster_now = ClusterClock(self._now)
        distributor = make_distributor(conf, Peers(self.address, self._holders, auth_of(tokens), tls))
        self._inbox = Inbox(folder / "inbox", own.artifact_expiration_secs)
        submissions = Submissions(
            state,
            distributor,
            self.address,
            own,
            conf,
            local / "checkpoints",
            self._wake.set,
            self._on_step,
            cluster_now,
        )
        kept = HeartbeatSettings.from_conf(conf)
        reader = stack.enter_context(heartbeat_reader(kept, view, window=own.task_timeout_secs / 2))
        heartbeats = Heartbeats(own.supervisor_timeout_secs)
        drivers = Drivers(own.task_launch_secs, own.task_timeout_secs)
        self._leader = Leader(
            state, distributor, submissions, heartbeats, drivers, self._on_step, cluster_now, reader=reader
        )
        self._sync = CodeSync(distributor, state, view, self.address, own.code_sync_secs, submissions.is_busy)
        self._elector = ZooKeeperLeaderElector(
            session,
            summary,
            gate=self._missing,
            on_gained=lambda fence: self._wake.set(),
            on_lost=lambda reason: self._wake.set(),
            fetch=self._sync.fetch,
            now=self._now,
            cluster_clock=cluster_now,
        )
        stack.callback(self._elector.close)
        stack.callback(self._sync.close)
        # Before those: it cuts what they fetch.
        stack.callback(distributor.close)
        control = Control(
            conf,
            own,
            self.address,
            state,
            view,
            self._elector,
            distributor,
            submissions,
            self._inbox,
            cluster_now,
            tls.scheme,
            reader,
        )
        frames = None
        if no_thrift is None:
            frames = frame_service(control, conf, users)
        else:
            logger.info("Nimbus %s does not offer Thrift: %s", self.address, no_thrift)
        app, pages = make_app(control, authentication), None
        if self._pages is not None:
            offered = Offered(control, authentication, port, secure=tls.server is not None, local=is_loopback(bind))
            pages = self._pages(app, offered)
            app = pages.app
        stack.enter_context(HttpServer(app, listener, tls=tls.server, frames=frames))
        if pages is not None:
            # Before the server, so that it needn't wait for pages that are open.
            stack.callback(pages.close)
        self._sync.start()
        actor = threading.Thread(target=self._act, name="nimbus", daemon=True)
        actor.start()
        stack.callback(self._end, actor)
        stack.callback(view.on_change(lambda folders: self._wake.set() if folders & _ACTED_ON else None))
        self._elector.add_to_leader_lock_queue()

    def _end(self, actor: threading.Thread) -> None:
        self._stopped.set()
        self._wake.set()
        actor.join()

    def _holders(self, topology_id: str) -> list[str]:
        """Returns addresses of the live Nimbuses that have a topology's code."""
        snapshot = self.view.snapshot()
        code = snapshot.code.get(topology_id)
        up = snapshot.nimbuses.keys() | snapshot.unread(NIMBUSES).keys()
        return [] if code is None else sorted(code.replicas & up)

    def _missing(self) -> list[str]:
        """Returns the ids of the topologies whose code keeps this Nimbus from leading: asked when it holds the lock."""
        self.view.refresh()
        snapshot = self.view.snapshot()
        gate = code_gate(snapshot)
        if gate.lost:
            # Code that isn't registered can't be fetched, so no Nimbus could ever lead.
            logger.error("ZooKeeper has no record of the code of %s", ", ".join(gate.lost))
        if gate.foreign:
            logger.error(
                "Another release wrote what ZooKeeper has of the code of %s; a Nimbus of that release can lead",
                ", ".join(gate.foreign),
            )
        code = {topology_id: known.manifest for topology_id, known in snapshot.code.items()}
        return sorted([*gate.foreign, *self._sync.missing(gate.wanted, code)])

    def _act(self) -> None:
        pause = 0.0
        clean_at = time.monotonic()
        while not self._stopped.is_set():
            self._wake.wait(pause)
            self._wake.clear()
            if self._stopped.is_set():
                return
            pause = float(self.settings.monitor_secs)
            try:
                if time.monotonic() >= clean_at:
                    clean_at = time.monotonic() + self.settings.cleanup_inbox_secs
                    self._inbox.expire()
                    self._sweep = True
                due = self._round()
                if due is not None:
                    pause = min(pause, max(_LEAST_PAUSE_SECS, due - self._cluster_now()))
            except (FencedError, UnavailableError) as error:
                logger.warning("Nimbus %s: %s", self.address, error)
                pause = _RETRY_SECS
            except Exception:
                logger.exception("Nimbus %s: a round failed", self.address)
                pause = _RETRY_SECS

    def _sign_with_new_token(self) -> None:
        """After a change of the token: what this Nimbus wrote is signed with the new one.

        A leader's record of its leadership is its fence and stays as it is: the leader resigns and the next one signs.
        """
        token = None if self._tokens is None else self._tokens.first
        if token == self._signed_with:
            return
        self._signed_with = token
        self._elector.register()
        if self._elector.is_leader():
            logger.info("Nimbus %s steps down to sign records with a new token", self.address)
            self._elector.remove_from_leader_lock_queue()
            self._elector.add_to_leader_lock_queue()

    def _round(self) -> float | None:
        self._sign_with_new_token()
        try:
            fence = self._elector.fence()
        except NotLeaderError:
            self._led = None
            return None
        led = fence, self.view.losses
        if led != self._led:
            self.view.refresh()
            self._leader.forget()
            self._led, self._sweep = led, True
        due = self._leader.round(fence, self.view.snapshot())
        if self._sweep:
            self._sweep = False
            sign_anew(self._state, fence)
            self._leader.sweep(fence, self.view.snapshot(), self.settings.artifact_expiration_secs)
        return due


def _ensure_folders(session: ZooKeeperSession) -> None:
    """Makes the nodes that are always there; a connection that breaks just then is not a reason not to start."""
    for attempts_left in reversed(range(session.settings.retry_times + 1)):
        try:
            session.ensure_folders()
            return
        except UnavailableError as error:
            if not attempts_left:
                raise
            logger.warning("%s", error)
        session.wait_connected(session.settings.retry_interval_secs)


def _why_no_thrift(authentication: Authentication, tls: Tls, has_login: bool) -> str | None:
    """Returns why there is no Thrift; None if there is.

    Raises:
        SetupError: a login over Thrift is configured, and there can't be one.
    """
    installed = find_spec("thriftpy2") is not None
    if has_login and (tls.server is not None or not installed):
        why = "Thrift has no TLS here" if installed else "thriftpy2 isn't installed"
        raise SetupError(f"a login over Thrift (DigestSaslTransportPlugin) can't be offered: {why}")
    # Without a login Thrift is only for a Nimbus of which REST asks for none either.
    if authentication.required and not has_login:
        return "this cluster has a secret, and DigestSaslTransportPlugin is not configured as its Thrift transport"
    if tls.server is not None:
        return "it has no TLS"
    return None if installed else "thriftpy2 isn't installed"


def _locked(folder: Path) -> int:
    """Returns a descriptor that keeps other Nimbuses out of a folder until it is closed, or this process ends."""
    try:
        return locked(folder / "lock")
    except OSError as error:
        raise SetupError(f"another Nimbus uses {folder}; each needs its own {Config.STORM_LOCAL_DIR}") from error
