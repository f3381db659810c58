"""Records what Storm's client and Storm's Pacemaker send each other, as fixtures of the unit tests.

`.venv/bin/python tests/integration/cluster/pacemaker/record_frames.py` writes them again.
"""

from __future__ import annotations

import base64
import json
import socket
import sys
import tempfile
import threading
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from storm_jars import ROOT
from storm_peer import storm_peer, storm_server

from storm_on_spark.cluster.pacemaker.frames import Frames

OUT = ROOT / "tests/unit/cluster/pacemaker/recorded.json"
JAAS = 'PacemakerDigest { any.Module required username="some username" password="some password"; };'
REQUESTS = (
    ("CREATE_PATH", "/c"),
    ("SEND_PULSE", "/c/t-1/ä", base64.b64encode(bytes(range(256))).decode()),
    ("SEND_PULSE", "/c/t-1/b", "MQ=="),
    ("EXISTS", "/c/t-1/b"),
    ("EXISTS", "/nothing"),
    ("GET_PULSE", "/c/t-1/ä"),
    ("GET_PULSE", "/nothing"),
    ("GET_ALL_NODES_FOR_PATH", "/c"),
    ("GET_ALL_NODES_FOR_PATH", "/nothing"),
    ("GET_ALL_PULSE_FOR_PATH", "/c"),
    ("DELETE_PULSE_ID", "/c/t-1/b"),
    ("DELETE_PATH", "/c"),
)


class Tap:
    """A proxy for one connection, which keeps the frames of both directions in order."""

    def __init__(self, target: int) -> None:
        self._target = target
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self.frames: list[tuple[str, str]] = []
        threading.Thread(target=self._run, daemon=True).start()

    def _run(self) -> None:
        client, _ = self._listener.accept()
        server = socket.create_connection(("127.0.0.1", self._target))
        threading.Thread(target=self._pump, args=("client", client, server), daemon=True).start()
        self._pump("server", server, client)

    def _pump(self, name: str, source: socket.socket, sink: socket.socket) -> None:
        frames = Frames()
        try:
            while data := source.recv(65536):
                self.frames.extend((name, each.hex()) for each in frames.feed(data))
                sink.sendall(data)
            sink.shutdown(socket.SHUT_WR)
        except OSError:
            return


def main() -> None:
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        jaas = folder / "digest.jaas"
        jaas.write_text(JAAS)
        recorded = {}
        for method in ("NONE", "DIGEST"):
            conf = {"pacemaker_auth_method": method, "java_security_auth_login_config": str(jaas)}
            with storm_server(folder / "server", **conf) as port:
                tap = Tap(port)
                with storm_peer("client", folder / "client", pacemaker_port=tap.port, **conf) as client:
                    for request in REQUESTS if method == "NONE" else REQUESTS[:1]:
                        client.ask("send", "127.0.0.1", *request)
                recorded[method] = tap.frames
    OUT.write_text(json.dumps(recorded, indent=1) + "\n")


if __name__ == "__main__":
    main()
