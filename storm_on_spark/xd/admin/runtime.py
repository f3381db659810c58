"""The streams that are deployed, for REST: any admin answers from its copy, and writes orders for the leader."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import ClassVar, Final, TypeVar

from storm_on_spark.cluster.errors import NotFoundError, RecordError, TransitionError, UnavailableError
from storm_on_spark.cluster.zookeeper.tree import Tree
from storm_on_spark.xd.admin.picture import Picture
from storm_on_spark.xd.admin.rest.schemas import ContainerView, DeploymentView, RuntimeModuleView
from storm_on_spark.xd.dsl import Stream, Tap, parse_stream
from storm_on_spark.xd.manifest import ManifestError, ModuleManifest, check_fused, parse_manifest
from storm_on_spark.xd.tree import nodes
from storm_on_spark.xd.tree.mirror import Mirror
from storm_on_spark.xd.tree.nodes import Definition, Order, StatusNode

_TAKEN_SECS: Final = 20.0
"""How long an order waits for a leader."""
_DONE_SECS: Final = 30.0
"""How long modules may take to start or end before a request is answered."""

_PARTICIPLES: Final = {
    "deploy": "deployed",
    "undeploy": "undeployed",
    "launch": "launched",
    "stop": "stopped",
    "restart": "restarted",
}

T = TypeVar("T")


class ClusterRuntime:
    """The runtime of an admin.

    Args:
        tree: in ZooKeeper.
        mirror: the copy of the tree.
        changed: notified after every change of the copy.
    """

    kind: ClassVar[nodes.Kind] = "stream"

    def __init__(self, tree: Tree, mirror: Mirror, changed: threading.Condition) -> None:
        self._tree = tree
        self._mirror = mirror
        self._changed = changed
        self._picture = Picture(mirror)

    def deploy(self, name: str, properties: Mapping[str, str], fused: bool) -> DeploymentView:
        """See `core.Runtime`."""
        self.check(name, self.definition(name), properties, fused=fused)
        if self.deployment(name) is not None and self._is_stored(name):
            raise TransitionError(f"The {self.kind} named '{name}' is already deployed")
        order = Order(action="deploy", stream=name, properties=dict(properties), fused=fused, kind=self.kind)
        self._order(order)
        found = self._wait(lambda: self._settled(name), _DONE_SECS) or self.deployment(name)
        if found is None:
            raise NotFoundError(f"There is no {self.kind} named '{name}': it was destroyed, or undeployed at once")
        return found

    def check(self, name: str, definition: str, properties: Mapping[str, str], *, fused: bool) -> None:
        """Checks a manifest.

        Raises:
            RecordError: it is invalid.
        """
        stream = parse_stream(definition, name)
        manifest = checked_manifest(properties, [module.label for module in stream.modules])
        if fused:
            try:
                check_fused(stream, manifest)
            except ManifestError as error:
                raise RecordError(str(error)) from error
        self._check_taps(name, stream, fused)

    def undeploy(self, name: str) -> None:
        """See `core.Runtime`."""
        if self.deployment(name) is None and not self._is_stored(name):
            raise TransitionError(f"The {self.kind} named '{name}' is not currently deployed")
        self._order(Order(action="undeploy", stream=name, kind=self.kind))
        if not self._wait(lambda: self.deployment(name) is None, _DONE_SECS):
            raise UnavailableError(
                f"The modules of {self.kind} '{name}' have not ended within {_DONE_SECS:g} s; they are still ending"
            )

    def _is_stored(self, name: str) -> bool:
        """Returns whether ZooKeeper has a deployment: the copy may lag behind what another admin has returned."""
        return self._tree.stat(f"{nodes.DEPLOYMENTS[self.kind]}/{name}") is not None

    def deployment(self, name: str) -> DeploymentView | None:
        """See `core.Runtime`."""
        found = self._picture.deployed(self.kind, name)
        return None if found is None else self._picture.deployment_view(found, self._picture.containers())

    def deployments(self) -> Mapping[str, DeploymentView]:
        """See `core.Runtime`."""
        there = self._picture.containers()
        return {each.name: self._picture.deployment_view(each, there) for each in self._picture.all_deployed(self.kind)}

    def containers(self) -> Sequence[ContainerView]:
        """See `core.Runtime`."""
        return self._picture.container_views()

    def modules(self) -> Sequence[RuntimeModuleView]:
        """See `core.Runtime`."""
        return self._picture.module_views()

    def _check_taps(self, name: str, stream: Stream, fused: bool) -> None:
        """Refuses a tap on a stream that runs as one topology: between its modules there is nothing to tap.

        Raises:
            RecordError: the stream taps such a stream, or is tapped and would become one.
        """
        deployed = self._picture.all_deployed("stream") if fused or isinstance(stream.source, Tap) else []
        for each in deployed:
            if isinstance(stream.source, Tap) and each.name == stream.source.name and each.deployment.fused:
                raise RecordError(f"Stream '{each.name}' runs as one topology (fused), which can't be tapped")
            source = each.whole.source if isinstance(each.whole, Stream) else None
            if fused and isinstance(source, Tap) and source.name == name:
                raise RecordError(f"Stream '{name}' is tapped by '{each.name}', so it can't be one topology")

    def definition(self, name: str) -> str:
        """Reads the text from ZooKeeper: the copy may not show a new stream yet."""
        found = self._tree.read(Definition, f"{nodes.DEFINITIONS[self.kind]}/{name}")
        if found is None:
            raise NotFoundError(f"There is no {self.kind} named '{name}' that can be read")
        return found.definition

    def _order(self, order: Order) -> int:
        """Sends a request to the leader, and returns its number once the leader has accepted it."""
        path = self._tree.add(order, nodes.REQUESTED, lambda number: f"{nodes.REQUEST}{number:010}")
        # The copy may not show the request yet.
        shown = self._wait(lambda: self._mirror.stat(path) is not None or self._is_gone(path), _TAKEN_SECS)
        if not shown or not self._wait(lambda: self._mirror.stat(path) is None, _TAKEN_SECS):
            raise UnavailableError(
                f"No leader has taken up within {_TAKEN_SECS:g} s that {order.kind} '{order.stream}' is to be "
                f"{_PARTICIPLES[order.action]}; the next one will"
            )
        return int(path.rpartition(nodes.REQUEST)[2])

    def _is_gone(self, path: str) -> bool:
        try:
            return self._tree.stat(path) is None
        except UnavailableError:
            return False

    def _settled(self, name: str) -> DeploymentView | None:
        """Returns a deployment once the leader has placed it and each module runs or can't run."""
        found = self.deployment(name)
        noted = self._mirror.value(f"{nodes.DEPLOYMENTS[self.kind]}/{name}/status", StatusNode)
        return found if found is not None and noted is not None and noted.state == found.state != "deploying" else None

    def _wait(self, found: Callable[[], T], secs: float) -> T | None:
        """Returns the result of `found` as soon as it is true; None if that takes too long."""
        until = time.monotonic() + secs
        with self._changed:
            while True:
                result = found()
                if result:
                    return result
                left = until - time.monotonic()
                if left <= 0:
                    return None
                self._changed.wait(min(left, 0.5))


def checked_manifest(properties: Mapping[str, str], labels: Sequence[str]) -> dict[str, ModuleManifest]:
    """Returns a manifest's properties of each module.

    Raises:
        RecordError: it is invalid.
    """
    try:
        return parse_manifest(properties, labels)
    except ManifestError as error:
        raise RecordError(str(error)) from error
