"""`storm-spark job`: jobs of an admin, and their executions."""

from __future__ import annotations

import json as jsonlib
import time
from typing import TYPE_CHECKING, Any, Final

import click

from storm_on_spark.cli.shared.errors import FAILED
from storm_on_spark.cli.shared.groups import Group
from storm_on_spark.cli.shared.names import name_argument, name_of
from storm_on_spark.cli.xd.asking import admin_options, asked
from storm_on_spark.cli.xd.executions import display_of, group, table_of
from storm_on_spark.cli.xd.lifecycle import commands
from storm_on_spark.launch.loader import LoadError

if TYPE_CHECKING:
    from storm_on_spark.xd.admin.rest.schemas import ExecutionView
    from storm_on_spark.xd.client import AdminClient

_ENDED: Final = ("COMPLETED", "FAILED", "STOPPED")
_POLL_SECS: Final = 0.2


@click.command("launch")
@name_argument
@click.option("--params", metavar="JSON", default="", help='Parameters, such as \'{"day": "2026-11-24"}\'.')
@click.option("--wait", is_flag=True, help="Wait for the end, and fail if it does not complete.")
@admin_options
def launch(name: str | None, params: str, wait: bool, **given: Any) -> None:
    """Launch the deployed job NAME."""
    from storm_on_spark.xd.admin.rest.schemas import LaunchJob

    with asked(**given) as request:
        chosen = name_of(name)
        found = request.client.ask("launch_job", LaunchJob(name=chosen, parameters=read_parameters(params)))
        if not wait:
            request.answer(found, f"Successfully submitted launch request for job '{chosen}'")
            return
        found = _ended(request.client, found)
        request.answer(found, display_of(found))
        if found.status != "COMPLETED":
            click.get_current_context().exit(FAILED)


@click.command("status")
@name_argument
@admin_options
def status(name: str | None, **given: Any) -> None:
    """Show whether the job NAME is deployed, and its executions."""
    with asked(**given) as request:
        chosen = name_of(name)
        job = request.client.ask("get_job", name=chosen)
        executions = list(request.client.every("list_executions", {"jobname": chosen}))
        text = f"Job '{chosen}' is {job.status}"
        if executions:
            text += f"\n{table_of(executions)}"
        request.answer({"job": job, "executions": executions}, text)


def _ended(client: AdminClient, found: ExecutionView) -> ExecutionView:
    while found.status not in _ENDED:
        time.sleep(_POLL_SECS)
        found = client.ask("get_execution", id=str(found.execution_id))
    return found


def read_parameters(text: str) -> dict[str, str]:
    """Returns the parameters of a launch; a number or a boolean becomes a text.

    Raises:
        LoadError: the text is not a JSON object of such values.

    Example:
        >>> read_parameters('{"day": "2026-11-24", "rows": 5}')
        {'day': '2026-11-24', 'rows': '5'}
    """
    if not text.strip():
        return {}
    try:
        found = jsonlib.loads(text)
    except (ValueError, RecursionError) as error:
        raise LoadError(f"--params: expected a JSON object in single quotes, got {text!r:.100}: {error}") from error
    if not isinstance(found, dict) or not all(isinstance(value, str | int | float) for value in found.values()):
        raise LoadError(f"--params: expected a JSON object of texts and numbers, got {text!r:.100}")
    return {name: value if isinstance(value, str) else jsonlib.dumps(value) for name, value in found.items()}


command = Group(
    "job",
    commands={**commands("job"), "launch": launch, "status": status, "execution": group},
    short_help="Launch and manage jobs on the containers of an admin.",
    help='Jobs of steps, such as "load || <report & mail>", on the containers of an admin (--admin URL). `storm-spark '
    "module list` shows the modules of the type job.",
)
