"""`storm-spark job`: jobs of an admin."""

from __future__ import annotations

from typing import Any

import click

from storm_on_spark.cli.xd.asking import admin_options, asked, name_argument, name_of
from storm_on_spark.cli.xd.lifecycle import commands


@click.command("launch")
@name_argument
@admin_options
def launch(name: str | None, **given: Any) -> None:
    """Launch the deployed job NAME."""
    from storm_on_spark.xd.admin.rest.schemas import LaunchJob

    with asked(**given) as request:
        chosen = name_of(name)
        found = request.client.ask("launch_job", LaunchJob(name=chosen))
        request.answer(found, f"Successfully submitted launch request for job '{chosen}'")


command = click.Group(
    "job",
    commands={**commands("job"), "launch": launch},
    short_help="Jobs on the containers of an admin, which refuses them as yet.",
    help="Jobs on the containers of an admin. Admins refuse them as yet.",
)
