"""`storm-spark node-health-check`: runs this machine's health checks once."""

from __future__ import annotations

import dataclasses
import json as jsonlib
import sys
from pathlib import Path

import click

from storm_on_spark.cli.client.asking import json
from storm_on_spark.cli.shared import options
from storm_on_spark.cli.shared.echo import echo
from storm_on_spark.cli.shared.errors import reporting_errors
from storm_on_spark.launch.conf_text import merged


@click.command("node-health-check", short_help="Run this machine's health checks.")
@options.configuration
@json
@options.debug
def command(pairs: tuple[str, ...], files: tuple[Path, ...], json: bool, debug: bool) -> None:
    """Run the scripts of storm.health.check.dir, as a supervisor does each minute.

    The exit code is 1 if the machine is not fit.

    A script says so by exiting with another code than 0 after a line that begins with ERROR, or by taking longer than
    storm.health.check.timeout.ms.
    """
    with reporting_errors(debug, json):
        from storm_on_spark.api.config import validate_conf
        from storm_on_spark.api.errors import ConfigError
        from storm_on_spark.cluster.supervisor.health import HealthSettings, check_health, why_unhealthy

        conf = merged(files, pairs)
        validate_conf(conf, "node-health-check")
        settings = HealthSettings.of(conf)
        if settings.folder is None:
            key = "storm.health.check.dir"
            raise ConfigError(f"{key} is not set: it names the folder with the scripts", key=key)
        checked = check_health(settings)
        why = why_unhealthy(checked, fail_on_timeouts=settings.fail_on_timeouts)
        if json:
            echo(jsonlib.dumps({"healthy": not why, "checks": [dataclasses.asdict(each) for each in checked]}))
        else:
            for each in checked:
                echo(f"{each.script}: {each.result}{f', {each.said}' if each.said else ''}")
            echo(f"This machine is not fit: {why}" if why else "This machine is fit.")
    if why:
        sys.exit(1)
