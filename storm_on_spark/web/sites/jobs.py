"""The jobs of an admin and their executions. Every admin shows the same."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final, Literal, get_args

from msgspec.structs import replace

from storm_on_spark.api.config.secrets import hidden, scrubbed
from storm_on_spark.api.errors import NotAliveError
from storm_on_spark.web.sites.orders import Orders
from storm_on_spark.web.sites.properties import properties_of
from storm_on_spark.xd.admin.core import Definitions, JobRuntime
from storm_on_spark.xd.admin.rest.lifecycle import Lifecycle
from storm_on_spark.xd.admin.rest.schemas import ExecutionView
from storm_on_spark.xd.dsl import DslError, parse_job
from storm_on_spark.xd.tree.jobs import ENDED

JobAction = Literal["launch", "deploy", "undeploy", "destroy"]
JOB_ACTIONS: Final[tuple[JobAction, ...]] = get_args(JobAction)
ExecutionAction = Literal["stop", "restart"]
EXECUTION_ACTIONS: Final[tuple[ExecutionAction, ...]] = get_args(ExecutionAction)
_DONE: Final = {"deploy": "deployed", "undeploy": "undeployed", "destroy": "destroyed"}


@dataclass(frozen=True)
class JobView:
    """A job at one moment."""

    name: str
    definition: str
    """Without secrets."""
    state: str
    steps: tuple[str, ...]
    """Their labels; empty for a definition that can't be read."""
    properties: Mapping[str, str]
    """Of its deployment, without secrets."""
    executions: tuple[ExecutionView, ...]
    """The latest first."""

    @property
    def last(self) -> ExecutionView | None:
        """The latest execution."""
        return self.executions[0] if self.executions else None

    @property
    def runs(self) -> bool:
        """Whether an execution has not ended."""
        return self.last is not None and self.last.status not in ENDED

    @property
    def possible(self) -> tuple[JobAction, ...]:
        """The actions that make sense now."""
        if self.state == "undeployed":
            return ("deploy", "destroy")
        return ("undeploy", "destroy") if self.runs else ("launch", "undeploy", "destroy")


def possible(execution: ExecutionView) -> tuple[ExecutionAction, ...]:
    """Returns the actions that make sense for an execution now."""
    if execution.status not in ENDED:
        return ("stop",)
    again = execution.status != "COMPLETED" and not execution.restarted_by and execution.deployed
    return ("restart",) if again else ()


class Jobs:
    """The jobs, as subjects of actions.

    Args:
        definitions: those that were created.
        runtime: what deploys and launches them.
        known: returns name -> text of every job, also while ZooKeeper is away.
        orders: carries out what is asked.
        enabled: whether actions are offered.
    """

    title = "Jobs"

    def __init__(
        self,
        definitions: Definitions,
        runtime: JobRuntime,
        known: Callable[[], Mapping[str, str]],
        orders: Orders,
        *,
        enabled: bool = True,
    ) -> None:
        self._runtime = runtime
        self._known = known
        self._orders = orders
        self._lifecycle = Lifecycle("job", definitions, runtime, lambda name, text: None)
        self.actions: tuple[str, ...] = JOB_ACTIONS if enabled else ()

    def all(self) -> dict[str, JobView]:
        """Returns all jobs, by name."""
        deployed = self._runtime.deployments()
        executions: dict[str, list[ExecutionView]] = {}
        for each in self.executions():
            if not each.deleted:
                executions.setdefault(each.name, []).append(each)
        found = {}
        for name, text in sorted(self._known().items()):
            deployment = deployed.get(name)
            found[name] = JobView(
                name,
                scrubbed(text),
                "undeployed" if deployment is None else deployment.state,
                _steps(name, text),
                {} if deployment is None else hidden(deployment.properties),
                tuple(executions.get(name, ())),
            )
        return found

    def executions(self) -> list[ExecutionView]:
        """Returns the executions that are kept, the latest first, without secrets."""
        return [_shown(each) for each in self._runtime.executions()]

    def act(self, subject: str, action: JobAction, options: Mapping[str, str], who: str) -> str:
        """Changes or launches a job, and writes down who did; see `StreamsSite.act`."""
        given = properties_of(options.get("properties", "")) if action in ("deploy", "launch") else {}
        if subject not in self._known():
            raise NotAliveError(f"there is no job {subject[:200]!r}")

        def order() -> str:
            if action == "launch":
                execution = self._runtime.launch(subject, given)
                return f"Execution {execution.execution_id} of job {subject} is {execution.status}."
            state = _DONE[action]
            if action == "deploy":
                state = self._runtime.deploy(subject, given, fused=False).state
            elif action == "undeploy":
                self._runtime.undeploy(subject)
            else:
                self._lifecycle.destroy(subject)
            return f"Job {subject} is {state}."

        return self._orders.carry_out(who, f"{action} job", subject, order)


class JobExecutions:
    """The executions, as subjects of actions; a subject is a number.

    Args:
        runtime: what launches them.
        orders: carries out what is asked.
        enabled: whether actions are offered.
    """

    title = "Executions"

    def __init__(self, runtime: JobRuntime, orders: Orders, *, enabled: bool = True) -> None:
        self._runtime = runtime
        self._orders = orders
        self.actions: tuple[str, ...] = EXECUTION_ACTIONS if enabled else ()

    def one(self, subject: str) -> ExecutionView:
        """Returns one, without secrets.

        Raises:
            NotAliveError: there is none of that number.
        """
        found = next((each for each in self._runtime.executions() if str(each.execution_id) == subject), None)
        if found is None:
            raise NotAliveError(f"there is no execution {subject[:80]!r}")
        return _shown(found)

    def act(self, subject: str, action: ExecutionAction, options: Mapping[str, str], who: str) -> str:
        """Stops or restarts an execution, and writes down who did; see `StreamsSite.act`."""
        found = self.one(subject)
        number = found.execution_id
        change = self._runtime.stop if action == "stop" else self._runtime.restart
        after = self._orders.carry_out(who, f"{action} execution {number} of job", found.name, lambda: change(number))
        return f"Execution {after.execution_id} of job {after.name} is {after.status}."


def _steps(name: str, text: str) -> tuple[str, ...]:
    try:
        return tuple(module.label for module in parse_job(text, name).modules)
    except DslError:
        return ()


def _shown(execution: ExecutionView) -> ExecutionView:
    steps = tuple(replace(step, error=scrubbed(step.error)) for step in execution.steps)
    return replace(
        execution, definition=scrubbed(execution.definition), parameters=hidden(execution.parameters), steps=steps
    )
