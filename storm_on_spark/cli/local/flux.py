"""`storm-spark flux`: runs, submits or shows a Flux file, with Flux's options."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from storm_on_spark.cli.client.asking import cluster_options
from storm_on_spark.cli.shared import options
from storm_on_spark.cli.shared.echo import echo
from storm_on_spark.cli.shared.errors import reporting_errors


@click.command("flux", short_help="Run, submit or show a topology in a Flux file.")
@click.argument("file", metavar="FILE.yaml")
@click.option("--local", "-l", "where", flag_value="local", help="Run it here, as `run` does. This is the default.")
@click.option("--remote", "-r", "where", flag_value="remote", help="Submit it to a cluster, as `submit` does.")
@click.option("--dry-run", "-d", is_flag=True, help="Build, check and show it, but run nothing.")
@click.option("--explain", is_flag=True, help="Show what it compiles to, but run nothing.")
@click.option(
    "--filter",
    "-f",
    "filter_file",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="A file of properties: ${name} in the Flux file stands for the property with that name.",
)
@click.option("--env-filter", "-e", is_flag=True, help="${ENV-NAME} in the Flux file stands for the variable NAME.")
@click.option("--inactive", "-i", is_flag=True, help="With --remote: spouts emit only after the topology is activated.")
@click.option("--sleep", "-s", metavar="MS", type=click.IntRange(1), help="With --local: end after this many ms.")
@click.option("--no-detail", "-q", is_flag=True, help="Show no progress and no details of the topology.")
@click.option("--no-splash", "-n", is_flag=True, help="No effect: there is no splash screen.")
@options.name
@options.master
@cluster_options
@click.pass_context
def command(
    context: click.Context,
    /,
    file: str,
    where: str | None,
    dry_run: bool,
    explain: bool,
    filter_file: Path | None,
    env_filter: bool,
    inactive: bool,
    sleep: int | None,
    no_detail: bool,
    no_splash: bool,
    name: str | None,
    master: str | None,
    **given: Any,
) -> None:
    """Run, submit or show a topology that a Flux file describes.

    `run`, `submit`, `explain` and `validate` also accept a Flux file; only this command fills placeholders (${...}).
    """
    from storm_on_spark.flux import Substitution, substituting
    from storm_on_spark.flux.properties import read_properties

    remote = where == "remote"
    _check_place(remote, inactive, sleep, master, given)
    with reporting_errors(given["debug"], given["json"]):
        properties = {} if filter_file is None else read_properties(filter_file)
        values = Substitution.of(properties, environment=env_filter)
    shared = {key: given[key] for key in ("pairs", "files", "json", "debug")}
    with substituting(values):
        if explain:
            from storm_on_spark.cli.local.explain import command as explaining

            shared["form"] = "json" if shared.pop("json") else None
            context.invoke(explaining, target=file, master=master, **shared)
        elif dry_run and given["json"]:
            from storm_on_spark.cli.local.validate import command as validating

            context.invoke(validating, target=file, **shared)
        elif dry_run:
            _show(file, name, given, details=not no_detail)
        elif remote:
            from storm_on_spark.cli.cluster.changing.submit import command as submitting

            context.invoke(submitting, target=file, name=name, inactive=inactive, quiet=no_detail, **given)
        else:
            from storm_on_spark.cli.local.run import command as running

            seconds = None if sleep is None else sleep / 1000
            context.invoke(
                running, target=file, name=name, master=master, seconds=seconds, quiet=no_detail, **shared
            )  # fmt: skip


def _check_place(remote: bool, inactive: bool, sleep: int | None, master: str | None, given: dict[str, Any]) -> None:
    here = {"--sleep": sleep is not None, "--master": master is not None}
    there = {"--inactive": inactive, "--nimbus": bool(given["nimbuses"]), "--token-file": given["token_file"]}
    for option in (name for name, is_set in (here if remote else there).items() if is_set):
        raise click.UsageError(f"{option} goes with {'--local' if remote else '--remote'}")


def _show(file: str, name: str | None, given: dict[str, Any], *, details: bool) -> None:
    from storm_on_spark.launch.loader import load
    from storm_on_spark.spark.compiled import compile_topology

    with reporting_errors(given["debug"]):
        target = load(file)
        conf = options.conf_of(target, given["files"], given["pairs"])
        topology = target.topology(conf)
        compiled = compile_topology(topology, conf)
        compiled.check()
        if details:
            echo(f"topology {options.name_of(name, conf, target)}")
            echo(str(topology))
        if compiled.warning:
            echo(compiled.warning, err=True)
