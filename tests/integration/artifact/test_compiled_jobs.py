"""Artifacts on a real standalone cluster, on this machine and on Nimbuses, started as their README says.

The Python of driver and executors has PySpark and what that needs, and nothing of Storm on Spark.
"""

from __future__ import annotations

import importlib.metadata
import json
import os
import re
import shlex
import signal
import subprocess
import sys
import zipfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
from dev_processes import Dev, wait_until

from storm_on_spark.spark.session.jvm.home import linked_home

HERE = Path(__file__).parent
PROJECT = HERE / "project"
_PYSPARK = ("pyspark", "py4j", "pyarrow", "pandas", "numpy", "protobuf", "grpcio", "googleapis-common-protos")

# For a job of seconds the optimizing compiler costs more than it gains.
JAVA = {"JAVA_TOOL_OPTIONS": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"}

pytestmark = pytest.mark.integration


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A Python in which neither Storm on Spark nor what it alone needs can be imported."""
    environment = tmp_path_factory.mktemp("python") / "environment"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(environment)], check=True)
    (packages,) = environment.glob("lib/python*/site-packages")
    waiting, seen = list(_PYSPARK), set()
    while waiting:
        name = waiting.pop()
        if name in seen:
            continue
        seen.add(name)
        try:
            distribution = importlib.metadata.distribution(name)
        except importlib.metadata.PackageNotFoundError:
            continue
        waiting += [re.split(r"[^\w.-]", line)[0] for line in distribution.requires or () if "extra" not in line]
        for top in {file.parts[0] for file in distribution.files or ()} - {"..", "__pycache__"}:
            if not (packages / top).exists():
                (packages / top).symlink_to(distribution.locate_file(top))
    found = environment / "bin" / "python"
    code = "from importlib.util import find_spec as f; print([n for n in ('storm_on_spark', 'yaml', 'rich') if f(n)])"
    assert subprocess.check_output([found, "-c", code], cwd=environment, env=clean(), text=True).strip() == "[]"
    return found


@pytest.fixture(scope="module")
def artifact(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The artifact of `counting_words.py`, compiled in its own process from a folder that is then gone."""
    folder = tmp_path_factory.mktemp("compiled")
    project, wheels = folder / "project", folder / "wheels"
    project.mkdir()
    wheels.mkdir()
    for file in PROJECT.glob("*.*"):
        (project / file.name).write_bytes(file.read_bytes())
    (project / "requirements.txt").write_text("package_of_words==1.0\n")
    info = "package_of_words-1.0.dist-info"
    with zipfile.ZipFile(wheels / "package_of_words-1.0-py3-none-any.whl", "w") as wheel:
        wheel.writestr("package_of_words.py", 'WORD = "wörd"\n')
        wheel.writestr(f"{info}/METADATA", "Metadata-Version: 2.1\nName: package_of_words\nVersion: 1.0\n")
        wheel.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nGenerator: x\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        wheel.writestr(f"{info}/RECORD", "")
    out = folder / "an artifact"
    # To compile a topology is to import it.
    path = os.pathsep.join([str(HERE.parents[2]), str(wheels / "package_of_words-1.0-py3-none-any.whl")])
    done = subprocess.run(
        [
            *(sys.executable, "-m", "storm_on_spark.cli", "compile", "counting_words.py", "-o", str(out), "--json"),
            *("-r", "requirements.txt"),
        ],
        cwd=project,
        env={**clean(), "PYTHONPATH": path, "PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(wheels)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    assert document["packages"]["package-of-words"] == "1.0"
    assert "words.api.token" in document["warnings"][0]
    subprocess.run(["rm", "-r", str(project)], check=True)
    wheels.rename(folder / "kept-wheels")
    return out


def clean() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "PYSPARK", "SPARK"))}


JAVA_OPTIONS = "--driver-java-options '-Xss8m -Dlog4j2.configurationFile=log4j2.properties'"


def lines(artifact: Path) -> list[str]:
    return re.findall(r"^```sh\n(.*)\n```$", (artifact / "README.md").read_text(), re.MULTILINE)


def submit(line: str, artifact: Path, python: Path, tmp_path: Path, *more: str) -> dict[str, Any]:
    """Starts the artifact in its folder by a line of its README, and returns what the topology reports."""
    # Spark as pip installs it, but for the archive of modules that each Python process would compile again.
    home = linked_home(tmp_path)
    (tmp_path / "tmp").mkdir()
    done = subprocess.run(
        [*shlex.split(line), *more, "--json"],
        cwd=artifact,
        env={
            **clean(),
            **JAVA,
            "PATH": f"{home / 'bin'}{os.pathsep}{os.environ['PATH']}",
            "SPARK_HOME": str(home),
            "SPARK_LOCAL_IP": "127.0.0.1",
            "PYSPARK_PYTHON": str(python),
            "TMPDIR": str(tmp_path / "tmp"),
        },
        capture_output=True,
        text=True,
        timeout=250,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-5000:]
    assert " INFO " not in done.stderr, "Spark logs more than warnings"
    found: dict[str, Any] = json.loads(done.stdout)
    assert (found["emitted"], found["acked"], found["failed"], found["pending"]) == (300, 300, 0, 0)
    counts: Counter[str] = Counter()
    for part in found["result"]:
        assert not counts.keys() & part["counts"].keys(), "a word was counted by two tasks"
        counts.update(part["counts"])
    assert counts == Counter(word for number in range(300) for word in ("wörd", str(number % 7)))
    assert not list((tmp_path / "tmp").glob("storm-on-spark-*")), "the unpacked archive is left"
    return found


@pytest.fixture(scope="module")
def dev(tmp_path_factory: pytest.TempPathFactory, artifact: Path) -> Iterator[Dev]:
    """A development cluster with Spark's standalone mode; a Ctrl-C ends it, and nothing may be left."""
    found = Dev(tmp_path_factory.mktemp("dev"), "--spark-workers", "1", "-c", "spark.driver.memory=512m")
    found.environment |= {**JAVA, "PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(artifact.parent / "kept-wheels")}
    try:
        found.start()
        yield found
        code, said = found.end(signal.SIGINT)
        assert (code, said.splitlines()[-1]) == (0, "It has ended; no processes or files are left.")
    finally:
        found.kill()


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_an_artifact_runs_where_storm_on_spark_is_not_installed(
    artifact: Path, python: Path, dev: Dev, tmp_path: Path
) -> None:
    line = lines(artifact)[0]
    assert line == f"spark-submit --master spark://HOST:7077 {JAVA_OPTIONS} main.py --checkpoint CHECKPOINT"
    line = line.replace(
        "spark://HOST:7077", f"{dev.said['spark_master']} --properties-file {dev.said['spark_conf_file']}"
    )
    line = line.replace("CHECKPOINT", str(tmp_path / "checkpoint"))
    secret = tmp_path / "secret.yaml"
    secret.write_text("words.api.token: given at the start\n")
    found = submit(line, artifact, python, tmp_path, "--conf", str(secret), "-c", "topology.partitions=2")
    files = {file for part in found["result"] for file in part["files"]}
    assert files, "no bolt said where its code is"
    # Each executor has a folder below its worker's, in which Spark has unpacked the archive.
    work = Path(dev.said["folder"]) / "spark" / "127.0.0."
    assert {file.startswith(str(work)) and "/storm_job/" in file for file in files} == {True}, files
    assert {file.rpartition("/storm_job/")[2] for file in files} == {
        "python/storm_on_spark/__init__.py",
        "code/counting_words_split.py",
        "python/package_of_words.py",
    }
    assert {part["token"] for part in found["result"]} == {"given at the start"}


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_nimbuses_take_the_same_artifact_and_run_it_on_the_workers_of_spark(artifact: Path, dev: Dev) -> None:
    """After the other test: a worker that is killed is started again, and the topology has its executors."""
    name = "spark-worker-127.0.0.2"
    worker = psutil.Process(dev.said["processes"][name])
    worker.kill()
    worker.wait(30)
    done = dev.run("submit", artifact, "--wait", "--json", "--name", "words", timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    wait_until(lambda: dev.document("status", "words")["driverStatus"] == "COMPLETED", lambda: "not complete")
    page = dev.document("status", "words")
    spout = page["spouts"][0]
    assert (spout["emitted"], spout["acked"], spout["failed"]) == (300, 300, 0)
    workers = {
        line.split("--host\0")[1].split("\0")[0]
        for process in dev.processes()
        if "deploy.worker.Worker" in (line := "\0".join(process.cmdline()))
    }
    assert workers == {"127.0.0.2"}
    # Executors have written there.
    logs = list((Path(dev.said["folder"]) / "spark").glob("127.0.0.*/app-*/*/stderr"))
    assert {log.parents[2].name for log in logs} == workers
    assert dev.run("submit", artifact, "-c", "topology.workers=2").returncode == 2


# The same artifact by the same command on a cluster is above; `test_compile.py` has its command lines.
@pytest.mark.soak
@pytest.mark.timeout(600)
def test_an_artifact_runs_on_this_machine(artifact: Path, python: Path, tmp_path: Path) -> None:
    line = lines(artifact)[1]
    assert line == f"spark-submit --master 'local[*,4]' {JAVA_OPTIONS} main.py"
    with zipfile.ZipFile(tmp_path / "more.zip", "w") as more:
        more.writestr("more.txt", "more")
    # Beside an archive and a path of the user's.
    given = f"--archives {tmp_path / 'more.zip'}#more --conf spark.executorEnv.PYTHONPATH=mine"
    found = submit(line.replace(" main.py", f" {given} main.py"), artifact, python, tmp_path)
    settings = found["result"][0]["settings"]
    assert settings["spark.archives"].endswith("/more.zip#more")
    assert "job.zip#storm_job," in settings["spark.archives"]
    assert settings["spark.executorEnv.PYTHONPATH"].endswith(":mine")
    files = {file for part in found["result"] for file in part["files"]}
    # What the driver has unpacked, not a second copy.
    assert {str(Path(file).parents[2]).startswith(str(tmp_path / "tmp")) for file in files} == {True}, files
    assert {part["token"] for part in found["result"]} == {None}, "a secret has travelled"
