"""The interfaces behind an admin's REST: definitions, and the runtime that deploys them.

Methods are called on several threads at once, and may block. Their errors become a status: `RecordError` 400,
`NotFoundError` 404, `ExistsError` and `TransitionError` 409, `UnavailableError` 503.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from storm_on_spark.xd.admin.rest.schemas import ContainerView, DeploymentView, ExecutionView, RuntimeModuleView


class Definitions(Protocol):
    """The streams, or the jobs, that were created, each with its text. The caller has checked the names."""

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
            RecordError: the manifest is invalid; nothing was changed.
            NotFoundError: the stream has been destroyed meanwhile.
            TransitionError: it is deployed already.
            UnavailableError: there is no leader, or no ZooKeeper.
        """

    def undeploy(self, name: str) -> None:
        """Ends the modules of a stream, and returns when they have ended.

        Raises:
            TransitionError: it is not deployed.
            UnavailableError: there is no leader, or no ZooKeeper.
        """

    def deployment(self, name: str) -> DeploymentView | None:
        """Returns the deployment of a stream; None if it is not deployed."""

    def deployments(self) -> Mapping[str, DeploymentView]:
        """Returns all deployments, by the stream's name."""

    def containers(self) -> Sequence[ContainerView]:
        """Returns the running containers, by id."""

    def modules(self) -> Sequence[RuntimeModuleView]:
        """Returns the running instances of modules, by name."""


class JobRuntime(Runtime, Protocol):
    """The jobs that are deployed, and their executions."""

    def launch(self, name: str, parameters: Mapping[str, str]) -> ExecutionView:
        """Launches a job, and returns once the leader has accepted the request.

        Raises:
            RecordError: a parameter is missing, or an option has an invalid value.
            TransitionError: the job is not deployed, or is running.
            UnavailableError: there is no leader, or no ZooKeeper.
        """

    def executions(self) -> Sequence[ExecutionView]:
        """Returns the stored executions, the latest first."""

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
            TransitionError: it is running, has completed, was restarted already, or its job is not deployed or has
                another definition.
            UnavailableError: there is no leader, or no ZooKeeper.
        """
