"""The nodes of launched jobs in ZooKeeper, below `/xd`.

executions/<id>                                                    ExecutionNode   the history; the leader writes it
deployments/modules/allocated/<container>/<job>.job.<step>.1/run-<id>       RunNode     the leader has the step run
deployments/modules/allocated/<container>/<job>.job.<step>.1/report-<id>    ReportNode  what its container says of it

An id is the number of the launch request, so it grows. All three are persistent: a report outlives
the session of its container. `executions` is made with the first launch.
"""

from __future__ import annotations

from typing import Final, Literal, get_args

from storm_on_spark.xd.tree.nodes import ALLOCATED, EXECUTIONS, ModuleName, Node

RUN: Final = "run-"
REPORT: Final = "report-"

Status = Literal["STARTING", "STARTED", "STOPPING", "STOPPED", "FAILED", "COMPLETED"]
"""Of an execution or a step, as Spring Batch has them."""
ENDED: Final[frozenset[str]] = frozenset({"STOPPED", "FAILED", "COMPLETED"})
assert frozenset(get_args(Status)) >= ENDED


class StepNode(Node, frozen=True, kw_only=True):
    """A step that was started."""

    status: Status
    execution: int
    """The execution in which it ran: a restart keeps completed steps."""
    container: str = ""
    started: float | None = None
    """Seconds since 1970."""
    ended: float | None = None
    exit: int | None = None
    """Code of its process; negative for the signal that ended it."""
    exit_status: str = ""
    """What its function returned, for transitions; empty for its status."""
    error: str = ""
    log: str = ""
    """The file with what it printed."""


class ExecutionNode(Node, frozen=True, kw_only=True):
    """An execution of a job."""

    version: int = 1
    job: str
    definition: str
    """The definition with which it was launched."""
    parameters: dict[str, str] = {}  # noqa: RUF012 # msgspec copies it
    status: Status
    created: float
    ended: float | None = None
    stopping: bool = False
    """Whether a user has requested its end."""
    restarts: int = 0
    """The execution that it continues with; 0 for none."""
    restarted_by: int = 0
    """The execution that continues with it; 0 for none."""
    steps: dict[str, StepNode] = {}  # noqa: RUF012 # msgspec copies it
    """The steps by label; those that were not started are missing."""


class RunNode(Node, frozen=True, kw_only=True, omit_defaults=False):
    """The request that a container runs a step."""

    stopping: bool = False


class ReportNode(Node, frozen=True, kw_only=True):
    """How far a container has come with a step."""

    status: Status
    started: float
    ended: float | None = None
    exit: int | None = None
    exit_status: str = ""
    error: str = ""
    log: str = ""


def execution_path(number: int) -> str:
    """Returns the path of an execution.

    >>> execution_path(7)
    '/xd/executions/0000000007'
    """
    return f"{EXECUTIONS}/{number:010}"


def step_path(container: str, job: str, label: str) -> str:
    """Returns the path of the instance that runs a step.

    >>> step_path("2ebb", "nightly", "load")
    '/xd/deployments/modules/allocated/2ebb/nightly.job.load.1'
    """
    return f"{ALLOCATED}/{container}/{ModuleName(job, 'job', label, 1)}"
