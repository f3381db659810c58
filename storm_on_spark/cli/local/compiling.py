"""`storm-spark compile`: writes a topology as a folder that spark-submit runs."""

from __future__ import annotations

import json as jsonlib
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from storm_on_spark.cli.client.needs import need_libraries
from storm_on_spark.cli.client.which_cluster import topologys
from storm_on_spark.cli.shared import options
from storm_on_spark.cli.shared.echo import echo
from storm_on_spark.cli.shared.errors import reporting_errors
from storm_on_spark.cli.shared.progress import Progress
from storm_on_spark.cli.shared.requirements import requirements_of
from storm_on_spark.cli.shared.terminal import console
from storm_on_spark.launch.loader import load

if TYPE_CHECKING:
    from storm_on_spark.artifact.compiling import Written


@click.command("compile", short_help="Write a topology as a job for spark-submit.")
@options.target
@click.option(
    "-o",
    "--out",
    "out",
    metavar="DIR",
    type=click.Path(path_type=Path),
    help="The folder to write: a new one, an empty one, or an artifact, which is replaced.",
)
@options.name_or_n
@options.configuration_without_o
@click.option("--check", is_flag=True, help="Compile and pack, print the result, but write nothing.")
@click.option(
    "-r",
    "--requirements",
    metavar="FILE",
    type=click.Path(path_type=Path, exists=True, dir_okay=False, readable=True),
    help="Packages that it needs, in pip's format; they travel with it. Default: a streamparse project's.",
)
@click.option(
    "--with-spark-needs",
    is_flag=True,
    help="Also pack pyarrow, pandas and other packages that PySpark needs, for executors without them.",
)
@options.master_for(
    "The Spark master that the job is for, such as spark://HOST:7077. The command line that starts the job names it, "
    "and the plan is for its cores. By default the plan is for 4 cores, and the line for a standalone cluster."
)
@click.option("--quiet", is_flag=True, help="Show no progress.")
@click.option("--json", is_flag=True, help="Print one JSON document.")
@options.debug
def command(
    target: str | None,
    out: Path | None,
    name: str | None,
    pairs: tuple[str, ...],
    files: tuple[Path, ...],
    check: bool,
    requirements: Path | None,
    with_spark_needs: bool,
    master: str | None,
    quiet: bool,
    json: bool,
    debug: bool,
) -> None:
    """Write a topology as a self-contained folder: the program for spark-submit, and everything that it needs.

    Executors don't need Storm on Spark: it travels with the topology, and so do the packages of --requirements.
    README.md in the folder has the exact command line. Compiling the same topology again gives the same bytes.

    The job runs on any Spark, even if --master names one.
    """
    with reporting_errors(debug, json):
        if (out is None) != check:
            raise click.UsageError(
                "Missing option '-o DIR', or '--check'." if out is None else "--check takes no -o DIR."
            )
        need_libraries()
        with Progress(console(sys.stderr), quiet=quiet or json) as progress:
            written, warnings = _write(
                options.target_of(target, name),
                out,
                name,
                (files, pairs),
                (requirements, with_spark_needs, master),
                progress,
                quiet or json,
            )
        for sentence in warnings:
            echo(f"Warning: {sentence}", err=True)
        for sentence in written.left_out:
            echo(f"Not packed: {sentence}", err=True)
        if json:
            echo(jsonlib.dumps(_document(written, out, warnings)))
        else:
            echo(_summary(written, out))


def _write(
    target: str,
    out: Path | None,
    name: str | None,
    given: tuple[tuple[Path, ...], tuple[str, ...]],
    how: tuple[Path | None, bool, str | None],
    progress: Progress,
    quiet: bool,
) -> tuple[Written, list[str]]:
    from storm_on_spark.artifact.compiling import Job, write
    from storm_on_spark.artifact.layout import refuse_foreign
    from storm_on_spark.spark.compiled import compile_topology

    if out is not None:
        # First, so that nobody waits for the compiler only to learn that the folder can't be written.
        refuse_foreign(out)
    progress.say(f"{target}: compiling ...")
    loaded = load(target)
    conf = topologys(options.conf_of(loaded, *given, quiet=quiet))
    name = options.name_of(name, conf, loaded)
    compiled = compile_topology(loaded.topology(conf), conf)
    compiled.check()
    requirements, with_spark_needs, master = how
    required = requirements_of(loaded, conf, requirements, quiet=quiet)
    job = Job(target, name, conf, compiled, required, with_spark_needs, master, loaded.conf)
    written = write(job, out, lambda text: progress.say(f"{name}: {text}"))
    warnings = [compiled.warning] if compiled.warning else []
    warnings += [
        f"{key} may hold a secret and is left out; give it when you start the job, with --conf FILE.yaml after main.py."
        for key in written.manifest["left_out_keys"]
    ]
    warnings += [
        f"{key} may hold a secret and is part of the topology's code, which travels; put it in a file for --conf."
        for key in written.secrets_in_code
    ]
    return written, warnings


def _document(written: Written, out: Path | None, warnings: list[str]) -> dict[str, Any]:
    manifest = written.manifest
    return {
        "topology": manifest["name"],
        "folder": None if out is None else str(out.absolute()),
        "files": sorted(manifest["files"]),
        "bytes": written.size,
        "command": written.command,
        "packages": manifest["packages"],
        "executors_need": manifest["executors_need"],
        "left_out": list(written.left_out),
        "warnings": warnings,
        "error": None,
    }


def _summary(written: Written, out: Path | None) -> str:
    name, size = written.manifest["name"], f"{len(written.manifest['files'])} files, {written.size / (1 << 20):.1f} MiB"
    if out is None:
        return f"{name} compiles: {size}. Nothing was written."
    return f"{name} is compiled into {out}: {size}. Start it there, as README.md says:\n\n  {written.command}"
