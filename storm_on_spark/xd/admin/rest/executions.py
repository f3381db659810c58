"""The resources of executions of jobs."""

from __future__ import annotations

from typing import Final

from storm_on_spark.cluster.errors import RecordError
from storm_on_spark.xd.admin.core import Definitions, JobRuntime
from storm_on_spark.xd.admin.rest import schemas
from storm_on_spark.xd.admin.rest.calls import Call, Handler

_ACTIONS: Final = ("stop", "restart")


class ExecutionHandlers:
    """The handlers; they block.

    Args:
        definitions: the jobs that were created.
        runtime: launches them.
    """

    def __init__(self, definitions: Definitions, runtime: JobRuntime) -> None:
        self._definitions = definitions
        self._runtime = runtime

    def handlers(self) -> dict[str, Handler]:
        """Returns name of a resource -> its function."""
        return {
            "list_executions": self._list,
            "launch_job": self._launch,
            "get_execution": self._get,
            "change_execution": self._change,
        }

    def _list(self, call: Call) -> schemas.PageOf[schemas.ExecutionView]:
        name = call.query.get("jobname")
        return call.page(each for each in self._runtime.executions() if name in (None, each.name))

    def _launch(self, call: Call) -> schemas.ExecutionView:
        asked: schemas.LaunchJob = call.body
        self._definitions.get(asked.name)
        return self._runtime.launch(asked.name, asked.parameters)

    def _get(self, call: Call) -> schemas.ExecutionView:
        return self._runtime.execution(call.number("id", "execution"))

    def _change(self, call: Call) -> schemas.ExecutionView:
        number = call.number("id", "execution")
        if len(call.query) != 1 or set(call.query.values()) != {"true"}:
            raise RecordError(f"Expected one of {', '.join(f'{action}=true' for action in _ACTIONS)} as the query")
        return self._runtime.stop(number) if "stop" in call.query else self._runtime.restart(number)
