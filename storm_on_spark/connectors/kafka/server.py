"""A real Kafka broker on this machine, for development and tests.

One node is broker and controller at once (KRaft). It listens on the loopback interface only, keeps its data in a folder
of its own, and ends with the process that started it, however that ends.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from storm_on_spark.connectors.kafka.jars import class_path
from storm_on_spark.runtime.processes.server import HOST, Server, free_ports, java_command
from storm_on_spark.spark.session.jvm.java import require_java

_STARTED: Final = "Kafka Server started"

_META: Final = """\
version=1
cluster.id=c3Rvcm0tb24tc3BhcmstMQ
node.id={node}
"""
"""What formatting the storage writes; Kafka's tool for it would start its own JVM."""

_PROPERTIES: Final = """\
process.roles={roles}
node.id={node}
controller.quorum.voters=1@{host}:{controller_port}
listeners={listeners}{controller_listener}
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


class KafkaServer(Server):
    """One Kafka broker, in a separate process.

    Args:
        data_dir: where its data is kept; None for a temporary folder that `close` removes.
        port: for clients; 0 for a free one. It stays the same over stops and starts.
        properties: more lines of its configuration file, which win over those written here.
        listeners: more doors, on free ports: their names, and the security protocol of each, such as SASL_SSL.
        controller: the controller whose cluster it joins; None for a new cluster.
        node: its number in the cluster, which is 1 for the controller.

    Example:
        >>> with KafkaServer() as server:                           # doctest: +SKIP
        ...     server.bootstrap_servers
        '127.0.0.1:40123'
    """

    kind = "kafka"
    title = "Kafka broker"

    def __init__(
        self,
        data_dir: Path | None = None,
        port: int = 0,
        *,
        properties: tuple[str, ...] = (),
        listeners: Mapping[str, str] | None = None,
        controller: KafkaServer | None = None,
        node: int = 1,
    ) -> None:
        super().__init__(data_dir, port)
        self._controller, self._node = controller or self, node
        self._protocols = {"PLAINTEXT": "PLAINTEXT", **(listeners or {})}
        self._choose_further_ports()
        self._properties = properties

    @property
    def bootstrap_servers(self) -> str:
        """`host:port`, for clients."""
        return f"{HOST}:{self.port}"

    def servers_of(self, listener: str) -> str:
        """Returns `host:port` of another door."""
        return f"{HOST}:{self._doors[listener]}"

    def _choose_ports(self) -> None:
        super()._choose_ports()
        self._choose_further_ports()

    def _choose_further_ports(self) -> None:
        more = list(self._protocols)[1:]
        self.controller_port, *ports = free_ports(1 + len(more), besides=self.port)
        self._doors = dict(zip(more, ports, strict=True))

    def _commands(self) -> Mapping[str, Sequence[str]]:
        java, classes = require_java(), class_path()
        logs, temporary = self.data_dir / "logs", self.data_dir / "tmp"
        for folder in (logs, temporary):
            folder.mkdir(mode=0o700, exist_ok=True)
        meta = logs / "meta.properties"
        if not meta.exists():
            meta.write_text(_META.format(node=self._node), "utf-8")
        self.log_file.unlink(missing_ok=True)
        config = self.data_dir / "server.properties"
        doors = {"PLAINTEXT": self.port, **self._doors}
        leads, controller_port = self._controller is self, self._controller.controller_port
        text = _PROPERTIES.format(
            host=HOST,
            node=self._node,
            roles="broker,controller" if leads else "broker",
            controller_listener=f",CONTROLLER://{HOST}:{controller_port}" if leads else "",
            listeners=",".join(f"{name}://{HOST}:{port}" for name, port in doors.items()),
            protocols=",".join(f"{name}:{protocol}" for name, protocol in self._protocols.items()),
            controller_port=controller_port,
            logs=logs,
        )
        config.write_text("\n".join([text, *self._properties, ""]), "utf-8")
        options = [f"-Djava.io.tmpdir={temporary}"]
        command = java_command(java.home, classes, "kafka.Kafka", str(config), log=self.log_file, options=options)
        return {self.kind: command}

    def _answers(self) -> bool:
        try:
            return _STARTED in self.log_file.read_text("utf-8", "replace")
        except FileNotFoundError:
            return False
