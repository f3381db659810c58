"""What runs where, read from the copy of the tree; every admin sees the same."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, cast, get_args

import msgspec

from storm_on_spark.xd.admin.placement import EVERY, Instance, State, state_of
from storm_on_spark.xd.admin.rest import schemas
from storm_on_spark.xd.dsl import DslError, Job, Stream, parse_job, parse_stream
from storm_on_spark.xd.manifest import ManifestError, ModuleManifest, parse_manifest
from storm_on_spark.xd.modules.declaration import ModuleType
from storm_on_spark.xd.parts import types_of
from storm_on_spark.xd.tree import nodes
from storm_on_spark.xd.tree.mirror import Mirror
from storm_on_spark.xd.tree.nodes import (
    ContainerMetrics,
    ContainerNode,
    Definition,
    Deployment,
    Kind,
    Leadership,
    Metadata,
    ModuleName,
    ModuleNode,
    StatusNode,
)

_STATES: tuple[str, ...] = get_args(State)

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Allocated:
    """An instance, and the container that it is for."""

    name: ModuleName
    container: str
    node: ModuleNode
    state: State

    @property
    def path(self) -> str:
        """The path of its node."""
        return f"{nodes.ALLOCATED}/{self.container}/{self.name}"

    @property
    def instance(self) -> Instance:
        """The instance, for the rules."""
        return Instance(self.name.label, self.name.sequence)


@dataclass(frozen=True)
class Deployed:
    """A stream or a job that is deployed, or is being deployed or undeployed."""

    kind: Kind
    name: str
    deployment: Deployment
    version: int
    """Of its node."""
    whole: Stream | Job
    types: Mapping[str, ModuleType]
    manifest: Mapping[str, ModuleManifest]
    allocated: tuple[Allocated, ...]

    @property
    def key(self) -> tuple[Kind, str]:
        """What and which it is."""
        return self.kind, self.name

    @property
    def path(self) -> str:
        """Of its node."""
        return f"{nodes.DEPLOYMENTS[self.kind]}/{self.name}"

    def module(self, label: str, sequence: int) -> ModuleName:
        """Returns the name of an instance."""
        return ModuleName(self.name, self.types[label], label, sequence)

    def requested(self) -> Iterator[ModuleName]:
        """Yields the names below `requested`; the number 0 stands for one instance in every container."""
        for label, each in self.manifest.items():
            for sequence in range(1, each.count + 1) if each.count != EVERY else (0,):
                yield self.module(label, sequence)

    def state(self, there: Mapping[str, Any]) -> State:
        """Returns its state.

        Args:
            there: the containers that are there.
        """
        living = [each for each in self.allocated if each.container in there]
        has = {each.instance for each in living}
        complete = bool(has) and all(
            any(instance.label == label for instance in has)
            if each.count == EVERY
            else all(Instance(label, number) in has for number in range(1, each.count + 1))
            for label, each in self.manifest.items()
        )
        return state_of(not self.deployment.going, (each.state for each in living), complete=complete)


class Picture:
    """Typed access to the copy of the tree.

    Args:
        mirror: the copy.
    """

    def __init__(self, mirror: Mirror) -> None:
        self._mirror = mirror

    def containers(self) -> dict[str, ContainerNode]:
        """Returns the running containers, by id, without metrics: placement does not need them."""
        found = self._container_nodes()
        return {name: msgspec.structs.replace(node, metrics=ContainerMetrics()) for name, node in found.items()}

    def _container_nodes(self) -> dict[str, ContainerNode]:
        found = {
            name: self._mirror.value(f"{nodes.CONTAINERS}/{name}", ContainerNode)
            for name in self._mirror.children(nodes.CONTAINERS)
        }
        return {name: node for name, node in found.items() if node is not None}

    def allocated(self, name: str = "") -> dict[tuple[Kind, str], list[Allocated]]:
        """Returns the instances by stream and job, also those of departed containers.

        Args:
            name: of the stream or job; empty for all.
        """
        found: dict[tuple[Kind, str], list[Allocated]] = {}
        begin = f"{name}." if name else ""
        for container in self._mirror.children(nodes.ALLOCATED):
            for text in self._mirror.children(f"{nodes.ALLOCATED}/{container}"):
                if not text.startswith(begin):
                    continue
                module = ModuleName.parse(text)
                path = f"{nodes.ALLOCATED}/{container}/{text}"
                node = self._mirror.value(path, ModuleNode)
                if module is not None and node is not None:
                    allocated = Allocated(module, container, node, self._module_state(path))
                    found.setdefault((module.kind, module.stream), []).append(allocated)
        return found

    def deployed(
        self, kind: Kind, name: str, allocated: Mapping[tuple[Kind, str], list[Allocated]] | None = None
    ) -> Deployed | None:
        """Returns the deployment of a stream or a job; None if there is none, or it can't be read.

        Args:
            kind: which of them.
            name: its name.
            allocated: the result of `allocated`, if the caller has it already.
        """
        path = f"{nodes.DEPLOYMENTS[kind]}/{name}"
        deployment, stat = self._mirror.value(path, Deployment), self._mirror.stat(path)
        definition = self.definition(kind, name)
        if deployment is None or stat is None or definition is None:
            return None
        parsed = _parsed(kind, name, definition, tuple(deployment.properties.items()))
        if parsed is None:
            return None
        whole, types, manifest = parsed
        own = (self.allocated(name) if allocated is None else allocated).get((kind, name), [])
        return Deployed(kind, name, deployment, stat.version, whole, types, manifest, tuple(own))

    def all_deployed(self, kind: Kind | None = None) -> list[Deployed]:
        """Returns all deployments, or those of streams or of jobs, by name."""
        allocated = self.allocated()
        found = (
            self.deployed(each, name, allocated)
            for each in (nodes.KINDS if kind is None else (kind,))
            for name in self._mirror.children(nodes.DEPLOYMENTS[each])
        )
        return [each for each in found if each is not None]

    def definition(self, kind: Kind, name: str) -> str | None:
        """Returns the text of a stream or a job; None if there is none."""
        found = self._mirror.value(f"{nodes.DEFINITIONS[kind]}/{name}", Definition)
        return None if found is None else found.definition

    def definitions(self, kind: Kind) -> dict[str, str]:
        """Returns name -> text of every stream or job, by name."""
        found = {name: self.definition(kind, name) for name in self._mirror.children(nodes.DEFINITIONS[kind])}
        return {name: text for name, text in found.items() if text is not None}

    def leader(self) -> str:
        """Returns `host:port` of the admin that leads; empty without one."""
        found = self._mirror.value(nodes.ADMINS, Leadership)
        return "" if found is None else found.leader

    def deployment_view(self, deployed: Deployed, there: Mapping[str, Any]) -> schemas.DeploymentView:
        """Returns a deployment as REST shows it."""
        # Not from the nodes below `modules`: they may reach the copy later than the statuses that give the state.
        running = (each for each in deployed.allocated if each.container in there and each.state == "deployed")
        return schemas.DeploymentView(
            name=deployed.name,
            state=deployed.state(there),
            properties=deployed.deployment.properties,
            modules=tuple(sorted(f"{each.name.own}.{each.container}" for each in running)),
        )

    def container_views(self) -> list[schemas.ContainerView]:
        """Returns the containers as REST shows them."""
        return [
            schemas.ContainerView(
                container_id=name,
                host=node.host,
                ip=node.ip,
                pid=node.pid,
                groups=node.groups,
                attributes=node.attributes,
                deployed_modules=len(self._mirror.children(f"{nodes.ALLOCATED}/{name}")),
                metrics=msgspec.convert(node.metrics, schemas.MetricsView, from_attributes=True),
            )
            for name, node in self._container_nodes().items()
        ]

    def module_views(self) -> list[schemas.RuntimeModuleView]:
        """Returns the instances that run or should run, by name."""
        there = self.containers()
        found: list[schemas.RuntimeModuleView] = []
        for each in (each for group in self.allocated().values() for each in group):
            if each.container not in there:
                continue
            metadata = self._mirror.value(f"{each.path}/metadata", Metadata)
            found.append(
                schemas.RuntimeModuleView(
                    name=str(each.name),
                    container_id=each.container,
                    options={} if metadata is None else metadata.options,
                    deployment_properties={} if metadata is None else metadata.properties,
                    state=each.state,
                    error=self._error(each.path),
                )
            )
        return sorted(found, key=lambda view: (view.name, view.container_id))

    def _error(self, path: str) -> str:
        status = self._mirror.value(f"{path}/status", StatusNode)
        return "" if status is None else status.error

    def _module_state(self, path: str) -> State:
        status = self._mirror.value(f"{path}/status", StatusNode)
        if status is None:
            return "deploying"
        return cast(State, status.state) if status.state in _STATES else "unknown"


@lru_cache(maxsize=10_000)
def _parsed(
    kind: Kind, name: str, definition: str, properties: tuple[tuple[str, str], ...]
) -> tuple[Stream | Job, Mapping[str, ModuleType], Mapping[str, ModuleManifest]] | None:
    """Parses a deployment's texts; every round of the leader does so for each deployment.

    Returns None for invalid texts, which another release or a person may have written. That deployment is left alone,
    and the others proceed. Results are cached, so this is logged once.
    """
    try:
        whole, types = parsed_as(kind, name, definition)
        return whole, types, parse_manifest(dict(properties), list(types))
    except (DslError, ManifestError) as error:
        logger.warning("The deployment of %s %s is left alone, as it can't be read: %s", kind, name, error)
        return None


def parsed_as(kind: Kind, name: str, definition: str) -> tuple[Stream | Job, dict[str, ModuleType]]:
    """Returns a stream or a job, and label -> type of its modules.

    Raises:
        DslError: the text is invalid.
    """
    if kind == "stream":
        stream = parse_stream(definition, name)
        return stream, types_of(stream)
    job = parse_job(definition, name)
    return job, {module.label: "job" for module in job.modules}
