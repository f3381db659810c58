"""A real HDFS for tests: a name node and two data nodes in one Java process."""

from __future__ import annotations

import os
import signal
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from storm_on_spark.api.errors import SetupError
from storm_on_spark.runtime.processes.server import HOST, Server, java_command
from storm_on_spark.spark.session.jars import Jar, JarSet, fetch
from storm_on_spark.spark.session.jvm.java import find_java

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


class HdfsMissingError(SetupError):
    """HDFS can't be started, because there is no Java or the jars can't be fetched."""


class HdfsServer(Server):
    """HDFS on this host, on a free port.

    Args:
        folder: for its files; made. None for a temporary one.

    Raises:
        HdfsMissingError: at the start, if there is no Java, or the jars can't be fetched.

    Example:
        >>> with HdfsServer() as server:                                        # doctest: +SKIP
        ...     server.uri
        'hdfs://127.0.0.1:40123'
    """

    kind = "hdfs"
    title = "name node of HDFS"
    closed_by = signal.SIGKILL

    def __init__(self, folder: Path | None = None) -> None:
        super().__init__(folder)

    @property
    def uri(self) -> str:
        """Its address."""
        return f"hdfs://{HOST}:{self.port}"

    def _commands(self) -> Mapping[str, Sequence[str]]:
        java, jars = find_java(), fetch(JARS)
        if java is None or jars is None:
            raise HdfsMissingError("there is no Java for HDFS, or its jars can't be fetched here")
        self._details.unlink(missing_ok=True)
        classes = os.pathsep.join([*map(str, jars), *_logging_jars()])
        arguments = [
            *("-format", "-datanodes", "2", "-nnport", str(self.port), "-httpport", "0"),
            *("-D", f"hdfs.minidfs.basedir={self.data_dir}/data", "-writeDetails", str(self._details)),
        ]
        main = "org.apache.hadoop.test.MiniDFSClusterManager"
        return {self.kind: java_command(java.home, classes, main, *arguments)}

    @property
    def _details(self) -> Path:
        return self.data_dir / "details.json"

    def _answers(self) -> bool:
        # Written when all nodes are up.
        return self._details.exists()


def _logging_jars() -> list[str]:
    spec = find_spec("pyspark")
    assert spec is not None
    assert spec.origin is not None
    jars = Path(spec.origin).parent / "jars"
    return [str(path) for pattern in ("slf4j-api-*", "jcl-over-slf4j-*") for path in jars.glob(pattern)]
