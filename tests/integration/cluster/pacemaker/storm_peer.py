"""Storm's own Pacemaker and clients (`java/StormPeer.java`), as processes."""

from __future__ import annotations

import contextlib
import subprocess
from collections.abc import Iterator
from pathlib import Path

from storm_jars import JVM, SOURCES, class_path

from storm_on_spark.runtime.processes.parent import die_with_parent
from storm_on_spark.runtime.processes.server import free_port
from storm_on_spark.spark.session.jvm.java import require_java


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
        str(require_java().home / "bin" / "java"),
        *JVM,
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
