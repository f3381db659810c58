"""Storm's own Pacemaker and clients (`java/StormPeer.java`), fetched by Maven, compiled and run."""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from storm_on_spark.cluster.zookeeper.java import die_with_parent, find_java
from storm_on_spark.cluster.zookeeper.server import free_port

ROOT = Path(__file__).parents[4]
SOURCES = Path(__file__).parent / "java"
FETCH_SECS = 240
START_SECS = 90


def need(program: str, package: str) -> str:
    """Returns a program; has Debian install it where that is allowed, and else fails the test with a sentence."""
    found = shutil.which(program)
    if found is None and os.geteuid() == 0 and shutil.which("apt-get"):
        environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
        for command in (["update", "-qq"], ["install", "-y", "-qq", package]):
            subprocess.run(["apt-get", *command], env=environment, capture_output=True, timeout=FETCH_SECS, check=False)
        found = shutil.which(program)
    if found is None:
        pytest.fail(f"there is no {program} here, which this test needs: install Debian's {package}")
    return found


def class_path() -> str:
    """Returns the class path of the peer; fetches and compiles what is not there yet."""
    sources = sorted(SOURCES.iterdir())
    name = hashlib.sha256(b"".join(map(Path.read_bytes, sources))).hexdigest()[:16]
    folder = ROOT / "build" / f"storm-peer-{name}"
    if not folder.is_dir():
        maven, javac = need("mvn", "maven"), need("javac", "openjdk-17-jdk-headless")
        folder.parent.mkdir(exist_ok=True)
        # Renamed when it is whole.
        with tempfile.TemporaryDirectory(dir=folder.parent) as scratch:
            new = Path(scratch) / "new"
            copy = "org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy-dependencies"
            run([maven, "-B", "-q", "-f", str(SOURCES / "pom.xml"), copy, f"-DoutputDirectory={new / 'lib'}"])
            run([javac, "-cp", f"{new / 'lib'}/*", "-d", str(new / "classes"), str(SOURCES / "StormPeer.java")])
            new.rename(folder)
    return os.pathsep.join([str(folder / "classes"), f"{folder / 'lib'}/*"])


def run(command: list[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True, timeout=FETCH_SECS, check=False)
    if done.returncode:
        pytest.fail(f"{Path(command[0]).name} could not fetch or compile Storm's Pacemaker: {done.stdout}{done.stderr}")


class StormPeer:
    """A JVM with Storm's code; `ask` sends it a line and returns its answer."""

    def __init__(self, process: subprocess.Popen[str], log: Path) -> None:
        self._process = process
        self._log = log

    def ask(self, *words: object) -> str:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(" ".join(map(str, words)) + "\n")
        self._process.stdin.flush()
        answer = self._process.stdout.readline()
        assert answer, f"the JVM has ended: {self.log()}"
        return answer.rstrip("\n")

    def ready(self) -> None:
        assert self._process.stdout is not None
        said = self._process.stdout.readline()
        assert said == "ready\n", f"the JVM said {said!r}: {self.log()}"

    def log(self) -> str:
        return self._log.read_text("utf-8", "replace")[-4000:]


@contextlib.contextmanager
def storm_peer(kind: str, folder: Path, *options: str, **conf: object) -> Iterator[StormPeer]:
    """Runs Storm's `client` or `server` with a configuration; dots of its keys are written as underscores."""
    folder.mkdir(parents=True, exist_ok=True)
    command = [
        find_java(),
        "-Xmx256m",
        "-XX:+UseSerialGC",
        "-XX:TieredStopAtLevel=1",
        "-XX:-UsePerfData",
        f"-Dlog4j2.configurationFile={SOURCES / 'log4j2.xml'}",
        f"-Djava.io.tmpdir={folder}",
        *options,
        "-cp",
        class_path(),
        "StormPeer",
        kind,
        *(f"{key.replace('_', '.')}={value}" for key, value in conf.items()),
    ]
    log = folder / f"{kind}.log"
    with log.open("w") as err:
        process = subprocess.Popen(
            die_with_parent(command),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=err,
            text=True,
            cwd=folder,
        )
    with process:
        try:
            peer = StormPeer(process, log)
            peer.ready()
            yield peer
        finally:
            process.kill()


@contextlib.contextmanager
def storm_server(folder: Path, *options: str, **conf: object) -> Iterator[int]:
    """Runs Storm's own Pacemaker; yields its port."""
    port = free_port()
    with storm_peer("server", folder, *options, pacemaker_port=port, **conf):
        yield port
