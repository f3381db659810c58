"""The supervisor's process: what is assigned to it, and a loop over its slots.

It may be killed and started again at any time: drivers are separate processes, and it finds them again. While
ZooKeeper is away it continues with what it knew.
"""

from __future__ import annotations

import contextlib
import logging
import os
import socket
import threading
import time
import uuid
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

from kazoo.exceptions import KazooException

from storm_on_spark import __version__
from storm_on_spark.api.config import Config
from storm_on_spark.api.config.secrets import scrubbed
from storm_on_spark.cluster.code.distributor import CodeDistributor, Peers, make_distributor
from storm_on_spark.cluster.driver.reports import SYSTEM
from storm_on_spark.cluster.errors import ClusterError, CodeError, UnavailableError
from storm_on_spark.cluster.heartbeats.settings import HeartbeatSettings
from storm_on_spark.cluster.heartbeats.writer import supervisor_pulses
from storm_on_spark.cluster.http.auth import Authentication
from storm_on_spark.cluster.paths import ASSIGNMENTS, CODE, NIMBUSES, OWNERS, STORMS, SUPERVISORS, UNHEALTHY
from storm_on_spark.cluster.records import (
    CodeManifest,
    ErrorRecord,
    Ownership,
    StormBase,
    SupervisorInfo,
    Unhealthy,
)
from storm_on_spark.cluster.security.keyring import Keyring
from storm_on_spark.cluster.security.proofs import auth_of
from storm_on_spark.cluster.security.settings import SecuritySettings
from storm_on_spark.cluster.security.tls import Tls
from storm_on_spark.cluster.security.tokens import Tokens
from storm_on_spark.cluster.security.warnings import warn_if_open
from storm_on_spark.cluster.state import ClusterState, ClusterView
from storm_on_spark.cluster.supervisor.code import CodeStore
from storm_on_spark.cluster.supervisor.health import HealthSettings, check_health, why_unhealthy
from storm_on_spark.cluster.supervisor.logs import LogServer
from storm_on_spark.cluster.supervisor.old_logs import sweep
from storm_on_spark.cluster.supervisor.process import DRIVER, DriverProcess
from storm_on_spark.cluster.supervisor.settings import LogSettings, SupervisorSettings
from storm_on_spark.cluster.supervisor.slot_host import SlotHost
from storm_on_spark.cluster.supervisor.slots import Phase, Timeouts, Wanted
from storm_on_spark.cluster.supervisor.spares import Spares
from storm_on_spark.cluster.zookeeper.session import ZooKeeperSession
from storm_on_spark.cluster.zookeeper.settings import ZooKeeperSettings
from storm_on_spark.runtime.processes.lock_file import locked

log = logging.getLogger(__name__)

_LOOK_SECS = 0.2
"""Between two looks at the drivers; news of the cluster are looked at when they come."""
_KILL_SECS = 10.0
HEALTH_SECS = 60.0
"""Between two checks of the machine's health."""
_SWEEP_SECS = 600.0
"""Between two looks at logs that may have been kept long enough."""
_FILES = (
    Config.NIMBUS_AUTH_TOKEN_FILE,
    Config.NIMBUS_AUTH_DIGEST_FILE,
    Config.STORM_TLS_CERTIFICATE_FILE,
    Config.STORM_TLS_KEY_FILE,
    Config.STORM_TLS_CA_FILE,
)


class Supervisor:
    """Hosts drivers.

    Args:
        conf: the cluster's configuration; `storm.local.dir` must be this supervisor's own.
        driver: module that runs as the driver; see `storm_on_spark.testing.simulated.driver` for another.

    Raises:
        ConfigError: a value makes no sense.
        ClusterError: another supervisor has the same `storm.local.dir`.

    Example:
        >>> with Supervisor({"storm.local.dir": "/var/lib/storm"}) as supervisor:         # doctest: +SKIP
        ...     supervisor.wait()
    """

    def __init__(self, conf: Mapping[str, Any], driver: str = DRIVER) -> None:
        self._conf = _absolute(conf)
        self._settings, self._log_settings = SupervisorSettings.of(conf), LogSettings.of(conf)
        self._health = HealthSettings.of(conf)
        #: Why the machine was not fit at the last look; empty if it was.
        self._unhealthy = ""
        self._zookeeper = ZooKeeperSettings.from_conf(conf)
        self._security = SecuritySettings.of(self._conf)
        self._tokens = Tokens.of(self._security)
        self._tls = Tls.of_daemon(self._security)
        self._keyring = Keyring.of(self._security, self._tokens)
        self._folder = Path(self._settings.local_dir).absolute() / "supervisor"
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        #: None once it was stopped.
        self._lock: int | None = _lock(self._folder)
        self.supervisor_id = _kept_id(self._folder)
        self.host = self._settings.hostname or socket.gethostname()
        self._started_at = time.time()
        self._pulses = supervisor_pulses(HeartbeatSettings.from_conf(self._conf), self.supervisor_id)
        self._session: ZooKeeperSession | None = None
        self.view: ClusterView | None = None
        self.known = False
        self._wake = threading.Event()
        self._stopping = threading.Event()
        self._threads: list[threading.Thread] = []
        # Downloads and installations; each slot has at most one.
        self._pool = ThreadPoolExecutor(max_workers=4, thread_name_prefix="supervisor-work")
        self._distributor = self._make_distributor()
        store = CodeStore(self._folder, self._distributor)
        timeouts = Timeouts(
            start=self._settings.worker_start_timeout_secs,
            beat=self._settings.worker_timeout_secs,
            shutdown=self._settings.worker_shutdown_sleep_secs,
        )
        self._store = store
        self._log_folder = self._folder.parent / "workers-artifacts"
        self._logs: LogServer | None = None
        self.ports = self._settings.ports if self._settings.enable else ()
        self.spares = Spares(
            self._folder / "spares",
            self._folder.parent / "workers-artifacts" / "spares",
            self._settings.spare_drivers if self.ports else 0,
            self._conf,
        )
        slots = self._folder / "slots"
        slots.mkdir(mode=0o700, exist_ok=True)
        # Drivers in slots that are no longer configured have to be ended.
        left = {int(path.name) for path in slots.iterdir() if path.name.isdigit()}
        self.slots = {
            port: SlotHost(port, slots / str(port), self._log_folder, store, self, self._conf, timeouts, driver)
            for port in sorted(left | set(self.ports))
        }

    # Life.

    def start(self) -> None:
        """Finds the drivers that are running, and begins to look after them; does not wait for ZooKeeper.

        Raises:
            SetupError: the drivers' logs can't be shown as the configuration wants it.
        """
        guarded = self._keyring.signs or self._zookeeper.auth_scheme is not None
        warn_if_open(self._zookeeper.hosts, guarded, self._log_settings.bind_address, self._tls)
        authentication = Authentication.of(self._security, self._tokens)
        self._logs = LogServer(self._log_settings, authentication, self._log_folder, self.host, self._tls)
        self._logs.start()
        for port, slot in list(self.slots.items()):
            try:
                slot.attach(time.monotonic())
            except ClusterError as error:
                log.error("slot %d can't be used: %s", port, error)
                del self.slots[port]
        for name, work in (("supervisor-slots", self._look_after), ("supervisor-cluster", self._take_part)):
            thread = threading.Thread(target=work, name=name, daemon=True)
            thread.start()
            self._threads.append(thread)
        log.info("supervisor %s on %s with slots %s", self.supervisor_id, self.host, list(self.ports))

    def wait(self, timeout: float | None = None) -> bool:
        """Waits for the end; returns whether it has come."""
        return self._stopping.wait(timeout)

    def stop(self, *, drivers: bool = False) -> None:
        """Ends the supervisor.

        Args:
            drivers: whether the drivers end too. As in Storm they continue otherwise, and a supervisor that is started
                again finds them.
        """
        self._stopping.set()
        self._wake.set()
        if self._lock is None:
            return
        for thread in self._threads:
            thread.join()
        self._pool.shutdown(cancel_futures=True)
        self.spares.close()
        if self._pulses is not None:
            self._pulses.close()
        if drivers:
            self.end_drivers()
        if self.view is not None:
            self.view.close()
        if self._session is not None:
            self._session.close()
        self._distributor.close()
        if self._logs is not None:
            self._logs.close()
        os.close(self._lock)
        self._lock = None

    def __enter__(self) -> Supervisor:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def drivers(self) -> dict[int, int]:
        """Returns port -> process id of the drivers that were started or found."""
        return {port: pid for port, slot in self.slots.items() if (pid := slot.pid) is not None}

    def end_drivers(self) -> None:
        """Ends all drivers, at last by force; returns when they are gone."""
        soft = time.monotonic() + self._settings.worker_shutdown_sleep_secs
        hard = soft + _KILL_SECS
        while time.monotonic() < hard:
            over = time.monotonic() > soft
            left = [slot for slot in self.slots.values() if not slot.stop(over)]
            if not left:
                return
            time.sleep(_LOOK_SECS)

    # The slots' thread.

    def _look_after(self) -> None:
        while not self._stopping.is_set():
            wanted = self._wanted()
            for port, slot in self.slots.items():
                try:
                    if slot.look(time.monotonic(), self.known, self._kept(slot) or wanted.get(port)):
                        self._wake.set()
                except Exception:
                    log.exception("slot %d", port)
            starting = (Phase.WAITING_FOR_CODE, Phase.WAITING_FOR_START)
            self.spares.keep(time.monotonic(), any(slot.slot.phase in starting for slot in self.slots.values()))
            self._wake.wait(_LOOK_SECS)
            self._wake.clear()

    def _wanted(self) -> dict[int, Wanted]:
        if self.view is None:
            return {}
        snapshot = self.view.snapshot()
        versions = snapshot.versions.get(ASSIGNMENTS, {})
        busy = {port: slot.slot.current for port, slot in self.slots.items() if slot.slot.current is not None}
        found: dict[int, Wanted] = {}
        for topology_id, assignment in sorted(snapshot.assignments.items()):
            if assignment.supervisor_id == self.supervisor_id and topology_id == assignment.topology_id:
                wanted = Wanted(assignment, versions.get(topology_id, 0))
                current = busy.get(assignment.port)
                if current is not None and current.assignment == assignment:
                    # A leader that signs it again changes only its version.
                    wanted = current
                other = found.setdefault(assignment.port, wanted)
                if other.topology_id != topology_id:
                    log.error("slot %d is assigned to %s and %s", assignment.port, other.topology_id, topology_id)
        return found

    def _kept(self, slot: SlotHost) -> Wanted | None:
        """Returns what runs in a slot if what is wanted of that can't be read: it continues, then."""
        current = slot.slot.current
        if current is None or self.view is None:
            return None
        return current if current.topology_id in self.view.snapshot().unread(ASSIGNMENTS) else None

    # What slots ask for.

    def topology(self, topology_id: str) -> tuple[StormBase, CodeManifest]:
        """Returns what is known of a topology.

        Raises:
            CodeError: nothing, or not all.
        """
        snapshot = None if self.view is None else self.view.snapshot()
        base = None if snapshot is None else snapshot.storms.get(topology_id)
        code = None if snapshot is None else snapshot.code.get(topology_id)
        if snapshot is not None and (base is None or code is None):
            problem = snapshot.unread(STORMS).get(topology_id) or snapshot.unread(CODE).get(topology_id)
            if problem is not None:
                raise CodeError(f"{topology_id} can't be started here: {problem.reason}")
        if base is None or code is None:
            raise CodeError(f"there is no {'code' if base else 'topology'} of that id in ZooKeeper: {topology_id}")
        if (base.topology_id, code.manifest.topology_id) != (topology_id, topology_id):
            raise CodeError(f"ZooKeeper's record of {topology_id} is another topology's")
        return base, code.manifest

    def run(self, work: Callable[[], Any]) -> Future[Any]:
        """Runs `work`, which may take long, on another thread; its end wakes the supervisor's loop."""
        future = self._pool.submit(work)
        future.add_done_callback(lambda done: self._wake.set())
        return future

    def spare(self, conf: Mapping[str, Any], slot: Path) -> DriverProcess | None:
        """Gives a slot to a spare driver, if there is one for such a topology."""
        return self.spares.take(conf, slot)

    def report(self, topology_id: str, message: str, port: int) -> None:
        """Writes an error to the place where users of the topology find it."""
        record = ErrorRecord(
            component=SYSTEM, task=-1, message=scrubbed(message)[:8000], time=time.time(), host=self.host, port=port
        )
        self._in_background(lambda state: state.add_error(topology_id, record))

    def driver_gone(self, topology_id: str, pid: int) -> None:
        """Removes the node by which a dead driver owned its topology: the next one need not wait until it expires."""

        def remove(state: ClusterState) -> None:
            found = state.get(Ownership, OWNERS, topology_id)
            if found is not None and (found[0].supervisor_id, found[0].pid) == (self.supervisor_id, pid):
                state.delete(OWNERS, topology_id, version=found[1])
            if self.view is not None and not self.view.snapshot().knows(topology_id):
                self._store.remove(topology_id)

        self._in_background(remove)

    def _in_background(self, work: Callable[[ClusterState], None]) -> None:
        session = self._session
        if session is None:
            return

        def guarded() -> None:
            try:
                work(ClusterState(session))
            except (ClusterError, KazooException) as error:
                log.warning("ZooKeeper: %s", error)

        with contextlib.suppress(RuntimeError):  # the pool is closed
            self._pool.submit(guarded)

    # The cluster's thread.

    def _take_part(self) -> None:
        """Connects, however long it takes, and registers the supervisor again and again."""
        while not self._stopping.is_set() and not self._connect():
            self._stopping.wait(1.0)
        pause = float(self._settings.heartbeat_secs)
        again = threading.Event()
        if self._session is not None:
            self._session.add_listener(lambda state: again.set() if state == "CONNECTED" else None)
        sweep_at = health_at = time.monotonic()
        while not self._stopping.is_set():
            self._register()
            if self._pulses is not None:
                self._pulses.put()
            if time.monotonic() >= sweep_at:
                sweep_at = time.monotonic() + _SWEEP_SECS
                self._in_background(lambda state: self._sweep_logs())
            if self._health.folder is not None and time.monotonic() >= health_at:
                health_at = time.monotonic() + HEALTH_SECS
                self._in_background(self._check_health)
            deadline = time.monotonic() + pause
            while not self._stopping.is_set() and time.monotonic() < deadline and not again.is_set():
                self._stopping.wait(min(0.1, pause))
            if again.is_set():
                # What the former session said of the machine goes with it.
                health_at = 0.0
            again.clear()

    def _check_health(self, state: ClusterState) -> None:
        """Runs the scripts, and says in ZooKeeper whether the machine is fit; what runs here is left alone."""
        why = why_unhealthy(check_health(self._health), fail_on_timeouts=self._health.fail_on_timeouts)
        if why != self._unhealthy:
            log.warning("this machine is %s", f"not fit: {why}" if why else "fit again")
        if why:
            record = Unhealthy(supervisor_id=self.supervisor_id, reason=scrubbed(why), time=time.time())
            state.create_ephemeral(record, UNHEALTHY, self.supervisor_id)
        elif state.stat(UNHEALTHY, self.supervisor_id) is not None:
            state.delete(UNHEALTHY, self.supervisor_id)
        self._unhealthy = why

    def _sweep_logs(self) -> None:
        """Removes logs that have been kept long enough; none while the list of topologies is unknown."""
        if self.view is None or self.view.stale is not None:
            return
        snapshot = self.view.snapshot()
        running = {slot.slot.current.topology_id for slot in self.slots.values() if slot.slot.current is not None}
        alive = {*snapshot.storms, *snapshot.unread(STORMS), *running}
        sweep(self._log_folder, alive, time.time(), 60.0 * self._log_settings.cleanup_age_mins)

    def _connect(self) -> bool:
        session = ZooKeeperSession(self._zookeeper, keyring=self._keyring)
        try:
            session.start()
        except UnavailableError as error:
            log.warning("%s", error)
            return False
        view = ClusterView(session, folders=(ASSIGNMENTS, STORMS, CODE, NIMBUSES))
        try:
            session.ensure_folders()
            view.start()
        except (ClusterError, KazooException) as error:
            log.warning("%s", error)
            session.close()
            return False
        view.on_change(lambda changed: self._wake.set() if ASSIGNMENTS in changed else None)
        self._session, self.view, self.known = session, view, True
        self._wake.set()
        return True

    def _register(self) -> None:
        if self._session is None or self._session.state != "CONNECTED":
            return
        info = SupervisorInfo(
            supervisor_id=self.supervisor_id,
            host=self.host,
            slots=self.ports,
            started_at=self._started_at,
            version=__version__,
            heartbeat_at=time.time(),
            logs="" if self._logs is None else self._logs.address,
        )
        try:
            ClusterState(self._session).create_ephemeral(info, SUPERVISORS, self.supervisor_id)
        except (ClusterError, KazooException) as error:
            log.warning("not registered: %s", error)

    def _make_distributor(self) -> CodeDistributor:
        def holders(topology_id: str) -> list[str]:
            snapshot = None if self.view is None else self.view.snapshot()
            code = None if snapshot is None else snapshot.code.get(topology_id)
            # Only whose registration counts: anybody could have written an address below the code.
            return [] if snapshot is None or code is None else sorted(code.replicas & snapshot.nimbuses.keys())

        return make_distributor(self._conf, Peers(holders=holders, auth=auth_of(self._tokens), tls=self._tls))


def _absolute(conf: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the configuration with whole paths: drivers have another working directory."""
    files = {key: str(Path(conf[key]).absolute()) for key in _FILES if conf.get(key) is not None}
    return {**conf, **files}


def _lock(folder: Path) -> int:
    try:
        return locked(folder / "lock")
    except BlockingIOError:
        raise ClusterError(f"another supervisor runs in {folder}; give each its own {Config.STORM_LOCAL_DIR}") from None


def _kept_id(folder: Path) -> str:
    """Returns the supervisor's id, the same after every start."""
    path = folder / "id"
    with contextlib.suppress(FileNotFoundError):
        kept = path.read_text().strip()
        if kept:
            return kept
    made = uuid.uuid4().hex
    temporary = path.with_name(".id.tmp")
    temporary.write_text(made + "\n")
    temporary.replace(path)
    return made
