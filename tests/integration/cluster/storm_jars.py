"""Apache Storm's own Pacemaker, clients and commands, fetched by Maven; `StormPeer.java` is compiled."""

from __future__ import annotations

import hashlib
import os
import tempfile
from pathlib import Path

from fetching import need, run

ROOT = Path(__file__).parents[3]
SOURCES = Path(__file__).parent / "pacemaker" / "java"
JVM = ("-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-XX:-UsePerfData")
"""Options of small JVMs that start soon."""


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
            try:
                new.rename(folder)
            except OSError:
                if not folder.is_dir():  # or another process of the tests was first
                    raise
    return os.pathsep.join([str(folder / "classes"), f"{folder / 'lib'}/*"])
