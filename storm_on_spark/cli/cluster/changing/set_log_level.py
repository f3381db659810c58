"""`storm-spark set-log-level`: changes levels of loggers while a topology runs."""

from __future__ import annotations

import re
import time
from typing import Any

import click

from storm_on_spark.cli.client.asking import asked, cluster_options, name


@click.command("set-log-level", short_help="Change log levels of a running topology.")
@name
@click.option(
    "-l",
    "--level",
    "levels",
    metavar="LOGGER=LEVEL[:SECONDS]",
    multiple=True,
    help="Level of a logger: ALL, TRACE, DEBUG, INFO, WARN, ERROR, FATAL or OFF; after so many seconds it has its "
    "former level again. ROOT is the logger that all others inherit from. May be repeated.",
)
@click.option("-r", "--remove", metavar="LOGGER", multiple=True, help="Take a change back. May be repeated.")
@cluster_options
def command(name: str, levels: tuple[str, ...], remove: tuple[str, ...], **given: Any) -> None:
    """Change levels of loggers of the topology NAME, in its driver and in every process that runs its components.

    Without -l and -r it shows which are changed. A change lasts over failovers, until its time is over.
    """
    changes: dict[str, tuple[str, float] | None] = dict.fromkeys(remove)
    changes.update(_level(text) for text in levels)
    with asked(**given) as request, request.client() as client:
        found = client.set_log_levels(name, changes) if changes else client.log_levels(name)
        lines = [f"{logger}: {_told(level)}" for logger, level in found.items()]
        request.answer(
            {"topology": name, "namedLoggerLevels": found}, "\n".join(lines) or f"No log level of {name} is changed."
        )


def _level(text: str) -> tuple[str, tuple[str, float]]:
    found = re.fullmatch(r"([^=]+)=([A-Za-z]+)(?::(\d{1,9}))?", text)
    if found is None:
        raise click.UsageError(f"-l takes LOGGER=LEVEL or LOGGER=LEVEL:SECONDS, such as ROOT=DEBUG:30, not {text!r}")
    logger, level, secs = found.groups()
    return logger, (level.upper(), float(secs or 0))


def _told(level: dict[str, Any]) -> str:
    if not level["timeout_epoch"]:
        return f"{level['target_level']}, until it is taken back"
    left = level["timeout_epoch"] / 1000 - time.time()
    if left <= 0:
        return str(level["reset_level"])
    return f"{level['target_level']} for {left:.0f} s, then {level['reset_level'] or 'as before'}"
