"""The shell in its own process, and ZooKeeper's own command line."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pyspark

import storm_on_spark
from lab.suite import ROOT
from storm_on_spark.cluster.zookeeper.server import class_path
from storm_on_spark.spark.session.jvm.java import require_java

_NOISE = ("Connecting to ", "Welcome to ", "JLine ", "WATCHER::", "WatchedEvent ")
"""Begin the lines of ZooKeeper's command line that are no answers."""
_EVENT = re.compile(r"\nWATCHER::\n+WatchedEvent [^\n]*\n")
"""An event, which another thread prints at any time, also amid the line of an answer."""
_JVM = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-XX:-UsePerfData")


class Shell:
    """A shell that executes the lines which it is given; closed with a `with` statement.

    Args:
        admin: the URL of its admin.
    """

    def __init__(self, admin: str) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "storm_on_spark.cli", "xd-shell", "--admin", admin],
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def __enter__(self) -> Shell:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.communicate()

    def __call__(self, line: str) -> list[str]:
        """Returns the lines of the answer; a command that fails ends the shell, and the test."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        # The answer to the second line is the end of that to the first.
        self._process.stdin.write(f"{line}\nversion\n")
        self._process.stdin.flush()
        found: list[str] = []
        while (told := self._process.stdout.readline().rstrip("\n")) != storm_on_spark.__version__:
            found.append(told)
            assert self._process.poll() is None or told, "\n".join(found)
        return found

    def rows(self, line: str) -> list[list[str]]:
        """Returns the cells of a table, without its headings."""
        return [re.split(r" {2,}", row.strip()) for row in self(line)[2:]]


def zookeeper_cli(connect: str, *commands: str) -> list[str]:
    """Returns the lines that ZooKeeper's own command line answers."""
    jars = Path(pyspark.__file__).parent / "jars"
    path = os.pathsep.join([class_path(), *map(str, jars.glob("commons-cli-*.jar"))])
    java = str(require_java().home / "bin" / "java")
    done = subprocess.run(
        [java, *_JVM, "-cp", path, "org.apache.zookeeper.ZooKeeperMain", "-server", connect],
        input="\n".join([*commands, "quit", ""]),
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    lines = _EVENT.sub("", done.stdout).splitlines()
    return [line for line in lines if line.strip() and not line.startswith(_NOISE)]


def listed(line: str) -> Sequence[str]:
    """Returns the names of `ls`."""
    return sorted(name.strip() for name in line.strip("[]").split(",") if name.strip())
