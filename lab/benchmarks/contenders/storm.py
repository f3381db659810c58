"""Apache Storm's LocalCluster, with bolts in Java, or in Python over multilang.

Storm comes from Maven and pystorm from PyPI, into build/storm; neither is a dependency of the project.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from lab.benchmarks.cases import Case
from lab.benchmarks.contenders import Figures, NotThereError, Setup, figures
from lab.benchmarks.measures import ProcessTree
from lab.benchmarks.workloads.topics import TOPIC
from storm_on_spark.api.errors import SetupError
from storm_on_spark.spark.session.jvm.java import require_java

_ROOT = Path(__file__).parents[3]
_SOURCES = _ROOT / "lab" / "benchmarks" / "storm"
BUILD = _ROOT / "build" / "storm"
_PYSTORM = "pystorm==3.1.4"
_BUILD_SECS = 900
_OPEN = ("java.lang", "java.lang.invoke", "java.net", "java.nio", "java.util")
"""Packages of the JDK that Storm's serializer accesses by reflection."""
_MEMORY = "-Xmx2g"
"""The same as for the driver of a local session."""


def prepare(*, python: bool) -> None:
    """Builds the missing parts.

    Args:
        python: whether bolts in Python are needed too.

    Raises:
        NotThereError: a tool or the network is missing.
    """
    try:
        java = require_java()
    except SetupError as error:
        raise NotThereError(str(error)) from error
    maven = shutil.which("mvn")
    sources = [_SOURCES / "pom.xml", *sorted(_SOURCES.rglob("*.java"))]
    stamp = BUILD / f"built-{hashlib.sha256(b''.join(map(Path.read_bytes, sources))).hexdigest()[:16]}"
    if not stamp.exists():
        if maven is None:
            raise NotThereError("Apache Storm is fetched and built by Maven, and there is no mvn here.")
        environment = {**os.environ, "JAVA_HOME": str(java.home)}
        _build("Apache Storm", [maven, "-B", "-q", "compile"], environment)
        stamp.touch()
    stamp = BUILD / "pystorm" / _PYSTORM
    if python and not stamp.exists():
        install = [sys.executable, "-m", "pip", "install", "-q", "--disable-pip-version-check"]
        _build("pystorm", [*install, "--upgrade", "--target", str(stamp.parent), _PYSTORM], dict(os.environ))
        stamp.touch()


def _build(what: str, command: list[str], environment: dict[str, str]) -> None:
    try:
        done = subprocess.run(
            command, cwd=_SOURCES, env=environment, capture_output=True, text=True, timeout=_BUILD_SECS, check=False
        )
    except subprocess.TimeoutExpired:
        raise NotThereError(f"{what} could not be fetched and built within {_BUILD_SECS} s.") from None
    if done.returncode != 0:
        said = (done.stdout + done.stderr).strip().splitlines() or ["nothing"]
        raise NotThereError(f"{what} could not be fetched and built: {said[0][:300]}")


def run(case: Case, setup: Setup) -> Figures:
    """Runs a topology on a LocalCluster, in its own JVM, and measures it."""
    arguments = {
        "workload": case.workload,
        "input": setup.source,
        "rates": ",".join(str(int(phase.rate or 0)) for phase in case.phases),
        "warm-up": setup.jvm_warm_up,
        "settle": setup.settle,
        "seconds": setup.seconds,
        "python": sys.executable,
        "script": _SOURCES / "bolts.py",
        "modules": BUILD / "pystorm",
        "servers": setup.servers,
        "topic": TOPIC,
        **case.options,
    }
    command = java_command(setup.folder, "benchmarks.Main", *(f"{name}={value}" for name, value in arguments.items()))
    result: Figures = {"phases": {}}
    with _running(command) as process:
        tree = ProcessTree(process.pid)
        names = iter(case.phases)
        for event in _events(process):
            if event["event"] == "first ack":
                result["first_ack_secs"] = time.monotonic() - setup.started
            elif event["event"] == "begin":
                cpu = tree.cpu_seconds()
            else:
                used = tree.cpu_seconds() - cpu
                # Topologies that read Kafka report nothing about it.
                by_percent = {p: round(event[p], 2) for p in ("p50", "p95", "p99")}
                latency = None if case.workload == "kafka" else by_percent
                measured = figures(event["roots"], event["seconds"], used, latency)
                result["phases"][next(names).name] = measured
                tree.wait(0.01)
                result["memory_mb"] = tree.peak_memory_mb()
    missing = [phase.name for phase in names]
    if missing:
        raise RuntimeError(f"Storm ended with status {process.returncode} before it had measured {missing}")
    return result


def java_command(folder: Path, main: str, *arguments: str) -> list[str]:
    """Returns the command that runs one of our classes with Storm in a JVM; its temporary files go to `folder`."""
    return [
        str(require_java().home / "bin" / "java"),
        _MEMORY,
        *(f"--add-opens=java.base/{package}=ALL-UNNAMED" for package in _OPEN),
        f"-Djava.io.tmpdir={folder}",
        f"-Dlog4j2.configurationFile={_SOURCES / 'log4j2.xml'}",
        "-cp",
        f"{BUILD / 'classes'}{os.pathsep}{BUILD / 'lib'}/*",
        main,
        *arguments,
    ]


@contextlib.contextmanager
def _running(command: list[str]) -> Iterator[subprocess.Popen[str]]:
    """Starts a process; at the end nothing of it and its children is left."""
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
    tree = ProcessTree(process.pid)
    try:
        yield process
    finally:
        tree.kill()
        process.wait()


def _events(process: subprocess.Popen[str]) -> Iterator[Any]:
    assert process.stdout is not None
    for line in process.stdout:
        if line.startswith("{"):
            yield json.loads(line)
    process.wait()
