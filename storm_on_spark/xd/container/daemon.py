"""A container as a whole: it runs the modules that the leader allocates to it, and reports them in ZooKeeper."""

from __future__ import annotations

import contextlib
import logging
import os
import socket
import threading
import uuid
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final

import msgspec

from storm_on_spark.api.config import validate_conf
from storm_on_spark.api.errors import StormError
from storm_on_spark.cluster.errors import ClusterError, ConflictError, UnavailableError
from storm_on_spark.cluster.security.keyring import Keyring
from storm_on_spark.cluster.security.settings import SecuritySettings
from storm_on_spark.cluster.zookeeper.changes import Create
from storm_on_spark.cluster.zookeeper.session import ZooKeeperSession
from storm_on_spark.cluster.zookeeper.tree import Tree
from storm_on_spark.runtime.processes.closing import Service
from storm_on_spark.xd.bus import BusSettings, check_bus, make_bus
from storm_on_spark.xd.container.fused import FusedPlan, FusedStream
from storm_on_spark.xd.container.instance import Instance
from storm_on_spark.xd.container.jobs.steps import Steps
from storm_on_spark.xd.container.layout import Blueprint, StreamThere
from storm_on_spark.xd.container.metrics import Meter
from storm_on_spark.xd.container.session import SharedSession
from storm_on_spark.xd.dsl import DslError, parse_job
from storm_on_spark.xd.modules.declaration import home
from storm_on_spark.xd.steps import check_steps
from storm_on_spark.xd.tree import nodes
from storm_on_spark.xd.tree.mirror import Mirror
from storm_on_spark.xd.tree.modules import ClusterRegistry
from storm_on_spark.xd.tree.nodes import (
    Definition,
    Deployment,
    Metadata,
    ModuleName,
    ModuleNode,
    StatusNode,
)
from storm_on_spark.xd.tree.session import connected, tree_id, zookeeper_settings

logger = logging.getLogger(__name__)

_LOOK_SECS: Final = 5.0
_RETRY_SECS: Final = 1.0
_POLL_SECS: Final = 0.1
_LONGEST_ERROR: Final = 2_000
"""Most characters of a reason; the error of a failed topology contains all of its traces."""


class Container(Service):
    """A container.

    When its ZooKeeper session ends, the leader moves its modules to other containers. The container then ends them and
    returns with another id.

    Args:
        conf: the configuration.
        groups: the groups that it is in.
        attributes: name -> value, for the criteria of deployments.
        bus: the folder that all containers share; in `home()` for None.
        ended: set by the caller to end the container, even while it waits for ZooKeeper.

    Example:
        >>> with Container({"zk.client.connect": "localhost:2181"}) as container:      # doctest: +SKIP
        ...     container.container_id
        '2ebbbc9b-63ac-4da4-aa32-e39d69eb546b'
    """

    def __init__(
        self,
        conf: Mapping[str, Any],
        groups: Sequence[str] = (),
        attributes: Mapping[str, str] | None = None,
        bus: Path | None = None,
        ended: threading.Event | None = None,
    ) -> None:
        validate_conf(conf, "xd-container")
        self._settings = zookeeper_settings(conf)
        self._keyring = Keyring.of(SecuritySettings.of(conf))
        check_bus(BusSettings.of(conf))
        self._conf = dict(conf)
        self._spark = SharedSession(conf)
        self._groups, self._attributes = tuple(groups), dict(attributes or {})
        self._bus = home() / "bus" if bus is None else bus
        self._ended = threading.Event() if ended is None else ended
        self._up = threading.Event()
        self._life: _Life | None = None
        self._thread = threading.Thread(target=self._run, name="xd-container", daemon=True)
        self.container_id = ""
        """Its present id; empty while it has none."""

    def start(self) -> None:
        """Starts the container; returns once it is registered in ZooKeeper, without a time limit."""
        self._thread.start()
        while not self._up.wait(_POLL_SECS) and not self._ended.is_set():
            pass

    def close(self) -> None:
        """Ends its modules, then unregisters."""
        self._ended.set()
        self._up.set()
        if (life := self._life) is not None:
            life.wake()
        if self._thread.is_alive():
            self._thread.join()
        self._spark.close()

    def _run(self) -> None:
        while not self._ended.is_set():
            session = connected(self._settings, self._ended, self._keyring)
            if session is None:
                return
            life = self._life = _Life(session, self._bus, self._conf, self._spark, self._ended)
            try:
                life.enter(self._groups, self._attributes)
                self.container_id = life.container_id
                logger.info("Container %s is up", life.container_id)
                self._up.set()
                life.work()
            except ClusterError as error:
                logger.warning("Container: %r; coming back with another id", error)
                self._ended.wait(_RETRY_SECS)
            finally:
                self.container_id = ""
                life.leave()


class _Life:
    """A container under one id, during one ZooKeeper session."""

    def __init__(
        self,
        session: ZooKeeperSession,
        bus: Path,
        conf: Mapping[str, Any],
        spark: SharedSession,
        ended: threading.Event,
    ) -> None:
        self.container_id = str(uuid.uuid4())
        self._session, self._tree = session, Tree(session)
        self._folder = bus
        self._conf, self._spark = conf, spark
        self._bus = make_bus(BusSettings.of(conf), bus, self._may_go_on, self._exists, partial(tree_id, self._tree))
        self._ended = ended
        self._lost = threading.Event()
        self._wake = threading.Event()
        self._registry = ClusterRegistry(self._tree)
        #: Modules of a fused stream share one runner, and start and end together.
        self._running: dict[ModuleName, tuple[ModuleNode, Instance | FusedStream | None]] = {}
        #: States of instances to report: running, or the reason why not.
        self._news: dict[ModuleName, tuple[StatusNode, Metadata]] = {}
        self._lock = threading.Lock()
        self._mirror: Mirror | None = None
        self._meter = Meter()
        self._node: nodes.ContainerNode | None = None
        self._steps = Steps(self.container_id, self._tree, self._registry, bus / "jobs", self._wake.set)
        self._remove = session.add_listener(self._on_state)

    def enter(self, groups: tuple[str, ...], attributes: dict[str, str]) -> None:
        """Creates the container's nodes."""
        host = socket.gethostname()
        node = self._node = nodes.ContainerNode(
            host=host,
            ip=_address(),
            pid=os.getpid(),
            groups=groups,
            attributes=attributes,
            metrics=self._meter.first(),
        )
        failed = self._tree.change(
            Create(f"{nodes.ALLOCATED}/{self.container_id}", nodes.EMPTY),
            Create(f"{nodes.CONTAINERS}/{self.container_id}", node, ephemeral=True),
        )
        if failed is not None:
            raise failed[1]
        # Changes of other containers do not wake this one.
        self._mirror = Mirror(self._tree, f"{nodes.ALLOCATED}/{self.container_id}", self._wake.set)

    def work(self) -> None:
        """Runs the allocated modules until the container ends or its session is lost."""
        while not self._ended.is_set() and not self._lost.is_set():
            self._wake.wait(_LOOK_SECS)
            self._wake.clear()
            if self._ended.is_set() or self._lost.is_set():
                return
            self._look()

    def wake(self) -> None:
        """Makes it check its allocations immediately."""
        self._wake.set()

    def leave(self) -> None:
        """Ends all modules, then the session, which removes all ephemeral nodes."""
        self._remove()
        self._steps.close()
        # Their nodes end with the session. Removing each of them would wait for a ZooKeeper that may have ended.
        self._stop(list(self._running), leaving=True)
        if self._mirror is not None:
            self._mirror.close()
        self._bus.close()
        self._session.close()

    def _on_state(self, state: str) -> None:
        if state == "LOST":
            logger.warning("Container %s has lost its session: its modules end", self.container_id)
            self._lost.set()
            self._steps.signal()
        self._wake.set()

    def _look(self) -> None:
        assert self._mirror is not None
        folder = f"{nodes.ALLOCATED}/{self.container_id}"
        wanted: dict[ModuleName, ModuleNode] = {}
        for text in self._mirror.children(folder):
            name = ModuleName.parse(text)
            node = self._mirror.value(f"{folder}/{text}", ModuleNode)
            if name is not None and node is not None:
                wanted[name] = node
        stale = {name for name, (node, _) in self._running.items() if wanted.get(name) != node}
        broken = {name.stream for name in stale if self._running[name][0].fused}
        self._stop([name for name in self._running if name in stale or name.stream in broken])
        for name, node in wanted.items():
            if node.fused:
                continue
            if name not in self._running:
                self._start(name, node)
        for stream in {name.stream for name, node in wanted.items() if node.fused and name not in self._running}:
            self._start_fused(stream, {name: node for name, node in wanted.items() if name.stream == stream})
        try:
            self._tell()
            self._steps.look(self._mirror, wanted)
            self._steps.tell()
            self._tell_metrics()
        except ClusterError as error:
            # Modules and steps continue during the session. The rest is reported when ZooKeeper is back.
            logger.warning("Container %s can't tell ZooKeeper of its modules yet: %r", self.container_id, error)

    def _start_fused(self, stream: str, modules: Mapping[ModuleName, ModuleNode]) -> None:
        """Starts a stream as one topology, once all of its modules are allocated to this container."""
        running: FusedStream | None = None
        metadata = {name: Metadata(options={}, properties=_properties(node)) for name, node in modules.items()}

        def note(error: Exception | None) -> None:
            state = "deployed" if error is None else "failed"
            status = StatusNode(state=state, error="" if error is None else str(error)[:_LONGEST_ERROR])
            way = {"fused": running.way} if running is not None and running.way else {}
            for name in modules:
                told = msgspec.structs.replace(metadata[name], properties=metadata[name].properties | way)
                self._note(name, status, told)

        try:
            there = self._find(stream)
            deployment = self._tree.read(Deployment, f"{nodes.STREAM_DEPLOYMENTS}/{stream}")
            if there is None or deployment is None:
                return
            plan = FusedPlan(there, deployment.properties, self._registry, self.container_id, self._folder)
            if plan.modules() != set(modules):
                return
            for name, node in modules.items():
                metadata[name] = Metadata(options=plan.options(name.label), properties=_properties(node))
            # Wrong options are found before Spark is started.
            plan.topology()
            running = FusedStream(plan, self._conf, self._spark, self._epoch(modules), note)
        except UnavailableError as error:
            logger.warning("Stream %s waits for ZooKeeper: %r", stream, error)
            return
        except (DslError, StormError) as error:
            logger.error("Stream %s can't be deployed: %s", stream, error)
            note(error)
        for name, node in modules.items():
            self._running[name] = node, running
        if running is not None:
            logger.info("Deploying stream %s as one topology", stream)
            running.start()

    def _epoch(self, modules: Iterable[ModuleName]) -> int:
        """Returns ZooKeeper's transaction id of the nodes, which grows with every allocation in any container."""
        assert self._mirror is not None
        stats = [self._mirror.stat(f"{nodes.ALLOCATED}/{self.container_id}/{name}") for name in modules]
        return max((stat.czxid for stat in stats if stat is not None), default=0)

    def _start(self, name: ModuleName, node: ModuleNode) -> None:
        instance: Instance | None = None
        metadata = Metadata(options={}, properties=_properties(node))
        try:
            if name.kind == "job":
                if not self._take_step(name, node):
                    return
                self._running[name] = node, None
                return
            blueprint = self._blueprint(name, node)
            if blueprint is None:
                # It was destroyed meanwhile.
                return
            metadata = Metadata(options=blueprint.options(), properties=_properties(node))
            deployed = StatusNode(state="deployed"), metadata
            instance = Instance(
                str(name), blueprint.chain, self._bus, blueprint.place, lambda: self._note(name, *deployed)
            )
        except UnavailableError as error:
            logger.warning("Module %s waits for ZooKeeper: %r", name, error)
            return
        except (DslError, StormError) as error:
            logger.error("Module %s can't be deployed: %s", name, error)
            self._note(name, StatusNode(state="failed", error=str(error)), metadata)
        self._running[name] = node, instance
        if instance is not None:
            logger.info("Deploying module %s", name)
            instance.start()

    def _take_step(self, name: ModuleName, node: ModuleNode) -> bool:
        """Prepares a step of a job to run; returns whether the job exists."""
        found = self._tree.read(Definition, f"{nodes.JOBS}/{name.stream}")
        if found is None:
            return False
        parts = check_steps(parse_job(found.definition, name.stream), found.definition, self._registry)
        options = next((dict(part.options) for part in parts if part.label == name.label), {})
        texts = next((part.declaration.texts(options, name.stream) for part in parts if part.label == name.label), {})
        self._note(name, StatusNode(state="deployed"), Metadata(options=texts, properties=_properties(node)))
        return True

    def _blueprint(self, name: ModuleName, node: ModuleNode) -> Blueprint | None:
        stream = self._find(name.stream)
        deployment = self._tree.read(Deployment, f"{nodes.STREAM_DEPLOYMENTS}/{name.stream}")
        if stream is None or deployment is None:
            return None
        return Blueprint(stream, name, node, deployment.properties, self._registry, self._find, self.container_id)

    def _find(self, name: str) -> StreamThere | None:
        found, stat = self._tree.read_with_stat(Definition, f"{nodes.STREAMS}/{name}")
        if found is None or stat is None:
            return None
        return StreamThere(name, f"{stat.ctime:x}-{stat.czxid:x}", found.definition)

    def _exists(self, stream: str) -> bool:
        """Whether a stream, by its name on the bus, still exists. True if ZooKeeper can't be asked now."""
        try:
            found = self._find(stream.rsplit("-", 2)[0])
        except ClusterError:
            return True
        return found is not None and found.id == stream

    def _may_go_on(self, reader: str) -> bool:
        """Whether an instance, by its name on the bus, is allocated. True if ZooKeeper can't be asked now."""
        there, label, sequence = reader.split(".")
        stream = there.rsplit("-", 2)[0]
        try:
            found = self._find(stream)
            if found is None or found.id != there:
                return False
            for container in self._tree.children(nodes.ALLOCATED):
                modules = map(ModuleName.parse, self._tree.children(f"{nodes.ALLOCATED}/{container}"))
                if any(
                    each is not None and (each.stream, each.label, str(each.sequence)) == (stream, label, sequence)
                    for each in modules
                ):
                    return True
        except ClusterError:
            return True
        return False

    def _stop(self, names: Sequence[ModuleName], *, leaving: bool = False) -> None:
        for name in names:
            _, instance = self._running[name]
            if instance is not None:
                instance.signal()
        for name in names:
            _, instance = self._running.pop(name)
            if instance is not None:
                instance.stop()
                self._meter.ended(str(name), *_counts(instance))
                logger.info("Undeployed module %s", name)
            with self._lock:
                self._news.pop(name, None)
            if not leaving and not self._lost.is_set():
                with contextlib.suppress(ClusterError):
                    self._tree.delete(self._leaf(name))

    def _note(self, name: ModuleName, status: StatusNode, metadata: Metadata) -> None:
        with self._lock:
            self._news[name] = status, metadata
        self._wake.set()

    def _tell(self) -> None:
        """Reports new states of the modules.

        Raises:
            ClusterError: ZooKeeper is unavailable. The next check reports the rest.
        """
        with self._lock:
            news = dict(self._news)
        for name, told in news.items():
            status, metadata = told
            own = f"{nodes.ALLOCATED}/{self.container_id}/{name}"
            # A module that is no longer allocated has no node to report below.
            with contextlib.suppress(ConflictError):
                self._tree.create_ephemeral(metadata, f"{own}/metadata")
                self._tree.create_ephemeral(status, f"{own}/status")
                if status.state == "deployed":
                    self._tree.create_ephemeral(metadata, self._leaf(name))
            with self._lock:
                if self._news.get(name) is told:
                    del self._news[name]

    def _tell_metrics(self) -> None:
        """Updates the container's node if its metrics have changed."""
        running = ((name, instance) for name, (_, instance) in self._running.items() if instance is not None)
        metrics = self._meter.next({str(name): _counts(instance) for name, instance in running})
        if metrics is not None and self._node is not None:
            node = msgspec.structs.replace(self._node, metrics=metrics)
            self._tree.create_ephemeral(node, f"{nodes.CONTAINERS}/{self.container_id}")

    def _leaf(self, name: ModuleName) -> str:
        return f"{nodes.DEPLOYMENTS[name.kind]}/{name.stream}/modules/{name.own}.{self.container_id}"


def _counts(instance: Instance | FusedStream) -> tuple[int, int]:
    """Returns the messages that an instance received and emitted. A fused stream does not count them."""
    return (instance.taken, instance.emitted) if isinstance(instance, Instance) else (0, 0)


def _properties(node: ModuleNode) -> dict[str, str]:
    return {"count": str(node.count), "sequence": str(node.sequence)}


def _address() -> str:
    try:
        return socket.gethostbyname(socket.gethostname())
    except OSError:
        return "127.0.0.1"
