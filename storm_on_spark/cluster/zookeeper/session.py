"""A connection to ZooKeeper that tells what becomes of it.

kazoo calls its listeners on the thread that keeps the connection alive: a listener that blocks loses the session. So
our own thread gets the states and calls the listeners one after the other.

What kazoo does, and what follows from it:

- While it has no connection (SUSPENDED) it queues requests for as long as that lasts: callers must wait with a limit.
- It forgets all watches as soon as the connection breaks, not only with the session. A watcher looks again
  after every CONNECTED.
- It finds out that its session has expired only when a server tells it so: a client that is cut off stays SUSPENDED.
- It sends a ping, and misses the answer, only when it has nothing else to send: while requests keep coming, it never
  notices that the line is dead. So we send our own heartbeat, which breaks a connection that has been silent too long.
"""

from __future__ import annotations

import contextlib
import logging
import queue
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, Final, Literal, cast

from kazoo.exceptions import KazooException, NoAuthError, NodeExistsError
from kazoo.handlers.threading import KazooTimeoutError
from kazoo.protocol.states import KazooState
from kazoo.security import ACL, make_acl, make_digest_acl

from storm_on_spark.cluster.errors import UnavailableError
from storm_on_spark.cluster.paths import STORM, Layout, Paths
from storm_on_spark.cluster.security.keyring import Keyring
from storm_on_spark.cluster.zookeeper.client import Client
from storm_on_spark.cluster.zookeeper.lease import Lease
from storm_on_spark.cluster.zookeeper.settings import ZooKeeperSettings
from storm_on_spark.runtime.processes.closing import Service

logger = logging.getLogger(__name__)

SessionState = Literal["CONNECTED", "SUSPENDED", "LOST"]
Listener = Callable[[SessionState], None]

_CLOSE_SECS: Final = 2.0
_LOOK_SECS: Final = 0.1
_BEATS: Final = 6
"""Heartbeats within the time of a session."""
_SILENCE: Final = 1 / 3
"""The part of a session's time after which a silent connection is broken. Enough of it is left to try a server that
doesn't answer either, and then another."""


class ZooKeeperSession(Service):
    """A client of ZooKeeper with the paths of one cluster.

    Args:
        settings: which ZooKeeper.
        clock: seconds, for intervals; by default one that continues while the machine sleeps, where there is one.
        keyring: signs what is written, and says what counts of what is read.
        layout: of the cluster's tree.

    Example:
        >>> with ZooKeeperSession(ZooKeeperSettings.from_conf(conf)) as session:       # doctest: +SKIP
        ...     session.state, session.client.get_children(session.paths.of("nimbuses"))
        ('CONNECTED', ['localhost:6627'])
    """

    def __init__(
        self,
        settings: ZooKeeperSettings,
        clock: Callable[[], float] | None = None,
        keyring: Keyring | None = None,
        layout: Layout = STORM,
    ) -> None:
        self.settings = settings
        self.keyring = Keyring() if keyring is None else keyring
        self.paths = Paths(settings.root, layout)
        self.acl: list[ACL] | None = _acl(settings)
        self.client = Client(settings, self.acl)
        self._listeners: list[Listener] = []
        self._lock = threading.Lock()
        self._states: queue.SimpleQueue[SessionState | None] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None
        self._connected = threading.Event()
        self._clock = _default_clock() if clock is None else clock
        self.proving = False
        """Whether each heartbeat proves that the session lives, which costs ZooKeeper a transaction. See `lives`."""
        self._lease = Lease()
        self._heart = threading.Thread(target=self._beat, name="zookeeper-heartbeat", daemon=True)
        self._wake_heart = threading.Event()
        self._closing = threading.Event()
        #: When, and in which session, the heartbeat that is under way was sent.
        self._beating: tuple[float, int] | None = None
        self.client.add_listener(self._on_state)

    @property
    def state(self) -> SessionState:
        """What is known of the connection at this moment, ahead of what listeners have been told."""
        return cast(SessionState, str(self.client.state))

    @property
    def session_id(self) -> int | None:
        """The session's number; None while there is no connection."""
        client_id = self.client.client_id
        return None if client_id is None else cast(int, client_id[0])

    @property
    def negotiated_timeout(self) -> float:
        """Seconds after which ZooKeeper expires the session; it may grant less, or more, than was asked for."""
        return self.client.negotiated_timeout

    def lives(self, session_id: int, secs: float = 0.0) -> bool:
        """Whether we are connected with that session, and it lives for sure: ZooKeeper can't have given it up.

        Args:
            session_id: of the session.
            secs: for how long from now on.

        What is asked inside `proof` proves it for a while, and heartbeats do while `proving` is set. It can be relied
        on also by a process that was stopped for a while and has heard nothing yet.
        """
        return (
            self.state == "CONNECTED"
            and self.session_id == session_id
            and self._lease.holds(session_id, self._clock() + secs)
        )

    @contextlib.contextmanager
    def proof(self) -> Iterator[None]:
        """Takes the answer to a transaction that is sent inside as proof that the session lives."""
        session_id, sent_at = self.session_id, self._clock()
        yield
        if session_id is not None:
            self._lease.renew(session_id, sent_at, self.negotiated_timeout)

    def start(self, ended: threading.Event | None = None) -> None:
        """Connects.

        Args:
            ended: set when the caller no longer waits.

        Raises:
            UnavailableError: no server answered within the connection timeout, or before the caller stopped waiting.
        """
        self._thread = threading.Thread(target=self._dispatch, name="zookeeper-listeners", daemon=True)
        self._thread.start()
        self._heart.start()
        began, secs = time.monotonic(), self.settings.connection_timeout_secs
        let_in = self.client.start_async()
        while not let_in.wait(_LOOK_SECS):
            given_up = ended is not None and ended.is_set()
            if given_up or time.monotonic() - began > secs:
                self.close()
                when = "before this was to end" if given_up else f"within {secs:g} s"
                raise UnavailableError(f"no ZooKeeper server of {self.settings.hosts} accepted a session {when}")
        if self.settings.auth_scheme == "sasl":
            self._check_login()

    def _check_login(self) -> None:
        """Waits for the login: kazoo says that it is connected before that is over."""
        try:
            with contextlib.suppress(NoAuthError):
                self.wait(self.client.exists_async("/"))
        except (KazooException, UnavailableError) as error:
            self.close()
            user = str(self.settings.auth_payload).partition(":")[0]
            raise UnavailableError(
                f"ZooKeeper ({self.settings.hosts}) does not log in user {user!r} by SASL: {type(error).__name__}"
            ) from None

    def close(self) -> None:
        """Ends the session, and with it everything ephemeral. Listeners hear of it before this returns."""
        self._closing.set()
        self._wake_heart.set()
        if self._heart.is_alive() and threading.current_thread() is not self._heart:
            self._heart.join()
        # kazoo waits for an answer to its farewell, which one that hangs doesn't give.
        impatience = threading.Timer(_CLOSE_SECS, self.client.drop_connection)
        impatience.daemon = True
        impatience.start()
        with contextlib.suppress(Exception):
            self.client.stop()
        impatience.cancel()
        impatience.join()
        with contextlib.suppress(Exception):
            self.client.close()
        if self._thread is not None:
            self._states.put(None)
            if threading.current_thread() is not self._thread:
                self._thread.join()
            self._thread = None

    def add_listener(self, listener: Listener) -> Callable[[], None]:
        """Calls `listener` with every new state, on a thread that it may block for a moment.

        Returns:
            What removes it again.
        """
        with self._lock:
            self._listeners.append(listener)

        def remove() -> None:
            with self._lock, contextlib.suppress(ValueError):
                self._listeners.remove(listener)

        return remove

    def ensure_folders(self) -> None:
        """Makes the nodes that are always there.

        Raises:
            UnavailableError: ZooKeeper can't be reached.
        """
        try:
            self.wait(self.client.ensure_path_async(self.settings.root))
            there = self.wait(self.client.get_children_async(self.settings.root))
            results = [
                self.client.create_async(self.paths.of(*name.split("/")), value, acl=self.acl)
                for name, value in self.paths.layout.nodes.items()
                if name not in there
            ]
            for result in results:
                with contextlib.suppress(NodeExistsError):
                    self.wait(result)
        except KazooException as error:
            raise UnavailableError(f"the nodes below {self.settings.root} can't be made: {error!r}") from error

    def wait_connected(self, timeout: float) -> bool:
        """Waits for a connection.

        Returns:
            Whether there is one.
        """
        return self._connected.wait(timeout)

    def wait(self, result: Any, timeout: float | None = None) -> Any:
        """Returns what an asynchronous call of kazoo comes to.

        Args:
            result: of the call.
            timeout: in seconds; the connection timeout if it is None.

        Raises:
            UnavailableError: nothing came in time. What was asked for may still happen.
        """
        seconds = self.settings.connection_timeout_secs if timeout is None else timeout
        try:
            return result.get(timeout=seconds)
        except KazooTimeoutError:
            raise UnavailableError(
                f"ZooKeeper ({self.settings.hosts}) has not answered within {seconds:g} s; "
                f"the connection is {self.state}"
            ) from None

    def _on_state(self, state: str) -> None:
        # On kazoo's own thread: nothing here may block.
        if state == KazooState.CONNECTED:
            self._connected.set()
            self._wake_heart.set()
        else:
            self._connected.clear()
        self._states.put(cast(SessionState, str(state)))

    def _beat(self) -> None:
        """Asks something every now and then, and breaks the connection if no answer comes."""
        while not self._closing.is_set():
            self._wake_heart.wait(self.negotiated_timeout / _BEATS)
            self._wake_heart.clear()
            session_id = self.session_id
            if self._closing.is_set() or self.state != "CONNECTED" or session_id is None:
                continue
            beating, now = self._beating, self._clock()
            if beating is None or beating[1] != session_id:
                self._beating = (now, session_id)
                self._ask().rawlink(partial(self._beaten, self._beating, self.proving))
            elif now - beating[0] > self.negotiated_timeout * _SILENCE:
                logger.warning("ZooKeeper has been silent for %.1f s; reconnecting", now - beating[0])
                self._beating = None
                self.client.drop_connection()

    def _ask(self) -> Any:
        """Sends a heartbeat: something that changes nothing."""
        if not self.proving:
            return self.client.exists_async(self.settings.root)
        transaction = self.client.transaction()
        transaction.check(self.settings.root, -1)
        return transaction.commit_async()

    def _beaten(self, beating: tuple[float, int], proves: bool, result: Any) -> None:
        """Called by kazoo with the answer to a heartbeat."""
        if self._beating is beating:
            self._beating = None
        if proves and result.successful():
            self._lease.renew(beating[1], beating[0], self.negotiated_timeout)

    def _dispatch(self) -> None:
        while (state := self._states.get()) is not None:
            logger.info("ZooKeeper session is %s", state)
            with self._lock:
                listeners = list(self._listeners)
            for listener in listeners:
                try:
                    listener(state)
                except Exception:
                    logger.exception("A listener of the ZooKeeper session failed at %s", state)


def _default_clock() -> Callable[[], float]:
    if hasattr(time, "CLOCK_BOOTTIME"):
        return partial(time.clock_gettime, time.CLOCK_BOOTTIME)
    return time.monotonic


def _acl(settings: ZooKeeperSettings) -> list[ACL] | None:
    if settings.auth_scheme is None or settings.auth_payload is None:
        return None
    user, _, password = settings.auth_payload.partition(":")
    if settings.auth_scheme == "sasl":
        return [make_acl("sasl", user, all=True)]
    return [make_digest_acl(user, password, all=True)]
