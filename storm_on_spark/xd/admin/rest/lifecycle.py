"""The resources of streams and of jobs, which are alike: definitions and deployments."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from storm_on_spark.cluster.errors import NotFoundError, TransitionError, UnavailableError
from storm_on_spark.xd.admin.core import Definitions, Runtime
from storm_on_spark.xd.admin.placement import State
from storm_on_spark.xd.admin.rest import schemas
from storm_on_spark.xd.admin.rest.calls import Call, Handler
from storm_on_spark.xd.tree.nodes import Kind


class Lifecycle:
    """The handlers; they block.

    Args:
        kind: stream or job.
        definitions: the streams or jobs that were created.
        runtime: deploys them.
        check: called with a name and a text; raises if it can't be created.
    """

    def __init__(
        self, kind: Kind, definitions: Definitions, runtime: Runtime, check: Callable[[str, str], object]
    ) -> None:
        self._kind = kind
        self._definitions = definitions
        self._runtime = runtime
        self._check = check

    def handlers(self) -> dict[str, Handler]:
        """Returns name of a resource -> its function."""
        kind, many = self._kind, f"{self._kind}s"
        return {
            f"list_{many}": self._list,
            f"create_{kind}": self._create,
            f"destroy_{many}": self._destroy_all,
            f"get_{kind}": self._get,
            f"destroy_{kind}": lambda call: self.destroy(self._defined(call)[0]),
            f"list_{kind}_deployments": self._list_deployments,
            f"undeploy_{many}": self._undeploy_all,
            f"get_{kind}_deployment": self._get_deployment,
            f"deploy_{kind}": self._deploy,
            f"undeploy_{kind}": lambda call: self._runtime.undeploy(self._defined(call)[0]),
        }

    def _list(self, call: Call) -> schemas.PageOf[schemas.DefinitionView]:
        deployed = self._runtime.deployments()
        return call.page(
            schemas.DefinitionView(
                name=name, definition=text, status=deployed[name].state if name in deployed else "undeployed"
            )
            for name, text in self._definitions.all().items()
        )

    def _create(self, call: Call) -> schemas.DefinitionView:
        asked: schemas.CreateDefinition = call.body
        self._check(asked.name, asked.definition)
        self._definitions.create(asked.name, asked.definition)
        status: State = "undeployed"
        if asked.deploy:
            try:
                status = self._runtime.deploy(asked.name, {}, fused=False).state
            except UnavailableError as error:
                # It stays, since the next leader may deploy it all the same.
                what = f"{self._kind.capitalize()} '{asked.name}'"
                raise UnavailableError(f"{what} was created, but is not deployed: {error}") from error
        return schemas.DefinitionView(name=asked.name, definition=asked.definition, status=status)

    def _destroy_all(self, call: Call) -> None:
        self._each(self._definitions.all(), self.destroy, "destroyed")

    def _get(self, call: Call) -> schemas.DefinitionView:
        name, text = self._defined(call)
        deployed = self._runtime.deployment(name)
        return schemas.DefinitionView(
            name=name, definition=text, status="undeployed" if deployed is None else deployed.state
        )

    def _list_deployments(self, call: Call) -> schemas.PageOf[schemas.DeploymentView]:
        return call.page(view for _, view in sorted(self._runtime.deployments().items()))

    def _undeploy_all(self, call: Call) -> None:
        self._each(sorted(self._runtime.deployments()), self._undeploy_if_deployed, "undeployed")

    def _get_deployment(self, call: Call) -> schemas.DeploymentView:
        name, _ = self._defined(call)
        found = self._runtime.deployment(name)
        if found is not None:
            return found
        return schemas.DeploymentView(name=name, state="undeployed", properties={}, modules=())

    def _deploy(self, call: Call) -> schemas.DeploymentView:
        name, _ = self._defined(call)
        asked: schemas.Deploy = call.body
        return self._runtime.deploy(name, asked.properties, asked.fused)

    def _defined(self, call: Call) -> tuple[str, str]:
        name = call.name(self._kind)
        return name, self._definitions.get(name)

    def destroy(self, name: str) -> None:
        """Undeploys a stream or job if it is deployed, and removes it.

        Raises:
            NotFoundError: there is none of that name.
            UnavailableError: there is no leader, or no ZooKeeper.
        """
        self._undeploy_if_deployed(name)
        self._definitions.remove(name)

    def _undeploy_if_deployed(self, name: str) -> None:
        if self._runtime.deployment(name) is None:
            return
        try:
            self._runtime.undeploy(name)
        except TransitionError:
            if self._runtime.deployment(name) is not None:
                raise

    def _each(self, names: Iterable[str], action: Callable[[str], Any], done: str) -> None:
        for count, name in enumerate(names):
            try:
                action(name)
            except NotFoundError:
                # Someone else has undeployed it meanwhile.
                continue
            except (TransitionError, UnavailableError) as error:
                raise type(error)(f"{count} {self._kind}s were {done}; '{name}' was not: {error}") from error
