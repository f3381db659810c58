"""A real Kafka broker on this machine, for development and tests.

One node is broker and controller at once (KRaft). It listens on the loopback interface only, keeps its data in a folder
of its own, and ends with the process that started it, however that ends.
"""

from __future__ import annotations

import signal
import socket
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Final

from storm_on_spark.api.errors import SetupError
from storm_on_spark.connectors.kafka.jars import class_path
from storm_on_spark.runtime.processes.at_once import make_temporary, remove_temporary
from storm_on_spark.runtime.processes.kept import KeptProcess
from storm_on_spark.spark.session.java import find_java

HOST: Final = "127.0.0.1"
_STARTED: Final = "Kafka Server started"
_START_ATTEMPTS: Final = 3
"""A port that was free may be taken before the broker binds it."""

_META: Final = """\
version=1
cluster.id=c3Rvcm0tb24tc3BhcmstMQ
node.id=1
"""
"""What formatting the storage writes; Kafka's tool for it would start a JVM of its own."""

_PROPERTIES: Final = """\
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@{host}:{controller_port}
listeners={listeners},CONTROLLER://{host}:{controller_port}
advertised.listeners={listeners}
controller.listener.names=CONTROLLER
listener.security.protocol.map={protocols},CONTROLLER:PLAINTEXT
log.dirs={logs}
auto.create.topics.enable=false
offsets.topic.replication.factor=1
offsets.topic.num.partitions=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
transaction.state.log.num.partitions=1
group.initial.rebalance.delay.ms=0
log.cleaner.dedupe.buffer.size=2097152
"""

_LOG4J: Final = """\
rootLogger.level = info
rootLogger.appenderRef.file.ref = file
appender.file.type = RollingFile
appender.file.name = file
appender.file.fileName = {log}
appender.file.filePattern = {log}.%i
appender.file.layout.type = PatternLayout
appender.file.layout.pattern = %d %p %c{{1}} %m%n
appender.file.policies.type = SizeBasedTriggeringPolicy
appender.file.policies.size = 10MB
appender.file.strategy.type = DefaultRolloverStrategy
appender.file.strategy.max = 3
"""


class KafkaServer:
    """One Kafka broker, in a process of its own.

    Args:
        data_dir: where its data is kept; None for a temporary folder that `close` removes.
        port: for clients; 0 for a free one. It stays the same over stops and starts.
        properties: more lines of its configuration file, which win over those written here.
        listeners: more doors, on free ports: their names, and the security protocol of each, such as SASL_SSL.

    Example:
        >>> with KafkaServer() as server:                           # doctest: +SKIP
        ...     server.bootstrap_servers
        '127.0.0.1:40123'
    """

    def __init__(
        self,
        data_dir: Path | None = None,
        port: int = 0,
        *,
        properties: tuple[str, ...] = (),
        listeners: Mapping[str, str] | None = None,
    ) -> None:
        self._port_is_ours = port == 0
        self._protocols = {"PLAINTEXT": "PLAINTEXT", **(listeners or {})}
        self._doors = {name: _free_port() for name in listeners or {}}
        self.port = port or _free_port()
        self._controller_port = _free_port()
        self._temporary = data_dir is None
        self.data_dir = make_temporary("storm-spark-kafka-") if data_dir is None else data_dir
        self._properties = properties
        self._process: KeptProcess | None = None

    @property
    def bootstrap_servers(self) -> str:
        """`host:port`, for clients."""
        return f"{HOST}:{self.port}"

    def servers_of(self, listener: str) -> str:
        """Returns `host:port` of another door."""
        return f"{HOST}:{self._doors[listener]}"

    @property
    def pid(self) -> int | None:
        """Of its process; None when it doesn't run."""
        return None if self._process is None else self._process.pid

    @property
    def log_file(self) -> Path:
        """What it says."""
        return self.data_dir / "kafka.log"

    def __enter__(self) -> KafkaServer:
        try:
            self.start()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def start(self, timeout: float = 60) -> None:
        """Starts it, with the data that it has, and returns when it serves: after a few seconds.

        Args:
            timeout: seconds that it may take.

        Raises:
            SetupError: there is no Java, its jars can't be fetched, or it doesn't start.
        """
        for attempt in range(_START_ATTEMPTS):
            self._spawn()
            try:
                self._wait_ready(timeout)
                return
            except SetupError as error:
                last = attempt == _START_ATTEMPTS - 1
                if last or not self._port_is_ours or "already in use" not in str(error):
                    raise
                self.port, self._controller_port = _free_port(), _free_port()
                self._doors = {name: _free_port() for name in self._doors}

    def stop(self) -> None:
        """Ends it in order; it can be started again."""
        self._end(signal.SIGTERM)

    def kill(self) -> None:
        """Ends it by SIGKILL, as a crash would; it can be started again."""
        self._end(signal.SIGKILL)

    def close(self) -> None:
        """Ends it for good, and removes its data if they were temporary."""
        # In order only where there are data to keep: that takes a second.
        self._end(signal.SIGKILL if self._temporary else signal.SIGTERM)
        if self._temporary:
            remove_temporary(self.data_dir)

    def _spawn(self) -> None:
        if self.pid is not None:
            raise SetupError(f"the Kafka broker on port {self.port} runs already")
        java = find_java()
        if java is None:
            raise SetupError("a Kafka broker needs Java 17 or 21, and there is none here")
        classes = class_path()
        logs, temporary = self.data_dir / "logs", self.data_dir / "tmp"
        for folder in (logs, temporary):
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        meta = logs / "meta.properties"
        if not meta.exists():
            meta.write_text(_META, "utf-8")
        self.log_file.unlink(missing_ok=True)
        config, log4j = self.data_dir / "server.properties", self.data_dir / "log4j2.properties"
        doors = {"PLAINTEXT": self.port, **self._doors}
        text = _PROPERTIES.format(
            host=HOST,
            listeners=",".join(f"{name}://{HOST}:{port}" for name, port in doors.items()),
            protocols=",".join(f"{name}:{protocol}" for name, protocol in self._protocols.items()),
            controller_port=self._controller_port,
            logs=logs,
        )
        config.write_text("\n".join([text, *self._properties, ""]), "utf-8")
        log4j.write_text(_LOG4J.format(log=self.log_file), "utf-8")
        command = [
            *(str(java.home / "bin" / "java"), "-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"),
            *("-XX:-UsePerfData", "-Djava.awt.headless=true", f"-Djava.io.tmpdir={temporary}"),
            *(f"-Dlog4j2.configurationFile={log4j}", "-cp", classes, "kafka.Kafka", str(config)),
        ]
        try:
            self._process = KeptProcess(
                f"kafka-server-{self.port}", command, self.data_dir, self.data_dir / "kafka.out"
            )
        except OSError as error:
            raise SetupError(f"the Kafka broker on port {self.port} can't be started: {error}") from error

    def _wait_ready(self, timeout: float) -> None:
        assert self._process is not None
        if self._process.serves(lambda: _STARTED in _text(self.log_file), timeout):
            return
        what = "ended" if self.pid is None else f"doesn't serve after {timeout:g} s"
        last = self._last_words()
        self.kill()
        raise SetupError(f"the Kafka broker on port {self.port} {what}: {last}")

    def _end(self, number: signal.Signals) -> None:
        process, self._process = self._process, None
        if process is not None:
            process.end(number)

    def _last_words(self) -> str:
        lines = [*_text(self.data_dir / "kafka.out").splitlines(), *_text(self.log_file).splitlines()]
        # Java's errors and exceptions; a line of a stack trace says nothing to users.
        words = [line for line in lines if (" ERROR " in line or "Exception" in line) and not line.startswith("\t")]
        return " | ".join(words[-3:])[-1000:] or "it said nothing"


def _text(file: Path) -> str:
    try:
        return file.read_text("utf-8", "replace")
    except OSError:
        return ""


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        return int(probe.getsockname()[1])
