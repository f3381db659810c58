"""Apache Storm's own Pacemaker, clients and commands, fetched by Maven; `StormPeer.java` is compiled."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
SOURCES = Path(__file__).parent / "pacemaker" / "java"
FETCH_SECS = 240
JVM = ("-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-XX:-UsePerfData")
"""Options of small JVMs that start soon."""


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
    """Returns the class path of Storm and the peer; fetches and compiles what is not there yet."""
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
        pytest.fail(f"{Path(command[0]).name} could not fetch or compile Storm: {done.stdout}{done.stderr}")
