"""A stream that a container runs as one topology, on its Spark session.

<bus>/<stream>-<id>/fused/topology       the checkpoint
<bus>/<stream>-<id>/fused/dead-letters   messages that failed too often
"""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from storm_on_spark.api.config import Config
from storm_on_spark.api.errors import CheckpointError
from storm_on_spark.api.topology import Topology
from storm_on_spark.plan.live_homes import why_not_live
from storm_on_spark.runtime.processes.sessions import started_at, this_kernel
from storm_on_spark.xd.container.instance import ATTEMPTS
from storm_on_spark.xd.container.layout import StreamThere
from storm_on_spark.xd.container.session import SharedSession
from storm_on_spark.xd.fused import build
from storm_on_spark.xd.manifest import parse_manifest
from storm_on_spark.xd.modules.local_registry import LocalRegistry
from storm_on_spark.xd.modules.messages.dead_letters import DeadLetters, GivesUp
from storm_on_spark.xd.parts import Part, parts_of, types_of
from storm_on_spark.xd.tree.nodes import ModuleName

if TYPE_CHECKING:
    from storm_on_spark.spark.checkpoint.stored import CheckpointFence
    from storm_on_spark.spark.running.topology import TopologyQuery

logger = logging.getLogger(__name__)

_FIRST_RETRY_SECS: Final = 1.0
_MOST_RETRY_SECS: Final = 10.0
_GRACE_SECS: Final = 2.0
"""How long a container on another machine may continue before it notices that the stream has moved."""
_PATIENCE_SECS: Final = 10.0
"""How long the processes of a container on this machine may take to end."""


@dataclass(frozen=True)
class FusedPlan:
    """The definition of a fused stream.

    Args:
        there: the stream.
        properties: the manifest of its deployment.
        registry: the modules.
        container: the id of the container.
        bus: the folder that all containers share.
    """

    there: StreamThere
    properties: Mapping[str, str]
    registry: LocalRegistry
    container: str
    bus: Path

    @property
    def folder(self) -> Path:
        """The folder of its checkpoint and dead letters."""
        return (self.bus / self.there.id) / "fused"

    @property
    def checkpoint(self) -> Path:
        """The checkpoint of its topology."""
        return self.folder / "topology"

    def modules(self) -> set[ModuleName]:
        """Returns the instances, which must all be in the same container."""
        types = types_of(self.there.parsed())
        return {
            ModuleName(self.there.name, types[label], label, number)
            for label, each in parse_manifest(self.properties, list(types)).items()
            for number in range(1, each.count + 1)
        }

    def options(self, label: str) -> dict[str, str]:
        """Returns the options of a module with defaults; those of a composed module's parts with labels before them."""
        found: dict[str, str] = {}
        for part in self._parts():
            if part.origin.label == label:
                texts = part.declaration.texts(part.options, self.there.name)
                found.update({f"{part.prefix}{name}": text for name, text in texts.items()})
        return found

    def topology(self) -> Topology:
        """Returns the topology. If the source can give messages up, those become dead letters.

        Raises:
            DslError, ManifestError: the stream can't be one topology.
        """
        stream = self.there.parsed()
        manifest = parse_manifest(self.properties, [module.label for module in stream.modules])
        source = self._parts()[0].component(self.there.name, self.there.definition)
        letters = DeadLetters(str(self.folder / "dead-letters"), ATTEMPTS) if isinstance(source, GivesUp) else None
        return build(
            stream,
            self.there.definition,
            letters,
            self.registry,
            {label: each.count for label, each in manifest.items()},
            {label: self.container for label, each in manifest.items() if each.track_history},
        )

    def _parts(self) -> list[Part]:
        return parts_of(self.there.parsed(), self.there.definition, self.registry)


class FusedStream:
    """Runs a fused stream until it is stopped.

    A failed topology restarts from its checkpoint, after a longer pause each time. If its source is exhausted, it ends
    and counts as deployed.

    Args:
        plan: the stream.
        conf: of the container. Keys of topologies and Spark apply.
        session: of the container.
        epoch: grows each time the stream is allocated to a container.
        on_state: called with None when it is running, and with the reason when it fails.
    """

    def __init__(
        self,
        plan: FusedPlan,
        conf: Mapping[str, Any],
        session: SharedSession,
        epoch: int,
        on_state: Callable[[Exception | None], None],
    ) -> None:
        self._plan = plan
        self._name = plan.there.name
        kept = {key: value for key, value in conf.items() if key.startswith(("topology.", "spark."))}
        self._conf = {Config.TOPOLOGY_DURABILITY: "process", **kept, Config.TOPOLOGY_FAIL_FAST: False}
        self._session = session
        self._epoch = epoch
        self._on_state = on_state
        self.way = ""
        """`real time`, or `micro-batches` and why; empty until it runs."""
        self._stopped = threading.Event()
        self._wake = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"fused-{self._name}", daemon=True)

    def start(self) -> None:
        """Starts it."""
        self._thread.start()

    def signal(self) -> None:
        """Requests its end without waiting."""
        self._stopped.set()
        self._wake.set()

    def stop(self) -> None:
        """Waits until it has ended."""
        self.signal()
        if self._thread.is_alive():
            self._thread.join()

    def _run(self) -> None:
        pause = _FIRST_RETRY_SECS
        while not self._stopped.is_set():
            began = time.monotonic()
            try:
                self._live()
                return
            except Exception as error:
                if self._stopped.is_set():
                    return
                if time.monotonic() - began > _MOST_RETRY_SECS:
                    pause = _FIRST_RETRY_SECS
                logger.warning("Fused stream %s: %s; trying again in %.0f s", self._name, error, pause)
                self._on_state(error)
            self._stopped.wait(pause)
            pause = min(_MOST_RETRY_SECS, 2 * pause)

    def _live(self) -> None:
        from storm_on_spark.spark.compiled import compile_topology

        compiled = compile_topology(self._plan.topology(), self._conf)
        compiled.check()
        spark = self._session.get()
        fence = self._claimed()
        try:
            if self._stopped.is_set():
                return
            reason = why_not_live(compiled.expected(spark, checkpoint=self._plan.checkpoint))
            self.way = f"micro-batches: {reason}" if reason else "real time"
            logger.info("Fused stream %s runs in %s", self._name, self.way)
            query = compiled.start(spark, self._name, self._plan.checkpoint, fence=fence)
            try:
                self._watch(query)
            finally:
                query.stop()
            if query.failure is not None and not self._stopped.is_set():
                raise query.failure
        finally:
            fence.release()

    def _watch(self, query: TopologyQuery) -> None:
        self._wake.clear()
        query.at_end(self._wake.set)
        self._on_state(None)
        if self._stopped.is_set() or not query.isActive:
            return
        self._wake.wait()
        if not self._stopped.is_set():
            query.wait_until(lambda: not query.isActive)
            if query.failure is None:
                logger.info("Fused stream %s: its source has nothing more", self._name)

    def _claimed(self) -> CheckpointFence:
        """Makes this container the owner of the checkpoint.

        Raises:
            CheckpointError: a later owner of the stream has it, or an earlier owner does not release it.
        """
        from storm_on_spark.spark.checkpoint.owner import Owner
        from storm_on_spark.spark.checkpoint.stored import take_over

        pid = os.getpid()
        # The session of a container that a shell started may have other queries; leave them alone.
        session = pid if os.getsid(0) == pid else 0
        scope = self._plan.there.id
        owner = Owner(scope, self._epoch, self._plan.container, this_kernel(), session, started_at(session) or "")
        self._plan.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        fence = take_over(str(self._plan.checkpoint), owner, None)
        try:
            fence.await_former(_GRACE_SECS, _PATIENCE_SECS)
        except CheckpointError:
            fence.release()
            raise
        return fence
