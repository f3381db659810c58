"""The resources of an admin. A server has a handler for each name, and a client takes its paths from here."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from storm_on_spark.xd.admin.rest import schemas

DEFAULT_PORT: Final = 9393
PAGING: Final = ("page", "size")
"""Query parameters of lists: the page from 0, and its size."""


@dataclass(frozen=True)
class Resource:
    """A method of a path.

    Every refusal has the body of a Nimbus's: `error` and `errorMessage`, one sentence. 400 is for invalid requests, 404
    for what does not exist, 409 for what exists already or is in another state, 413 for what is too large, 501 for what
    is not implemented, 503 for an admin without ZooKeeper or a leader.
    """

    method: str
    path: str
    """With parameters in braces."""
    name: str
    summary: str
    gives: Any
    """Type of the answer; None if it has no body."""
    takes: Any = None
    """Type of the body; None if there is none."""
    status: int = 200
    query: tuple[str, ...] = ()

    @property
    def changes(self) -> bool:
        """Whether it changes something; then it is recorded in the list of changes."""
        return self.method != "GET" and self.name != "validate"


def _kind(kind: str) -> tuple[Resource, ...]:
    """Returns the resources that streams and jobs share."""
    definitions, deployments, many = f"/{kind}s/definitions", f"/{kind}s/deployments", f"{kind}s"
    view, placed = schemas.DefinitionView, schemas.DeploymentView
    create, deploy = schemas.CreateDefinition, schemas.Deploy
    return (
        Resource(
            "GET", definitions, f"list_{many}", f"All {many}", schemas.PageOf[schemas.DefinitionView], query=PAGING
        ),
        Resource("POST", definitions, f"create_{kind}", f"Creates a {kind}", view, create, 201),
        Resource("DELETE", definitions, f"destroy_{many}", f"Destroys all {many}", None, status=204),
        Resource("GET", definitions + "/{name}", f"get_{kind}", f"A {kind}", view),
        Resource("DELETE", definitions + "/{name}", f"destroy_{kind}", f"Destroys a {kind}", None, status=204),
        Resource(
            "GET",
            deployments,
            f"list_{kind}_deployments",
            "All deployments",
            schemas.PageOf[schemas.DeploymentView],
            query=PAGING,
        ),
        Resource("DELETE", deployments, f"undeploy_{many}", f"Undeploys all {many}", None, status=204),
        Resource("GET", deployments + "/{name}", f"get_{kind}_deployment", "A deployment", placed),
        Resource("POST", deployments + "/{name}", f"deploy_{kind}", f"Deploys a {kind}", placed, deploy, 201),
        Resource("DELETE", deployments + "/{name}", f"undeploy_{kind}", f"Undeploys a {kind}", None, status=204),
    )


def _counters(kind: str, view: Any, query: tuple[str, ...] = ()) -> tuple[Resource, ...]:
    """Returns the resources of a kind of counters."""
    path, many, one = f"/metrics/{kind}s", f"{kind.replace('-', '_')}s", kind.replace("-", "_")
    words = f"{kind.replace('-', ' ')}s"
    return (
        Resource("GET", path, f"list_{many}", f"Names of {words}", schemas.PageOf[schemas.CounterName], query=PAGING),
        Resource("GET", path + "/{name}", f"get_{one}", f"One of the {words}", view, query=query),
        Resource("DELETE", path + "/{name}", f"delete_{one}", f"Removes one of the {words}", None, status=204),
    )


_EXECUTIONS: Final = "/jobs/executions"
_MODULES: Final = "/modules"

RESOURCES: Final = (
    *_kind("stream"),
    *_kind("job"),
    Resource(
        "GET",
        _EXECUTIONS,
        "list_executions",
        "Executions of jobs, the latest first, all or those of a job",
        schemas.PageOf[schemas.ExecutionView],
        query=("jobname", *PAGING),
    ),
    Resource("POST", _EXECUTIONS, "launch_job", "Launches a job", schemas.ExecutionView, schemas.LaunchJob, 201),
    Resource("GET", _EXECUTIONS + "/{id}", "get_execution", "An execution and its steps", schemas.ExecutionView),
    Resource(
        "PUT",
        _EXECUTIONS + "/{id}",
        "change_execution",
        "Stops an execution, or restarts one; a restart gives the new one",
        schemas.ExecutionView,
        query=("stop", "restart"),
    ),
    Resource(
        "GET", _MODULES, "list_modules", "All modules", schemas.PageOf[schemas.ModuleView], query=("type", *PAGING)
    ),
    Resource(
        "POST",
        _MODULES,
        "compose_module",
        "Makes a module of a part of a stream",
        schemas.ModuleDetail,
        schemas.ComposeModule,
        201,
    ),
    Resource(
        "POST",
        f"{_MODULES}/files",
        "upload_module",
        "Adds the module of a Python file",
        schemas.ModuleDetail,
        schemas.UploadModule,
        201,
    ),
    Resource("GET", _MODULES + "/{type}/{name}", "get_module", "A module and its options", schemas.ModuleDetail),
    Resource(
        "DELETE",
        _MODULES + "/{type}/{name}",
        "delete_module",
        "Removes a module that was composed or uploaded",
        None,
        status=204,
    ),
    Resource(
        "GET",
        "/runtime/containers",
        "list_containers",
        "Containers",
        schemas.PageOf[schemas.ContainerView],
        query=PAGING,
    ),
    Resource(
        "GET",
        "/runtime/modules",
        "list_runtime_modules",
        "Instances of modules, all or those of a container or a module",
        schemas.PageOf[schemas.RuntimeModuleView],
        query=("containerId", "moduleId", *PAGING),
    ),
    *_counters("counter", schemas.CounterView),
    *_counters("field-value-counter", schemas.FieldValueCounterView),
    *_counters("aggregate-counter", schemas.AggregateCounterView, ("resolution",)),
    Resource(
        "GET",
        "/completions/stream",
        "complete",
        "How the text of a stream continues",
        schemas.Completions,
        query=("start",),
    ),
    Resource(
        "GET",
        "/completions/job",
        "complete_job",
        "How the text of a job can continue",
        schemas.Completions,
        query=("start",),
    ),
    Resource("GET", "/meta/version", "version", "What answers here", schemas.Version),
    Resource("GET", "/openapi.json", "describe", "This description", dict[str, Any]),
    Resource("POST", "/validate", "validate", "Checks a definition", schemas.Validation, schemas.Validate),
)
"""All of them."""
