"""Hadoop's `FileSystem` in its own Java process, through a py4j gateway: no Spark session is needed.

Its class path is that of the pyspark package, behind the folders `HADOOP_CONF_DIR` and `YARN_CONF_DIR` name.
"""

from __future__ import annotations

import contextlib
import os
import selectors
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import IO, Any

from py4j.java_gateway import GatewayParameters, JavaGateway
from py4j.protocol import Py4JError, Py4JJavaError

from storm_on_spark.api.text.lines import lines_of
from storm_on_spark.cluster.errors import CodeError
from storm_on_spark.spark.session.jvm.java import find_java, missing_sentence

_START_SECS = 30.0
_STOP_SECS = 5.0
OPTIONS = ("-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Djava.awt.headless=true")
_DEFAULTS = {
    # Code is for its owner only, unless `spark.hadoop.fs.permissions.umask-mode` says otherwise.
    "fs.permissions.umask-mode": "077",
    # A name node that hangs must not hang the Nimbus: by default Hadoop tries for a quarter of an hour.
    "ipc.client.connect.timeout": "5000",
    "ipc.client.connect.max.retries": "2",
    "ipc.client.connect.max.retries.on.timeouts": "1",
    "ipc.client.rpc-timeout.ms": "30000",
}
_PREFIX = "spark.hadoop."


class HadoopGateway:
    """A Java process that talks to file systems; started when it is first needed, and again if it died.

    Args:
        settings: Hadoop's configuration, over its files.
    """

    def __init__(self, settings: Mapping[str, str]) -> None:
        self._settings = dict(settings)
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._gateway: Any = None
        self._configuration: Any = None
        self._errors: IO[bytes] | None = None

    def file_system(self, uri: str) -> Any:
        """Returns Hadoop's `FileSystem` for a URI.

        Raises:
            CodeError: Java can't be started, or there is no such file system.
        """
        with self._lock:
            if self._process is None or self._process.poll() is not None:
                self._stop()
                self._start()
        jvm = self._jvm()
        with translated(uri):
            return jvm.org.apache.hadoop.fs.FileSystem.get(jvm.java.net.URI(uri), self._configuration)

    def path(self, uri: str) -> Any:
        """Returns Hadoop's `Path` for a URI."""
        return self._jvm().org.apache.hadoop.fs.Path(uri)

    def local_path(self, path: Path) -> Any:
        """Returns Hadoop's `Path` for a file of this machine, whatever characters are in its name."""
        jvm = self._jvm()
        return jvm.org.apache.hadoop.fs.Path(jvm.java.io.File(str(path.absolute())).toURI())

    def _jvm(self) -> Any:
        gateway = self._gateway
        if gateway is None:
            raise CodeError("the Java process for Hadoop's file systems was ended")
        return gateway.jvm

    def close(self) -> None:
        """Ends the Java process."""
        with self._lock:
            self._stop()

    def _start(self) -> None:
        java = find_java()
        if java is None:
            raise CodeError(missing_sentence())
        folders = [os.environ[name] for name in ("HADOOP_CONF_DIR", "YARN_CONF_DIR") if os.environ.get(name)]
        class_path = os.pathsep.join([*folders, f"{_jars()}/*"])
        command = [str(java.home / "bin" / "java"), *OPTIONS, "-cp", class_path]
        # Without a port it takes a free one, on loopback; the secret comes through the pipe. The process ends when its
        # input does: with this one, however it ends.
        command += ["py4j.GatewayServer", "--die-on-broken-pipe", "--enable-auth", "0"]
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 # lives as long as the process
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            # Ctrl-C is for the process that started it, which ends this one in order.
            start_new_session=True,
        )
        lines = self._lines(2)
        # Further output is discarded: Java would stop at a full pipe.
        assert self._process.stdout is not None
        self._process.stdout.close()
        self._gateway = JavaGateway(gateway_parameters=GatewayParameters(port=int(lines[0]), auth_token=lines[1]))
        with translated("Hadoop"):
            self._configuration = self._gateway.jvm.org.apache.hadoop.conf.Configuration()
            for key, value in {**_DEFAULTS, **self._settings}.items():
                self._configuration.set(key, value)

    def _lines(self, count: int) -> list[str]:
        assert self._process is not None
        assert self._process.stdout is not None
        deadline, received = time.monotonic() + _START_SECS, b""
        with selectors.DefaultSelector() as selector:
            selector.register(self._process.stdout, selectors.EVENT_READ)
            while received.count(b"\n") < count:
                ready = selector.select(max(0.0, deadline - time.monotonic()))
                block = os.read(self._process.stdout.fileno(), 4096) if ready else b""
                if not block:
                    said = self._last_words()
                    self._stop()
                    raise CodeError(f"Java for Hadoop's file systems doesn't start: {said or 'it printed nothing'}")
                received += block
        return lines_of(received.decode())

    def _last_words(self) -> str:
        assert self._errors is not None
        end = self._errors.seek(0, os.SEEK_END)
        self._errors.seek(max(0, end - 2000))
        return self._errors.read().decode(errors="replace").strip()

    def _stop(self) -> None:
        process, gateway = self._process, self._gateway
        self._process = self._gateway = self._configuration = None
        if gateway is not None:
            # Otherwise py4j keeps sending requests to free objects to a JVM that has ended.
            gateway._gateway_client.is_connected = False  # noqa: SLF001
            with contextlib.suppress(Exception):
                gateway.close()
        if process is not None:
            assert process.stdin is not None
            assert process.stdout is not None
            with contextlib.suppress(OSError):
                process.stdin.close()
            try:
                process.wait(_STOP_SECS)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            process.stdout.close()
        if self._errors is not None:
            self._errors.close()
            self._errors = None


def settings_of(conf: Mapping[str, Any]) -> dict[str, str]:
    """Returns Hadoop's configuration in a topology's or a cluster's: the keys that start with `spark.hadoop.`.

    Example:
        >>> settings_of({"spark.hadoop.dfs.replication": 2, "spark.master": "local"})
        {'dfs.replication': '2'}
    """
    return {key[len(_PREFIX) :]: str(value) for key, value in conf.items() if key.startswith(_PREFIX)}


@contextlib.contextmanager
def translated(what: str) -> Iterator[None]:
    """Turns errors of Java into `CodeError`, with the first line of what they say."""
    try:
        yield
    except Py4JJavaError as error:
        said = str(error.java_exception.toString()).partition("\n")[0]
        raise CodeError(f"{what}: {said[:500]}") from error
    except (Py4JError, OSError) as error:
        raise CodeError(f"{what}: the Java process for Hadoop's file systems is gone: {error}") from error


def _jars() -> Path:
    spec = find_spec("pyspark")
    assert spec is not None
    assert spec.origin is not None
    return Path(spec.origin).parent / "jars"
