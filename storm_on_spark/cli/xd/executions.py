"""`storm-spark job execution`: the executions of jobs, and the results of their steps."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, TypeVar

import click

from storm_on_spark.api.text.printable import one_line
from storm_on_spark.cli.shared.groups import Group
from storm_on_spark.cli.xd.asking import admin_options, asked
from storm_on_spark.cli.xd.tables import table

if TYPE_CHECKING:
    from storm_on_spark.xd.admin.rest.schemas import ExecutionView

_Function = TypeVar("_Function", bound=Callable[..., Any])
_LONGEST = 200

group = Group(
    "execution", short_help="Executions of jobs.", help="List, show, stop and restart the executions of jobs."
)


def _id_argument(function: _Function) -> _Function:
    """Adds the argument ID, which may also be written as `--id ID`."""
    argument = click.argument("number", metavar="ID", required=False, type=click.IntRange(1))
    return argument(click.option("--id", "named", metavar="ID", type=click.IntRange(1), help="The same.")(function))


def _id(number: int | None, named: int | None) -> str:
    if (number is None) == (named is None):
        raise click.UsageError("Expected one ID of an execution")
    return str(number if named is None else named)


@group.command("list")
@admin_options
def listed(**given: Any) -> None:
    """List the executions, the latest first."""
    with asked(**given) as request:
        found = list(request.client.every("list_executions"))
        request.answer({"executions": found}, table_of(found))


@group.command("display")
@_id_argument
@admin_options
def display(number: int | None, named: int | None, **given: Any) -> None:
    """Show the execution ID and its steps."""
    with asked(**given) as request:
        found = request.client.ask("get_execution", id=_id(number, named))
        request.answer(found, display_of(found))


@group.command("stop")
@_id_argument
@admin_options
def stop(number: int | None, named: int | None, **given: Any) -> None:
    """Stop the running steps of the execution ID."""
    with asked(**given) as request:
        chosen = _id(number, named)
        found = request.client.ask("change_execution", query={"stop": "true"}, id=chosen)
        request.answer(found, f"Stopped Job execution that has executionId '{chosen}'")


@group.command("restart")
@_id_argument
@admin_options
def restart(number: int | None, named: int | None, **given: Any) -> None:
    """Restart the execution ID, which failed or was stopped, from the steps that have not completed."""
    with asked(**given) as request:
        chosen = _id(number, named)
        found = request.client.ask("change_execution", query={"restart": "true"}, id=chosen)
        request.answer(found, f"Restarted Job execution that had executionId '{chosen}'")


@click.group("all", cls=Group)
def everything() -> None:
    """Stop all executions."""


@everything.command("stop")
@click.option("--force", is_flag=True, help="Do not ask first.")
@admin_options
def stop_all(force: bool, **given: Any) -> None:
    """Stop all running executions."""
    from storm_on_spark.cluster.errors import TransitionError

    with asked(**given) as request:
        if not force:
            if not sys.stdin.isatty():
                raise click.UsageError("Expected --force: there is no terminal to ask whether to stop all")
            if not click.confirm("Really stop all job executions?", err=True):
                return
        stopped = []
        for each in request.client.every("list_executions"):
            if each.end_time is None:
                try:
                    query = {"stop": "true"}
                    stopped.append(request.client.ask("change_execution", query=query, id=str(each.execution_id)))
                except TransitionError:
                    # It ended meanwhile.
                    continue
        request.answer({"executions": stopped}, "Stopped all the job executions")


group.add_command(everything)


def table_of(executions: Sequence[ExecutionView]) -> str:
    """Returns executions as a table."""
    headings = ["Id", "Job Name", "Start Time", "Step Execution Count", "Execution Status"]
    rows = [
        [
            str(each.execution_id),
            each.name,
            _time(each.start_time),
            str(sum(step.execution_id == each.execution_id for step in each.steps)),
            each.status,
            "Deployed" if each.deployed else "Undeployed",
            "Destroyed" if each.deleted else "Exists",
        ]
        for each in executions
    ]
    return table([*headings, "Deployment Status", "Definition Status"], rows)


def display_of(found: ExecutionView) -> str:
    """Returns an execution and its steps as text."""
    facts = [
        ["Job Execution ID", str(found.execution_id)],
        ["Job Name", found.name],
        ["Create Time", _time(found.create_time)],
        ["Start Time", _time(found.start_time)],
        ["End Time", _time(found.end_time)],
        ["Execution Status", found.status],
    ]
    if found.restarts is not None:
        facts.append(["Restart Of", str(found.restarts)])
    if found.restarted_by is not None:
        facts.append(["Restarted By", str(found.restarted_by)])
    facts += [[f"Parameter {name}", value] for name, value in found.parameters.items()]
    steps = [
        [
            step.name,
            step.status,
            "" if step.execution_id is None else str(step.execution_id),
            _time(step.start_time),
            _time(step.end_time),
            "" if step.exit_code is None else str(step.exit_code),
            step.exit_status or "",
            one_line(step.error)[:_LONGEST],
        ]
        for step in found.steps
    ]
    headings = ["Step Name", "Status", "Job Exec ID", "Start Time", "End Time", "Exit", "Exit Status", "Error"]
    text = f"Job Execution Details:\n{table(['Property', 'Value'], facts)}\n{table(headings, steps)}"
    logs = [f"  {step.name}: {step.log}" for step in found.steps if step.log]
    return f"{text}\nLogs:\n" + "\n".join(logs) if logs else text


def _time(seconds: float | None) -> str:
    if seconds is None:
        return ""
    when = datetime.fromtimestamp(seconds).astimezone()
    return f"{when:%Y-%m-%d %H:%M:%S},{when.microsecond // 1000:03}"
