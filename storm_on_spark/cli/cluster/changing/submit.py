"""`storm-spark submit`: submits a topology to a cluster."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from storm_on_spark.api.errors import ConfigError, NotAliveError, TopologyFailedError
from storm_on_spark.cli.client.asking import Given, asked, cluster_options
from storm_on_spark.cli.client.submitter import UPLOAD_SHOWN_BYTES
from storm_on_spark.cli.client.which_cluster import topologys
from storm_on_spark.cli.cluster.watching.stages import Stage, stage_of
from storm_on_spark.cli.shared import options
from storm_on_spark.cli.shared.echo import echo
from storm_on_spark.cli.shared.progress import Progress
from storm_on_spark.cli.shared.requirements import requirements_of
from storm_on_spark.cli.shared.terminal import console
from storm_on_spark.runtime.processes.ending import at_once

if TYPE_CHECKING:
    from storm_on_spark.cluster.client.nimbus_client import NimbusClient, SubmitProgress
    from storm_on_spark.cluster.code.packing.bundle import Packed

_LOOK_SECS: Final = 0.3
_UNSEEN_SECS: Final = 30.0
"""How long after its submission a Nimbus may still not know a topology."""


@click.command("submit", short_help="Submit a topology to a cluster.")
@options.target
@options.name_or_n
@click.option("--inactive", is_flag=True, help="Spouts emit only after the topology is activated.")
@click.option(
    "--requirements",
    metavar="FILE",
    type=click.Path(path_type=Path, exists=True, dir_okay=False, readable=True),
    help="Packages that it needs, in pip's format; supervisors install them. Default: a streamparse project's.",
)
@click.option("--wait", is_flag=True, help="Wait until its first micro-batch is done.")
@click.option("--quiet", is_flag=True, help="Show no progress.")
@cluster_options
def command(
    target: str | None,
    name: str | None,
    inactive: bool,
    requirements: Path | None,
    wait: bool,
    quiet: bool,
    **given: Any,
) -> None:
    """Submit a topology to a cluster, where it runs until it is killed or completes.

    Modules that it imports from its own folder are sent too. The command returns when the cluster has accepted the
    topology, which from then on survives the death of a Nimbus. With --wait it returns after the first micro-batch.

    The target may also be a folder that `storm-spark compile` wrote.
    """
    with asked(**given) as request:
        with Progress(console(sys.stderr), quiet=quiet or request.json) as progress:
            submission = _Submission(request, options.target_of(target, name), name, progress.say)
            with at_once.last_words(lambda sentence: submission.tell_fate()):
                submission.submit(not inactive, requirements)
                if wait:
                    submission.wait()
        for sentence in submission.left_out:
            echo(f"Not packed: {sentence}", err=True)
        for sentence in submission.warnings:
            echo(f"Warning: {sentence}.", err=True)
        request.answer(submission.document(), submission.summary())


class _Submission:
    def __init__(self, request: Given, target: str, name: str | None, say: Callable[[str], object]) -> None:
        self._request = request
        self._target = target
        self._show = say
        self._said = ""
        self._started = time.monotonic()
        self._stage: Stage | None = None
        self.name = name or ""
        self.topology_id = ""
        self.left_out: tuple[str, ...] = ()
        self.warnings: tuple[str, ...] = ()
        self.seconds: dict[str, float] = {}

    def tell_fate(self) -> None:
        """Prints the topology's state on the cluster if this command is stopped."""
        if self.topology_id:
            os.write(2, f"{self.name} is submitted and keeps running.\n".encode())

    def submit(self, active: bool, requirements: Path | None) -> None:
        from storm_on_spark.api.config.secrets import without_secrets

        # First, so that nobody waits for the compiler only to learn that there is no cluster.
        with (
            self._request.client() as client,
            at_once.temporary_folder("storm-spark-submit-") as folder,
        ):
            conf = self._prepare(folder / "packed", requirements)
            self._say(f"{self.name}: uploading ...")
            self.topology_id = client.submit(
                folder / "packed", self.name, without_secrets(conf), active=active, progress=self._progress
            )
            self._note("submitted")

    def _say(self, text: str) -> None:
        if text != self._said:
            self._said = text
            self._show(text)

    def _prepare(self, folder: Path, requirements: Path | None) -> dict[str, Any]:
        from storm_on_spark.artifact.opening import is_artifact, open_artifact
        from storm_on_spark.launch.conf_text import merged

        if not is_artifact(self._target):
            packed, conf = self._pack(folder, requirements)
            self.left_out = packed.left_out
            return conf
        if requirements is not None:
            raise ConfigError(
                f"{self._target} already contains its requirements; --requirements can't be given with it"
            )
        self._say(f"{self._target}: verifying ...")
        given = merged(self._request.files, self._request.pairs)
        opened = open_artifact(Path(self._target), folder, topologys(given))
        self.name = self.name or opened.name
        return dict(opened.conf)

    def _pack(self, folder: Path, requirements: Path | None) -> tuple[Packed, dict[str, Any]]:
        from storm_on_spark.cluster.code.packing.bundle import pack
        from storm_on_spark.cluster.plan_summary import PlanSummary
        from storm_on_spark.launch.loader import load
        from storm_on_spark.spark.compiled import compile_topology

        self._say(f"{self._target}: compiling ...")
        loaded = load(self._target)
        conf = options.conf_of(loaded, self._request.files, self._request.pairs, quiet=self._request.json)
        conf = topologys(conf)
        self.name = options.name_of(self.name, conf, loaded)
        compiled = compile_topology(loaded.topology(conf), conf)
        compiled.check()
        if compiled.warning:
            echo(compiled.warning, err=True)
        plan = PlanSummary.of_graph(compiled.graph).document()
        required = requirements_of(loaded, conf, requirements, quiet=self._request.json)
        return pack(self._target, folder, conf=conf, plan=plan, requirements=required), conf

    def _progress(self, step: SubmitProgress) -> None:
        if step.phase == "uploading":
            if step.size > UPLOAD_SHOWN_BYTES:
                self._say(f"{self.name}: uploading, {step.sent:,} of {step.size:,} bytes")
            return
        self.warnings = step.warnings
        if step.phase == "replicating":
            self._say(f"{step.topology_id}: code on {step.replicas} of {step.wanted} Nimbuses")
        else:
            self._say(f"{step.topology_id}: scheduling ...")

    def wait(self) -> None:
        """Returns when the first batch is done.

        Raises:
            TopologyFailedError: the topology failed.
        """
        with self._request.client() as client:
            printed: set[str] = set()
            active_since: float | None = None
            unseen_until = time.monotonic() + _UNSEEN_SECS
            while True:
                try:
                    page, now = client.topology(self.topology_id), time.monotonic()
                except NotAliveError:
                    # Any Nimbus answers a read, and one that does not lead may not know the topology yet.
                    if self._stage is not None or time.monotonic() > unseen_until:
                        raise
                    time.sleep(_LOOK_SECS)
                    continue
                if active_since is None and page["driverStatus"] == "ACTIVE":
                    active_since = now
                self._stage = stage_of(page, 0.0 if active_since is None else now - active_since)
                self._note(self._stage.name)
                if self._stage.failure is not None:
                    raise TopologyFailedError(self.topology_id, self._stage.failure)
                if self._stage.is_done:
                    return
                self._tell_errors(client, printed)
                self._say(f"{self.topology_id}: {self._stage.text} ...")
                time.sleep(_LOOK_SECS)

    def _tell_errors(self, client: NimbusClient, printed: set[str]) -> None:
        for component, errors in client.errors(self.topology_id).items():
            for error in errors:
                line = error["error"].strip().splitlines()[-1:] or [""]
                text = f"{component}: {line[0]}"
                if text not in printed:
                    printed.add(text)
                    echo(f"{text}; input: {error['input']}" if error.get("input") else text, err=True)

    def _note(self, what: str) -> None:
        self.seconds.setdefault(what, round(time.monotonic() - self._started, 3))

    def document(self) -> dict[str, Any]:
        return {
            "topology": self.name,
            "id": self.topology_id,
            "stage": "submitted" if self._stage is None else self._stage.name,
            "seconds": self.seconds,
            "left_out": list(self.left_out),
            "warnings": list(self.warnings),
            "error": None,
        }

    def summary(self) -> str:
        if self._stage is None:
            return f"{self.name} is submitted as {self.topology_id}; `storm-spark status {self.name}` shows it."
        seconds = time.monotonic() - self._started
        return f"{self.name} ({self.topology_id}) {self._stage.text}, {seconds:.1f} s after the command was given."
