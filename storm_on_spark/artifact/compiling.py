"""Writes an artifact."""

from __future__ import annotations

import json
import sys
import sysconfig
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from html import escape
from pathlib import Path
from typing import Any, Final

from storm_on_spark import __version__
from storm_on_spark.api.config.secrets import without_secrets
from storm_on_spark.artifact import layout, main, packages, submitting
from storm_on_spark.cluster.code.checksums import CODE, REQUIREMENTS
from storm_on_spark.cluster.code.folders import replace, scratch_of
from storm_on_spark.cluster.code.packing import archive
from storm_on_spark.cluster.code.packing.bundle import pack
from storm_on_spark.cluster.code.packing.requirements import Requirements, install
from storm_on_spark.cluster.plan_summary import PlanSummary
from storm_on_spark.launch.conf_text import spark_conf
from storm_on_spark.launch.settings import CheckpointSettings
from storm_on_spark.plan.explain.document import explain_dict
from storm_on_spark.plan.explain.mermaid import explain_mermaid
from storm_on_spark.plan.explain.picture import plan_html
from storm_on_spark.runtime.processes.ending.at_once import temporary_folder
from storm_on_spark.spark.checkpoint.location import location_of
from storm_on_spark.spark.compiled import CompiledTopology
from storm_on_spark.spark.session.settings.real_time import why_batches_here
from storm_on_spark.spark.session.settings.required import parallelism_of

DRAWN_FOR: Final = 4
"""Cores assumed for the plan if no master is named: a plan must not depend on the machine that compiles it."""


@dataclass(frozen=True)
class Job:
    """A topology to be compiled into an artifact."""

    target: str
    """The argument for `load`."""
    name: str
    conf: Mapping[str, Any]
    compiled: CompiledTopology
    requirements: Requirements | None = None
    """The requirements that pip installs into the artifact."""
    with_spark_needs: bool = False
    """Whether to include pyarrow and the other packages that PySpark needs."""
    master: str | None = None
    """Spark's master, for the plan and for the line that starts it."""
    own_conf: Mapping[str, Any] = field(default_factory=dict)
    """The configuration in the topology's own code."""


@dataclass(frozen=True)
class Written:
    """An artifact, or the result of a trial run."""

    manifest: Mapping[str, Any]
    left_out: tuple[str, ...]
    """Files of the topology that are not in it; a sentence with the reason for each."""
    command: str
    """The line for the given master, or for a standalone cluster."""
    size: int
    """Bytes of all files."""
    secrets_in_code: tuple[str, ...]
    """Keys that may hold secrets and are in the topology's code, which is part of the artifact."""


def write(job: Job, out: Path | None, say: Callable[[str], object] = lambda text: None) -> Written:
    """Writes a topology's artifact; the same topology and packages give the same bytes.

    Args:
        job: the topology.
        out: the folder; created, or replaced if it holds an artifact. With None everything is made and then discarded.
        say: called with messages about the progress.

    Raises:
        CodeError: the folder holds something else, or the code or its packages can't be packed.
        SetupError: this installation can't be packed.
    """
    if out is not None:
        layout.refuse_foreign(out)
        out = out.absolute()
        with scratch_of(out) as scratch:
            written = _write(job, scratch, say)
            # Another process may have written to it in the meantime.
            layout.refuse_foreign(out)
            replace(scratch, out)
        return written
    with temporary_folder("storm-spark-compile-") as folder:
        return _write(job, folder, say)


def _write(job: Job, folder: Path, say: Callable[[str], object]) -> Written:
    conf = without_secrets(job.conf)
    settings = spark_conf(conf)
    say("packing the topology ...")
    packed = pack(
        job.target,
        folder / layout.TOPOLOGY,
        conf=conf,
        plan=PlanSummary.of_graph(job.compiled.graph).document(),
        requirements=job.requirements,
    )
    found = _pack_job(job, conf, packed.entry, folder, say)
    checkpoint = CheckpointSettings.of(conf).folder
    parallelism = parallelism_of(job.master, settings, DRAWN_FOR) if job.master else None
    parallelism = parallelism or DRAWN_FOR
    # Without a master it may run anywhere.
    where = job.master or settings.get("spark.master") or "an unknown cluster"
    in_store = checkpoint is not None and location_of(checkpoint).path is None
    plan = job.compiled.placed(parallelism, session=why_batches_here(conf, where, in_store=in_store))
    jar_list = submitting.jar_list(checkpoint)
    secret = sorted(key for key in job.conf if conf.get(key) != job.conf[key])
    in_code = tuple(key for key in secret if job.own_conf.get(key) == job.conf[key])
    manifest = {
        "format": layout.FORMAT,
        "name": job.name,
        "release": __version__,
        "spark": _spark_version(),
        "python": _python(),
        "platform": sysconfig.get_platform(),
        "entry": packed.entry,
        "packed": list(packed.packed),
        "packages": found.versions,
        "executors_need": [] if job.with_spark_needs else [n for n in packages.SPARK_NEEDS if n not in found.versions],
        "checkpoint": checkpoint,
        "left_out_keys": [key for key in secret if key not in in_code],
        "parallelism": parallelism,
        "master": job.master,
    }
    head = f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{escape(job.name)}</title>'
    for name, content in {
        layout.MAIN: Path(str(main.__file__)).read_bytes(),
        layout.LOGGING: Path(str(main.__file__)).with_name(layout.LOGGING).read_bytes(),
        layout.PLAN: layout.json_bytes(explain_dict(plan)),
        layout.MERMAID: explain_mermaid(plan).encode(),
        layout.PICTURE: f"{head}{plan_html(plan)}</html>\n".encode(),
        layout.JARS: layout.json_bytes(jar_list),
        layout.README: submitting.readme(manifest, settings, jar_list),
    }.items():
        (folder / name).write_bytes(content)
    files = layout.files_of(folder)
    (folder / layout.SUMS).write_bytes(layout.sums(files))
    manifest["files"] = files
    (folder / layout.MANIFEST).write_bytes(layout.json_bytes(manifest))
    line = submitting.line_for(job.master or submitting.STANDALONE, settings, jar_list, checkpoint)
    size = sum(int(file["size"]) for file in files.values())
    return Written(manifest, packed.left_out, line, size, in_code)


def _pack_job(
    job: Job, conf: Mapping[str, Any], entry: str, folder: Path, say: Callable[[str], object]
) -> packages.Packages:
    """Writes the files for executors."""
    document = {
        "format": layout.FORMAT,
        "name": job.name,
        "entry": entry,
        "python": _python(),
        "conf": json.loads(json.dumps(conf)),
    }
    with temporary_folder("storm-spark-compile-") as temporary:
        installed = None
        requirements = folder / layout.TOPOLOGY / REQUIREMENTS
        if requirements.is_file():
            say("installing what it requires ...")
            installed = install(requirements.read_bytes(), temporary)
        say("packing the packages ...")
        found = packages.collect(installed, with_spark_needs=job.with_spark_needs)
        code = temporary / "code"
        code.mkdir()
        with (folder / layout.TOPOLOGY / CODE).open("rb") as file:
            archive.extract(file, code, CODE)
        files: dict[str, Path | bytes] = {f"python/{name}": path for name, path in found.files.items()}
        files |= {f"code/{path.relative_to(code).as_posix()}": path for path in code.rglob("*") if path.is_file()}
        files[layout.JOB] = layout.json_bytes(document)
        archive.write(folder / layout.ARCHIVE, files)
    return found


def _python() -> str:
    return f"{sys.version_info.major}.{sys.version_info.minor}"


def _spark_version() -> str:
    from importlib.metadata import version

    # Releases with the same first two numbers can run it.
    return ".".join(version("pyspark").split(".")[:2])


__all__ = ["DRAWN_FOR", "Job", "Written", "write"]
