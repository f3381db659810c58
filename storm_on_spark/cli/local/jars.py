"""`storm-spark jars`: shows and fetches the jars that some features need."""

from __future__ import annotations

import json as jsonlib
import sys
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import click

from storm_on_spark.cli.shared.echo import echo
from storm_on_spark.cli.shared.errors import FAILED, reporting_errors
from storm_on_spark.cli.shared.options import debug
from storm_on_spark.cli.shared.progress import Progress
from storm_on_spark.cli.shared.terminal import console
from storm_on_spark.connectors.delta.spout import JARS as DELTA
from storm_on_spark.connectors.kafka.jars import JARS, SOURCE
from storm_on_spark.spark.session import jars
from storm_on_spark.spark.session.folders.owned import PREFIX
from storm_on_spark.spark.session.jvm.java import require_java

SETS: Final[Mapping[str, jars.JarSet]] = {
    "local-files": jars.BARE_LOCAL_FS,
    "s3": jars.S3A,
    "kafka": SOURCE,
    "delta": DELTA,
    "kafka-broker": JARS,
}
"""The names of the sets of jars on the command line."""

_LOOK_SECS: Final = 1.0
_PATIENT_SECS: Final = 5.0
"""Seconds between two lines without a terminal, where a line can't be redrawn."""


@click.command("jars", short_help="Show or fetch the jars that some features need.")
@click.argument("names", metavar="[SET]...", nargs=-1, type=click.Choice(list(SETS)))
@click.option("--all", "everything", is_flag=True, help="Fetch all sets; s3 alone has 700 MB.")
@click.option("--quiet", is_flag=True, help="Show no progress.")
@click.option("--json", is_flag=True, help="Print one JSON document.")
@debug
def command(names: tuple[str, ...], everything: bool, quiet: bool, json: bool, debug: bool) -> None:
    """Fetch sets of jars with Ivy, which comes with pyspark, or with Maven; without a SET, show which are present.

    local-files makes micro-batches on local folders faster, s3 is for checkpoints in s3a://, kafka for KafkaSpout,
    delta for DeltaSpout, and kafka-broker for `storm-spark dev-kafka`. Each jar's SHA-256 must be that of the tested
    jar. Jars that are already present are not fetched again. Features fetch the sets that they need; this command
    does so in advance.
    """
    wanted = dict.fromkeys(SETS if everything else names)
    with reporting_errors(debug, json):
        missing = []
        with Progress(console(sys.stderr), quiet=quiet or json) as progress:
            if any(jars.cached(SETS[name]) is None for name in wanted):
                require_java()
            for name in wanted:
                if not _fetch(name, SETS[name], progress):
                    missing.append(name)
        error = _sentence(missing) if missing else None
        if json:
            echo(jsonlib.dumps({"sets": [_document(name) for name in wanted or SETS], "error": error}))
        else:
            for name in wanted or SETS:
                echo(_line(name))
        if error is not None:
            echo(f"Error: {error}", err=True)
            sys.exit(FAILED)


def _fetch(name: str, wanted: jars.JarSet, progress: Progress) -> bool:
    """Fetches a set and shows progress; returns whether the set is then present."""
    if jars.cached(wanted) is not None:
        return True
    done = threading.Event()

    def look() -> None:
        pause = _LOOK_SECS if sys.stderr.isatty() else _PATIENT_SECS
        while not done.wait(pause):
            progress.say(f"{name}: fetching {_jars(wanted)}, {_fetched_bytes() >> 20:,} MiB so far ...")

    progress.say(f"{name}: fetching {_jars(wanted)} ...")
    looking = threading.Thread(target=look, name="fetch-jars-progress", daemon=True)
    looking.start()
    try:
        # On this thread, so that Ctrl-C ends the resolver and removes what it has fetched so far.
        return jars.fetch(wanted, again=True) is not None
    finally:
        done.set()
        looking.join()


def _fetched_bytes() -> int:
    total = 0
    for folder in jars.cache().glob(f"{PREFIX}-*"):
        for path in folder.rglob("*"):
            try:
                total += path.stat().st_size if path.is_file() else 0
            except OSError:
                continue  # the resolver has renamed it
    return total


def _jars(wanted: jars.JarSet) -> str:
    return "1 jar" if len(wanted.jars) == 1 else f"{len(wanted.jars)} jars"


def _sentence(missing: list[str]) -> str:
    words = "; ".join(f"without {name}, {SETS[name].without}" for name in missing)
    return (
        f"{', '.join(missing)} can't be fetched: neither Ivy nor Maven gets these jars from here, as without a network "
        f"or a mirror in ~/.m2/settings.xml, or what they get is not what was tested. {words[:1].upper()}{words[1:]}"
    )


def _document(name: str) -> dict[str, Any]:
    found = jars.cached(SETS[name])
    return {
        "name": name,
        "cached": found is not None,
        "without": SETS[name].without,
        "jars": [
            {"coordinates": str(jar), "sha256": jar.sha256, "path": None if found is None else str(path)}
            for jar, path in zip(SETS[name].jars, found or [Path()] * len(SETS[name].jars), strict=True)
        ],
    }


def _line(name: str) -> str:
    found = jars.cached(SETS[name])
    if found is None:
        return f"{name}: missing ({_jars(SETS[name])}); without it {SETS[name].without}"
    size = sum(path.stat().st_size for path in found) / (1 << 20)
    return f"{name}: present, {_jars(SETS[name])}, {size:,.1f} MiB in {found[0].parent}"
