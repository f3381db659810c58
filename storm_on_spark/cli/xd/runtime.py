"""`storm-spark runtime`: the containers of an admin, and the modules in them."""

from __future__ import annotations

from typing import Any

import click

from storm_on_spark.cli.shared.groups import Group
from storm_on_spark.cli.xd.asking import admin_options, asked
from storm_on_spark.cli.xd.tables import braced, table


@click.group("runtime", cls=Group, short_help="Show the containers of an admin, and their modules.")
def command() -> None:
    """Show the containers of an admin, and the modules in them."""


@command.command("containers")
@admin_options
def containers(**given: Any) -> None:
    """List the running containers."""
    with asked(**given) as request:
        found = list(request.client.every("list_containers"))
        headings = ["Container Id", "Host", "IP Address", "PID", "Groups", "Custom Attributes"]
        rows = [
            [
                each.container_id,
                each.host,
                each.ip,
                str(each.pid),
                ",".join(each.groups),
                braced(each.attributes) if each.attributes else "",
            ]
            for each in found
        ]
        request.answer({"containers": found}, table(headings, rows))


@command.command("modules")
@click.option("--containerId", "container", metavar="ID", help="Only modules of this container.")
@click.option("--moduleId", "module", metavar="ID", help="Only this module, such as ticktock.source.time.1.")
@admin_options
def modules(container: str | None, module: str | None, **given: Any) -> None:
    """List the running instances of modules."""
    with asked(**given) as request:
        query = {"containerId": container, "moduleId": module}
        chosen = {name: value for name, value in query.items() if value is not None}
        found = list(request.client.every("list_runtime_modules", chosen))
        headings = ["Module", "Container Id", "Options", "Deployment Properties"]
        rows = [
            [each.name, each.container_id, braced(each.options), braced(each.deployment_properties)] for each in found
        ]
        request.answer({"modules": found}, table(headings, rows))
