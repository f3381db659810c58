"""Storm's own `DRPCClient`, unchanged, asks a topology of ours."""

from __future__ import annotations

import subprocess
import threading
from pathlib import Path

import pytest
from storm_jars import JVM, class_path

from storm_on_spark import BaseBasicBolt, FailedException, Fields
from storm_on_spark.api.config import effective_conf
from storm_on_spark.cluster.drpc.server import DRPCServer, Ports
from storm_on_spark.drpc import LinearDRPCTopologyBuilder
from storm_on_spark.plan.compile import compile_graph
from storm_on_spark.runtime.in_process import InProcessTopology
from storm_on_spark.spark.session.jvm.java import require_java

SIMPLE = "org.apache.storm.security.auth.SimpleTransportPlugin"
DIGEST = "org.apache.storm.security.auth.digest.DigestSaslTransportPlugin"
ASKED = ["hello", "two words", "bad", "again"]
PEER = Path(__file__).with_name("DrpcPeer.java")


class Exclaim(BaseBasicBolt):
    def execute(self, tup, collector):
        if tup[1] == "bad":
            raise FailedException("bad")
        collector.emit([tup[0], tup[1] + "!"])

    def declare_output_fields(self, declarer):
        declarer.declare(Fields("id", "result"))


def secret(path: Path, text: str) -> str:
    path.write_text(text)
    path.chmod(0o600)
    return str(path)


@pytest.mark.parametrize("transport", [SIMPLE, DIGEST])
def test_storms_client_is_answered(tmp_path: Path, transport: str) -> None:
    conf: dict[str, object] = {"drpc.thrift.transport": transport}
    jaas = ""
    if transport == DIGEST:
        conf["nimbus.auth.token.file"] = secret(tmp_path / "token", "0123456789abcdef0123456789abcdef")
        module = "org.apache.zookeeper.server.auth.DigestLoginModule required"
        users = f'StormServer {{ {module} user_ann="ann\'s secret"; }};\n'
        conf["java.security.auth.login.config"] = secret(tmp_path / "server.jaas", users)
        login = f'StormClient {{ {module} username="ann" password="ann\'s secret"; }};\n'
        jaas = secret(tmp_path / "client.jaas", login)
    builder = LinearDRPCTopologyBuilder("exclaim")
    builder.add_bolt(Exclaim(), 2)
    java = [str(require_java().home / "bin" / "java"), *JVM]
    ended = threading.Event()
    with DRPCServer(conf, Ports(0, 0, 0)) as server:
        topology = builder.create_local_topology(server)
        run = InProcessTopology(compile_graph(topology, effective_conf({})), "test")
        running = threading.Thread(target=lambda: run.run(lambda: not ended.is_set()), daemon=True)
        running.start()
        try:
            said = subprocess.run(
                [*java, "-cp", class_path(), str(PEER), str(server.calls.port), transport, jaas, "exclaim", *ASKED],
                capture_output=True,
                text=True,
                timeout=120,
                check=False,
            )
        finally:
            ended.set()
            running.join(30)
    answers = [line for line in said.stdout.splitlines() if line[:2] in ("> ", "! ")]
    expected = ["> hello!", "> two words!", "! FAILED_REQUEST the request failed", "> again!"]
    assert answers == expected, said.stdout[-2000:] + said.stderr[-2000:]
