"""`storm-spark migrate`: shows which parts of a streamparse project run here."""

from __future__ import annotations

import dataclasses
import json as jsonlib
import sys
from collections import Counter
from pathlib import Path

import click
from rich.table import Table
from rich.text import Text

from storm_on_spark.api.text.printable import printable
from storm_on_spark.cli.shared import options
from storm_on_spark.cli.shared.echo import echo
from storm_on_spark.cli.shared.errors import reporting_errors
from storm_on_spark.cli.shared.terminal import console
from storm_on_spark.streamparse.projects.migrate import native_code, read_project, write_native


@click.command("migrate", short_help="Show which parts of a streamparse project run here.")
@click.argument("folder", metavar="DIR", type=click.Path(path_type=Path))
@click.option("--write", is_flag=True, help="Write native classes for the simple components to new files beside them.")
@click.option("--json", is_flag=True, help="Print one JSON document.")
@options.debug
def command(folder: Path, write: bool, json: bool, debug: bool) -> None:
    """Show which parts of the streamparse project in DIR run here unchanged, which don't, and why.

    This reads the code but does not run it. Nothing is written without --write, and no file is ever overwritten.
    """
    with reporting_errors(debug, json):
        found = read_project(folder)
        natives = write_native(folder) if write else native_code(folder)[0]
        count = Counter(finding.verdict for finding in found)
        totals = {"runs": count["runs"], "differs": count["differs"], "no": count["no"]}
        if json:
            findings = [dataclasses.asdict(finding) for finding in found]
            made = {"native": [dataclasses.asdict(native) for native in natives], "written": write}
            echo(jsonlib.dumps({"folder": str(folder), "findings": findings, **totals, **made}))
            return
        table = Table("where", "what", "runs", "why")
        for finding in found:
            verdict = {"runs": "yes", "differs": "yes, but", "no": "no"}[finding.verdict]
            cells = (f"{finding.file}:{finding.line}", finding.what, verdict, finding.why)
            # Text, because a word such as [red] would be taken for markup.
            table.add_row(*(Text(printable(cell)) for cell in cells))
        console(sys.stdout).print(table)
        echo(f"{count['runs']} run as they are, {count['differs']} with a difference, {count['no']} do not run")
        for native in natives:
            became = f"{'is now' if write else 'can be made'} native in {native.target}" if native.target else "stays"
            echo(f"{native.file}:{native.line} {native.what} {became}{native.why and ': '}{native.why}")
        if not write and any(native.target for native in natives):
            echo("--write writes the native classes")
