"""The rounds of the leading admin: it accepts users' requests, places modules, and records the outcome.

Every round starts from the tree alone, so the next leader continues where this one ended. Every change is conditional
on the leadership, and on the version of the deployment that it was decided on.
"""

from __future__ import annotations

import logging
import re
from collections import Counter
from collections.abc import Mapping
from typing import Final

import msgspec

from storm_on_spark.cluster.errors import ConflictError, RecordError
from storm_on_spark.cluster.zookeeper.changes import Change, Create, Delete, Fence, Put
from storm_on_spark.cluster.zookeeper.tree import Tree
from storm_on_spark.xd.admin.jobs.executions import Executions
from storm_on_spark.xd.admin.picture import Allocated, Deployed, Picture, parsed_as
from storm_on_spark.xd.admin.placement import EVERY, Instance, Request, place, place_together
from storm_on_spark.xd.dsl import DslError, Stream, Tap
from storm_on_spark.xd.manifest import ManifestError, ModuleManifest, parse_manifest
from storm_on_spark.xd.tree import nodes
from storm_on_spark.xd.tree.mirror import Mirror
from storm_on_spark.xd.tree.nodes import ContainerNode, Deployment, Kind, ModuleNode, Order, StatusNode, TapNode

logger = logging.getLogger(__name__)

_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*", re.ASCII)
_REQUEST: Final = re.compile(rf"{nodes.REQUEST}[0-9]{{10}}")
_MOST_SPENT: Final = 100_000
_ERAS: Final = 1_000_000
"""How often the number of instances may change within one deployment."""


class Leader:
    """The work of the leader; one thread calls it.

    Args:
        mirror: the copy of the tree.
        tree: in ZooKeeper, for what is written.
    """

    def __init__(self, mirror: Mirror, tree: Tree) -> None:
        self._mirror = mirror
        self._tree = tree
        self._picture = Picture(mirror)
        self._executions = Executions(mirror, tree)
        #: Modules without a container, by stream or job, that a warning has named already.
        self._warned: dict[tuple[Kind, str], set[str]] = {}
        #: Executed orders that the copy still shows.
        self._taken: set[str] = set()
        #: Executed orders -> ZooKeeper's transaction id of their creation. An order with that path that appears again
        #: was copied.
        self._spent: dict[str, int] = {}
        #: Invalid orders that a warning has named already.
        self._dropped: set[str] = set()
        #: Each stream or job, and the containers, as they were when nothing was left to do for it.
        self._settled: dict[tuple[Kind, str], object] = {}

    def round(self, fence: Fence, session_id: int | None) -> None:
        """Runs one round.

        Args:
            fence: the leadership.
            session_id: of this admin, which owns the states that it writes.

        Raises:
            FencedError: another admin leads.
            UnavailableError: ZooKeeper is away.
        """
        self._take_orders(fence)
        there = self._picture.containers()
        every = self._picture.all_deployed()
        self._executions.round(fence, every, there)
        load = Counter(each.container for deployed in every for each in deployed.allocated)
        self._settled = {each.key: self._settled.get(each.key) for each in every}
        for deployed in every:
            now = deployed, self._mirror.stat(f"{deployed.path}/status"), there, session_id
            if self._settled[deployed.key] == now or self._executions.holds(deployed, there):
                continue
            try:
                if deployed.deployment.going:
                    self._end(fence, deployed)
                elif not self._place(fence, deployed, there, load) and not self._note(
                    fence, deployed, there, session_id
                ):
                    self._settled[deployed.key] = now
            except ConflictError as error:
                logger.debug("%s %s waits for the next round: %s", *deployed.key, error)
        self._clean(fence, there)

    def _take_orders(self, fence: Fence) -> None:
        busy: set[tuple[Kind, str]] = set()
        names = self._mirror.children(nodes.REQUESTED)
        self._taken.intersection_update(f"{nodes.REQUESTED}/{name}" for name in names)
        for name in names:
            if not name.startswith(nodes.REQUEST):
                continue
            path = f"{nodes.REQUESTED}/{name}"
            order = self._mirror.value(path, Order)
            if order is None or not _REQUEST.fullmatch(name) or not _NAME.fullmatch(order.stream):
                self._drop(fence, path, "it can't be read")
                continue
            if self._is_copy(path):
                self._drop(fence, path, "it was executed before, and someone wrote it again")
                continue
            key = order.kind, order.stream
            if key in busy or path in self._taken:
                busy.add(key)
                continue
            there = self._mirror.value(f"{nodes.DEPLOYMENTS[order.kind]}/{order.stream}", Deployment)
            if order.action == "deploy" and there is not None and there.going:
                # It is executed once the stream has been undeployed.
                busy.add(key)
                continue
            busy.add(key)
            try:
                changes = self._carried_out(order, there, int(name.removeprefix(nodes.REQUEST)))
            except ConflictError as error:
                logger.debug("A request waits for the next round: %s", error)
                continue
            except (DslError, ManifestError) as error:
                self._drop(fence, path, str(error))
                continue
            stat = self._mirror.stat(path)
            made = 0 if stat is None else stat.czxid
            try:
                made_them = self._try(fence, [*changes, Delete(path)])
            except RecordError as error:
                self._drop(fence, path, str(error))
                continue
            if made_them:
                self._taken.add(path)
                self._spent[path] = made
                if len(self._spent) > _MOST_SPENT:
                    del self._spent[next(iter(self._spent))]

    def _is_copy(self, path: str) -> bool:
        """Whether an order has appeared again after it was executed."""
        stat, before = self._mirror.stat(path), self._spent.get(path)
        return stat is not None and before is not None and stat.czxid > before

    def _drop(self, fence: Fence, path: str, reason: str) -> None:
        """Removes an order that can't be executed; someone may have written it by hand."""
        if path not in self._dropped:
            self._dropped.add(path)
            logger.warning("The request %s is not carried out: %s", path, reason)
        self._try(fence, [Delete(path)])

    def _carried_out(self, order: Order, there: Deployment | None, number: int) -> list[Change]:
        if order.action in ("launch", "stop", "restart"):
            return self._executions.carried_out(order, number)
        path = f"{nodes.DEPLOYMENTS[order.kind]}/{order.stream}"
        if order.action == "undeploy":
            stat = self._mirror.stat(path)
            if there is None or stat is None:
                return []
            logger.info("Undeploying %s %s", order.kind, order.stream)
            return [Put(path, msgspec.structs.replace(there, going=True), stat.version)]
        definition = self._definition(order.kind, order.stream)
        if there is not None or definition is None:
            why = "it is deployed" if there is not None else "it was destroyed"
            logger.warning("The %s %s is not deployed as requested: %s", order.kind, order.stream, why)
            return []
        logger.info("Deploying %s %s", order.kind, order.stream)
        deployment = Deployment(generation=(number + 1) * _ERAS, properties=order.properties, fused=order.fused)
        changes = [
            Create(path, deployment),
            Create(f"{path}/modules", nodes.EMPTY),
            *_requests(order, definition, deployment),
        ]
        tap, (whole, _) = f"{nodes.TAPS}/{order.stream}", parsed_as(order.kind, order.stream, definition)
        if isinstance(whole, Stream) and isinstance(whole.source, Tap) and self._mirror.stat(tap) is None:
            changes.append(Create(tap, TapNode(definition=definition)))
        return changes

    def _definition(self, kind: Kind, name: str) -> str | None:
        """Returns the text of a stream or a job, also if it was just created and the copy does not show it yet."""
        known, path = self._picture.definition(kind, name), f"{nodes.DEFINITIONS[kind]}/{name}"
        if known is not None:
            return known
        found = self._tree.read(nodes.Definition, path)
        return None if found is None else found.definition

    def _place(self, fence: Fence, deployed: Deployed, there: Mapping[str, ContainerNode], load: Counter[str]) -> bool:
        """Places modules on containers; returns whether anything changed."""
        own = Counter(each.container for each in deployed.allocated)
        requests = [_request(label, manifest, there) for label, manifest in deployed.manifest.items()]
        present = {each.instance: each.container for each in deployed.allocated}
        others = {name: load[name] - own[name] for name in there}
        placement = (place_together if deployed.deployment.fused else place)(requests, there, present, others)
        changes: list[Change] = []
        made: list[str] = []
        now = {(each.instance, each.container): each for each in deployed.allocated}
        wanted = set(placement.allocated.items())
        for key, each in now.items():
            if key not in wanted:
                changes += self._removed(each)
        values = _module_nodes(deployed, placement.allocated)
        for instance, container in sorted(wanted):
            node = values[instance]
            name = deployed.module(*instance)
            path = f"{nodes.ALLOCATED}/{container}/{name}"
            known = now.get((instance, container))
            if known is None:
                made.append(f"{name} to container {container}")
                changes.append(Create(path, node))
            elif known.node != node:
                stat = self._mirror.stat(path)
                changes.append(Put(path, node, -1 if stat is None else stat.version))
        self._warn(deployed, {instance.label for instance in placement.unplaced}, bool(deployed.allocated))
        if not changes:
            return False
        # The version check fails if anything was placed since this was decided.
        changes.append(Put(deployed.path, deployed.deployment, deployed.version))
        self._tree.commit(fence, *changes)
        load.subtract(own)
        load.update(placement.allocated.values())
        for each_made in made:
            logger.info("Deploying module %s", each_made)
        return True

    def _warn(self, deployed: Deployed, without: set[str], again: bool) -> None:
        known = self._warned.setdefault(deployed.key, set())
        for label in sorted(without - known):
            what = "redeployment" if again else "deployment"
            logger.warning("No containers available for %s of %s for %s %s", what, label, *deployed.key)
        self._warned[deployed.key] = without

    def _note(
        self, fence: Fence, deployed: Deployed, there: Mapping[str, ContainerNode], session_id: int | None
    ) -> bool:
        """Writes the state of a stream as an ephemeral node of this admin, if it changed; returns whether it did."""
        value = StatusNode(state=deployed.state(there))
        path = f"{deployed.path}/status"
        stat, known = self._mirror.stat(path), self._mirror.value(path, StatusNode)
        changes: list[Change] = []
        if stat is None:
            changes = [Create(path, value, ephemeral=True)]
        elif stat.ephemeralOwner != session_id:
            changes = [Delete(path), Create(path, value, ephemeral=True)]
        elif known != value:
            changes = [Put(path, value, stat.version)]
        if changes:
            self._tree.commit(fence, *changes)
        return bool(changes)

    def _end(self, fence: Fence, deployed: Deployed) -> None:
        changes = [change for each in deployed.allocated for change in self._removed(each)]
        if changes:
            self._tree.commit(fence, *changes)
            return
        if self._mirror.children(f"{deployed.path}/modules"):
            # Containers delete them once their modules have ended.
            return
        requested = [f"{nodes.REQUESTED}/{name}" for name in deployed.requested()]
        changes = [Delete(path) for path in requested if self._mirror.stat(path) is not None]
        if self._mirror.stat(f"{deployed.path}/status") is not None:
            changes.append(Delete(f"{deployed.path}/status"))
        if isinstance(deployed.whole, Stream) and self._mirror.stat(f"{nodes.TAPS}/{deployed.name}") is not None:
            changes.append(Delete(f"{nodes.TAPS}/{deployed.name}"))
        self._tree.commit(fence, *changes, Delete(f"{deployed.path}/modules"), Delete(deployed.path))
        self._warned.pop(deployed.key, None)
        logger.info("Undeployed %s %s", *deployed.key)

    def _removed(self, each: Allocated) -> list[Change]:
        below = [Delete(f"{each.path}/{name}") for name in self._mirror.children(each.path)]
        return [*below, Delete(each.path)]

    def _clean(self, fence: Fence, there: Mapping[str, ContainerNode]) -> None:
        """Removes the nodes of departed containers and the modules of undeployed streams."""
        deployments = {(kind, name) for kind in nodes.KINDS for name in self._mirror.children(nodes.DEPLOYMENTS[kind])}
        for key, group in self._picture.allocated().items():
            if key not in deployments:
                self._try(fence, [change for each in group for change in self._removed(each)])
        for container in self._mirror.children(nodes.ALLOCATED):
            path = f"{nodes.ALLOCATED}/{container}"
            if container not in there and not self._mirror.children(path):
                # The first change fails if the container exists and the copy does not show it yet.
                own = f"{nodes.CONTAINERS}/{container}"
                self._try(fence, [Create(own, nodes.EMPTY, ephemeral=True), Delete(own), Delete(path)])

    def _try(self, fence: Fence, changes: list[Change]) -> bool:
        """Applies changes; returns whether they took effect."""
        try:
            self._tree.commit(fence, *changes)
        except ConflictError as error:
            logger.debug("A change waits for the next round: %s", error)
            return False
        return True


def _request(label: str, manifest: ModuleManifest, there: Mapping[str, ContainerNode]) -> Request:
    def matches(container: str) -> bool:
        node = there[container]
        return manifest.matches(node.groups, node.attributes, node.host, node.ip)

    return Request(label, manifest.count, matches)


def _requests(order: Order, definition: str, deployment: Deployment) -> list[Change]:
    _, types = parsed_as(order.kind, order.stream, definition)
    manifest = parse_manifest(order.properties, list(types))
    changes: list[Change] = []
    for label, each in manifest.items():
        for sequence in range(1, each.count + 1) if each.count != EVERY else (0,):
            name = nodes.ModuleName(order.stream, types[label], label, sequence)
            node = ModuleNode(
                count=each.count,
                sequence=sequence,
                instances=each.count,
                generation=deployment.generation,
                fused=order.fused,
            )
            changes.append(Create(f"{nodes.REQUESTED}/{name}", node))
    return changes


def _module_nodes(deployed: Deployed, allocated: Mapping[Instance, str]) -> dict[Instance, ModuleNode]:
    """Returns the value of each instance's node.

    The number of instances of a module that runs in every container can change. Messages then belong to other
    instances, and the generation grows.
    """
    found: dict[Instance, ModuleNode] = {}
    for label, manifest in deployed.manifest.items():
        instances = sorted(instance for instance in allocated if instance.label == label)
        before = [each.node for each in deployed.allocated if each.name.label == label]
        generation = max((node.generation for node in before), default=deployed.deployment.generation)
        total = manifest.count
        if manifest.count == EVERY:
            total = max((instance.sequence for instance in instances), default=1)
            if any(node.instances != total for node in before):
                generation += 1
        for instance in instances:
            found[instance] = ModuleNode(
                count=manifest.count,
                sequence=instance.sequence,
                instances=total,
                generation=generation,
                fused=deployed.deployment.fused,
            )
    return found
