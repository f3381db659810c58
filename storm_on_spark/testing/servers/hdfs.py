"""A real HDFS for tests: a name node and two data nodes in one Java process."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from storm_on_spark.api.errors import SetupError
from storm_on_spark.cluster.service import Service
from storm_on_spark.runtime.processes.parent import die_with_parent
from storm_on_spark.spark.session.jars import Jar, JarSet, fetch
from storm_on_spark.spark.session.java import find_java

JARS: Final = JarSet(
    name="HDFS test cluster",
    jars=tuple(
        Jar("org.apache.hadoop", f"hadoop-client-{part}", "3.4.2", sha256)
        for part, sha256 in {
            "api": "607c0299f4df33013bd0a0f37c8cf255c635bbaddd247b8fec68c210cc17d19f",
            "minicluster": "ae2406c544825b7734b8aad4f87eff60d9ec422284f0b16c2856032083b63c77",
            "runtime": "18d071c7f72f8a946677b398a57af9c7afa2dd41a81023c310f99373fec200b3",
        }.items()
    ),
    without="what needs a real HDFS is skipped",
)
_READY_SECS: Final = 90.0
_POLL_SECS: Final = 0.05


class HdfsMissingError(SetupError):
    """There is no Java, or the jars can't be fetched: HDFS can't be started."""


class HdfsServer(Service):
    """HDFS on this host, on a free port.

    Args:
        folder: for its files; made.

    Example:
        >>> with HdfsServer(folder) as server:                                  # doctest: +SKIP
        ...     server.uri
        'hdfs://127.0.0.1:40123'
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._process: subprocess.Popen[bytes] | None = None
        self.uri = ""
        """Where it is, once it has been started."""

    def start(self) -> None:
        """Returns when it is up.

        Raises:
            HdfsMissingError: there is no Java, or the jars can't be fetched.
            SetupError: it does not start.
        """
        java, jars = find_java(), fetch(JARS)
        if java is None or jars is None:
            raise HdfsMissingError("there is no Java for HDFS, or its jars can't be fetched here")
        self._folder.mkdir(parents=True, exist_ok=True)
        details, log = self._folder / "details.json", self._folder / "log"
        command = [
            *(str(java.home / "bin" / "java"), "-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"),
            *("-cp", os.pathsep.join([*map(str, jars), *_logging_jars()])),
            *("org.apache.hadoop.test.MiniDFSClusterManager", "-format", "-datanodes", "2"),
            *("-nnport", "0", "-httpport", "0", "-D", f"hdfs.minidfs.basedir={self._folder}/data"),
            *("-writeDetails", str(details)),
        ]
        with log.open("wb") as output:
            self._process = subprocess.Popen(
                die_with_parent(command), stdin=subprocess.DEVNULL, stdout=output, stderr=output, cwd=self._folder
            )
        try:
            self.uri = f"hdfs://127.0.0.1:{self._port(details, log)}"
        except BaseException:
            self.close()
            raise

    def pause(self) -> None:
        """Has it hang."""
        self._signal(signal.SIGSTOP)

    def resume(self) -> None:
        """Has it go on."""
        self._signal(signal.SIGCONT)

    def close(self) -> None:
        """Ends it."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def _signal(self, number: int) -> None:
        assert self._process is not None, "start() comes first"
        self._process.send_signal(number)

    def _port(self, details: Path, log: Path) -> int:
        assert self._process is not None
        deadline = time.monotonic() + _READY_SECS
        while self._process.poll() is None and time.monotonic() < deadline:
            try:
                return int(json.loads(details.read_text("utf-8"))["namenode_port"])
            except (FileNotFoundError, ValueError):
                time.sleep(_POLL_SECS)
        raise SetupError(f"HDFS does not start; {log} ends with: {log.read_text('utf-8', 'replace')[-500:]}")


def _logging_jars() -> list[str]:
    spec = find_spec("pyspark")
    assert spec is not None
    assert spec.origin is not None
    jars = Path(spec.origin).parent / "jars"
    return [str(path) for pattern in ("slf4j-api-*", "jcl-over-slf4j-*") for path in jars.glob(pattern)]
