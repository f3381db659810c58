"""How an artifact is started: the line for spark-submit, Spark's packages, and the README with both."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from typing import Any, Final

from storm_on_spark.artifact import layout
from storm_on_spark.spark.session import jars
from storm_on_spark.spark.session.settings.required import STACK_SIZE

STANDALONE: Final = "spark://HOST:7077"
LOCAL: Final = "local[*,4]"
CHECKPOINT: Final = "CHECKPOINT"
_JAVA_OPTIONS: Final = "spark.driver.extraJavaOptions"
_PACKAGES: Final = "spark.jars.packages"
_BEFORE_THE_JVM: Final = (
    "spark.driver.extraClassPath",
    "spark.driver.extraLibraryPath",
    "spark.driver.memory",
    "spark.executor.extraClassPath",
    "spark.jars",
    "spark.jars.excludes",
    "spark.jars.repositories",
)
"""Settings that Spark reads before a program runs, so only spark-submit can give them."""


def jar_list(checkpoint: str | None) -> list[dict[str, Any]]:
    """Returns the jars that a topology needs or wants, beyond Spark's own.

    Args:
        checkpoint: where the topology keeps its state, if that is known.
    """
    found = []
    for jar_set, required in (
        (jars.S3A, (checkpoint or "").startswith("s3a:")),
        (jars.BARE_LOCAL_FS, False),
    ):
        if not required and jar_set is jars.S3A:
            continue
        found += [
            {"coordinates": str(jar), "sha256": jar.sha256, "required": required, "without": jar_set.without}
            for jar in jar_set.jars
        ]
    return found


def command(
    master: str,
    conf: Mapping[str, str],
    found: Sequence[Mapping[str, Any]] = (),
    *,
    checkpoint: str = "",
    cluster: bool = False,
) -> str:
    """Returns the line that starts the artifact, to be typed in its folder.

    Args:
        master: Spark's.
        conf: the topology's settings of Spark.
        found: of `jar_list`.
        checkpoint: where to keep state; empty for that of the configuration.
        cluster: whether the driver runs on the cluster.

    Example:
        >>> command("local[2,4]", {"spark.driver.memory": "4g"})  # doctest: +NORMALIZE_WHITESPACE
        "spark-submit --master 'local[2,4]' --driver-java-options '-Xss8m -Dlog4j2.configurationFile=log4j2.properties'
         --conf spark.driver.memory=4g main.py"
    """
    given = conf.get(_JAVA_OPTIONS, "")
    # On a cluster the driver logs to the cluster, with the cluster's own configuration.
    quiet = "" if cluster or "-Dlog4j" in given else f"-Dlog4j2.configurationFile={layout.LOGGING}"
    options = " ".join(filter(None, (STACK_SIZE, quiet, given)))
    words = ["spark-submit", "--master", master]
    if cluster:
        words += ["--deploy-mode", "cluster", "--archives", f"{layout.ARCHIVE}#{layout.UNPACKED}"]
    words += ["--driver-java-options", options]
    packages = [str(jar["coordinates"]) for jar in found if jar["required"]]
    packages += filter(None, conf.get(_PACKAGES, "").split(","))
    if packages:
        words += ["--packages", ",".join(dict.fromkeys(packages))]
    for key in _BEFORE_THE_JVM:
        if key in conf:
            words += ["--conf", f"{key}={conf[key]}"]
    words.append(layout.MAIN)
    if checkpoint:
        words += ["--checkpoint", checkpoint]
    return shlex.join(words)


def _sections(
    master: str | None, conf: Mapping[str, str], found: Sequence[Mapping[str, Any]], checkpoint: str | None
) -> list[str]:
    """Returns the lines of the README for drivers beside `spark-submit`, with the given master first."""
    places = {"On a standalone cluster:": STANDALONE, "On this machine:": LOCAL}
    if master is not None:
        places = {"On the Spark that it was compiled for:": master, **places}
    lines = []
    for title, url in places.items():
        lines += [title, "", "```sh", line_for(url, conf, found, checkpoint), "```", ""]
    return lines


def line_for(master: str, conf: Mapping[str, str], found: Sequence[Mapping[str, Any]], checkpoint: str | None) -> str:
    """Returns the line that starts the artifact with the driver beside `spark-submit`.

    Args:
        master: Spark's.
        conf: the topology's settings of Spark.
        found: of `jar_list`.
        checkpoint: of the configuration; without it, a cluster's line has a placeholder.
    """
    alone = re.fullmatch(r"local(\[.*\])?", master) is not None
    return command(master, conf, found, checkpoint="" if checkpoint or alone else CHECKPOINT)


def readme(manifest: Mapping[str, Any], conf: Mapping[str, str], found: Sequence[Mapping[str, Any]]) -> bytes:
    """Returns the artifact's README.

    Args:
        manifest: of the artifact.
        conf: the topology's settings of Spark.
        found: of `jar_list`.
    """
    checkpoint = manifest["checkpoint"]
    place = "" if checkpoint else CHECKPOINT
    where = (
        f"Its state is kept in `{checkpoint}`, as its configuration says; `--checkpoint` names another place."
        if checkpoint
        else f"Put for `{CHECKPOINT}` where its state is to be kept: a folder that the driver and all executors reach "
        "by the same path, or a URI such as `hdfs://...` or `s3a://...`. Without `--checkpoint` the state is in a "
        "temporary folder of the driver's machine, which is for one machine only, and goes when the topology ends."
    )
    brought = ", ".join(f"{name} {version}" for name, version in sorted(manifest["packages"].items()))
    needs = ", ".join(manifest["executors_need"])
    secret = ", ".join(f"`{key}`" for key in manifest["left_out_keys"])
    lines = [
        f"# {manifest['name']}",
        "",
        f"A Storm topology, compiled by Storm on Spark {manifest['release']} into a job for `spark-submit`. Type the "
        "lines below in this folder.",
        "",
        *_sections(manifest["master"], conf, found, checkpoint),
        "Where Spark runs the driver on the cluster, as on YARN (this line is not tested):",
        "",
        "```sh",
        command("yarn", conf, found, checkpoint=place, cluster=True),
        "```",
        "",
        where,
        "",
        "Options come after `main.py`: `-c KEY=VALUE` and `--conf FILE.yaml` for its configuration, `--name`, "
        "`--json`, `--quiet`. Ctrl-C lets the topology drain.",
        "",
    ]
    if secret:
        lines += [
            f"Secrets do not travel: {secret} stood in the configuration and are not in this folder. Give them at the "
            "start, in a file: `--conf FILE.yaml`.",
            "",
        ]
    lines += [
        "## What the machines need",
        "",
        f"- Spark {manifest['spark']}, and the Java that it needs.",
        f"- Python {manifest['python']} on the driver's machine and on the executors'; `PYSPARK_PYTHON` names it. "
        f"Platform: {manifest['platform']}, for compiled packages.",
        f"- In that Python: {needs}." if needs else "- No packages in that Python.",
        "",
        f"Storm on Spark itself need not be installed anywhere. `job.zip` brings to the executors: {brought}.",
        "",
        "## Jars",
        "",
    ]
    lines += [
        f"- `{jar['coordinates']}`: {'needed' if jar['required'] else 'not needed'}; without it {jar['without']}."
        for jar in found
    ] or ["None beyond Spark's own."]
    lines += [
        "",
        "## Files",
        "",
        "`sha256sum -c SHA256SUMS` checks them. `plan.html` is the plan as a picture, `plan.mmd` the same for Mermaid, "
        f"and `plan.json` for programs; it is drawn for {manifest['parallelism']} cores. `log4j2.properties` says what "
        "Spark logs: warnings.",
        "",
    ]
    return "\n".join(lines).encode()
