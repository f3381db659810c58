"""What the REST interface of an admin stands on: definitions, and the runtime that deploys what they say.

Methods are called on several threads at once, and may block. What they raise becomes a status: `RecordError` 400,
`NotFoundError` 404, `ExistsError` and `TransitionError` 409, `UnavailableError` 503.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from storm_on_spark.xd.admin.rest.schemas import ContainerView, DeploymentView, ExecutionView, RuntimeModuleView


class Definitions(Protocol):
    """The streams, or the jobs, that were created, each with its text. A name is checked before it comes here."""

    def create(self, name: str, definition: str) -> None:
        """Adds a stream.

        Raises:
            ExistsError: there is one of that name.
        """

    def remove(self, name: str) -> None:
        """Removes a stream.

        Raises:
            NotFoundError: there is none of that name.
        """

    def get(self, name: str) -> str:
        """Returns the text of a stream.

        Raises:
            NotFoundError: there is none of that name.
        """

    def all(self) -> dict[str, str]:
        """Returns name -> text of every stream, by name."""


class Runtime(Protocol):
    """The streams, or the jobs, that are deployed, and the containers that they run in."""

    def deploy(self, name: str, properties: Mapping[str, str], fused: bool) -> DeploymentView:
        """Requests the deployment of a stream, and returns its state once the leader has accepted the request.

        Args:
            name: of a stream that has been created.
            properties: the manifest.
            fused: whether the whole stream becomes one topology.

        Raises:
            RecordError: the manifest makes no sense; nothing was changed.
            NotFoundError: the stream has been destroyed meanwhile.
            TransitionError: it is deployed already.
            UnavailableError: there is no leader, or no ZooKeeper.
        """

    def undeploy(self, name: str) -> None:
        """Ends the modules of a stream, and returns when they are gone.

        Raises:
            TransitionError: it is not deployed.
            UnavailableError: there is no leader, or no ZooKeeper.
        """

    def deployment(self, name: str) -> DeploymentView | None:
        """Returns the deployment of a stream; None if it is not deployed."""

    def deployments(self) -> Mapping[str, DeploymentView]:
        """Returns all deployments, by the stream's name."""

    def containers(self) -> Sequence[ContainerView]:
        """Returns the containers that are there, by id."""

    def modules(self) -> Sequence[RuntimeModuleView]:
        """Returns the instances of modules that run, by name."""


class JobRuntime(Runtime, Protocol):
    """The jobs that are deployed, and their executions."""

    def launch(self, name: str, parameters: Mapping[str, str]) -> ExecutionView:
        """Launches a job, and returns when the leader has taken that up.

        Raises:
            RecordError: a parameter is missing, or an option can't have its value.
            TransitionError: the job is not deployed, or runs.
            UnavailableError: there is no leader, or no ZooKeeper.
        """

    def executions(self) -> Sequence[ExecutionView]:
        """Returns the executions that are kept, the latest first."""

    def execution(self, number: int) -> ExecutionView:
        """Returns an execution.

        Raises:
            NotFoundError: there is none of that number.
        """

    def stop(self, number: int) -> ExecutionView:
        """Stops an execution, and returns when its steps have ended.

        Raises:
            NotFoundError: there is none of that number.
            TransitionError: it has ended.
            UnavailableError: there is no leader, or no ZooKeeper.
        """

    def restart(self, number: int) -> ExecutionView:
        """Launches an execution that continues with one that did not complete; returns the new one.

        Raises:
            NotFoundError: there is none of that number.
            TransitionError: it runs, has completed, was restarted already, or its job is not deployed or another one.
            UnavailableError: there is no leader, or no ZooKeeper.
        """
