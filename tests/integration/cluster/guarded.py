"""A whole cluster with a secret, and an intruder with write access to its ZooKeeper but without the secret."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from hand_written import wait_until

from storm_on_spark.cluster.code.checksums import artifacts_of
from storm_on_spark.cluster.code.distributor import Metafile
from storm_on_spark.cluster.paths import ASSIGNMENTS, STORMS
from storm_on_spark.cluster.records import (
    Assignment,
    CodeManifest,
    NimbusSummary,
    Record,
    StormBase,
    SupervisorInfo,
    encode,
)
from storm_on_spark.cluster.state import ClusterSnapshot
from storm_on_spark.testing.simulated.cluster import SimulatedCluster

PLAN = json.loads((Path(__file__).parents[2] / "plan" / "golden" / "word_count.json").read_text("utf-8"))


def write_secret(path: Path, *lines: str) -> Path:
    """Writes a file for its owner only; a reader sees the old one or the new one."""
    other = path.with_name(f".{path.name}.new")
    other.write_text("".join(f"{line}\n" for line in lines))
    other.chmod(0o600)
    other.replace(path)
    return path


class Guarded(SimulatedCluster):
    """A cluster whose clients see a plan, and whose daemons can be asked what they know."""

    def packed(self, name: str, plan: Mapping[str, Any] | None = PLAN) -> Path:
        return super().packed(name, plan)

    def read(self) -> list[ClusterSnapshot]:
        """Returns what each daemon knows, once it has read all that was written before."""
        views = [daemon.view for daemon in (*self.nimbuses.values(), *self.supervisors.values())]
        for view in views:
            assert view is not None
            view.refresh(20)
        return [view.snapshot() for view in views if view is not None]

    def runs_as_wanted(self, topology_id: str) -> int:
        """Returns the process id of the driver, once it is the one of the last launch that was asked for."""

        def is_there() -> bool:
            base, owner = self.state.get(StormBase, STORMS, topology_id), self.owner(topology_id)
            if base is None or owner is None:
                return False
            return (base[0].status, base[0].launch) == ("ACTIVE", owner.launch)

        wait_until(is_there, f"{topology_id} runs as its record wants it")
        return self.runs(topology_id)

    def has_seen_the_end_of(self, topology_id: str) -> bool:
        """Returns whether no daemon knows the topology any more, and nothing of it runs."""
        return (
            self.owner(topology_id) is None
            and all(slot.slot.current is None for it in self.supervisors.values() for slot in it.slots.values())
            and not any(
                snapshot.knows(topology_id)
                or topology_id in snapshot.assignments
                or topology_id in snapshot.unread(ASSIGNMENTS)
                for snapshot in self.read()
            )
        )

    def responds(self, topology_id: str) -> None:
        """Checks that the topology's driver follows its cluster: it is switched off and on."""
        name = topology_id.rsplit("-", 2)[0]
        with self.client() as client:
            for change, status in ((client.deactivate, "INACTIVE"), (client.activate, "ACTIVE")):
                change(name)
                wait_until(
                    lambda status=status: client.topology(topology_id)["driverStatus"] == status,  # type: ignore[misc]
                    f"the driver is {status}",
                    30,
                )


class Attacker:
    """Can write to ZooKeeper, and has a server that keeps what it is sent and gives out code of its own."""

    def __init__(self, cluster: Guarded) -> None:
        self._cluster = cluster
        self._client = cluster.session.client
        self.heard: list[str] = []
        self.folder = cluster.packed("evil")
        attacker = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                length = int(self.headers.get("Content-Length") or 0)
                attacker.heard.append(f"{self.requestline}\n{self.headers}\n{self.rfile.read(length)!r}")
                file = attacker.folder / self.path.rpartition("/")[2]
                content = file.read_bytes() if file.is_file() else b""
                self.send_response(200 if content else 401)
                if not content:
                    self.send_header("WWW-Authenticate", 'Storm-HMAC challenge="1.0123456789abcdef.00"')
                    self.send_header("WWW-Authenticate", 'Bearer realm="storm-on-spark"')
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            do_POST = do_PUT = do_GET

            def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.05})
        self._thread.start()
        self.address = f"127.0.0.1:{self._server.server_port}"

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def path(self, *parts: str) -> str:
        return self._cluster.session.paths.of(*parts)

    def read(self, *parts: str) -> bytes:
        data: bytes = self._client.get(self.path(*parts))[0]
        return data

    def write(self, data: bytes | Record, *parts: str) -> None:
        value = data if isinstance(data, bytes) else encode(data)
        path = self.path(*parts)
        if self._client.exists(path):
            self._client.set(path, value)
        else:
            self._client.create(path, value, makepath=True)

    def remove(self, *parts: str) -> None:
        self._client.delete(self.path(*parts), recursive=True)

    def register(self) -> None:
        """Says that its server is a Nimbus."""
        self.write(
            NimbusSummary(host="127.0.0.1", port=int(self.address.rpartition(":")[2]), started_at=1.0, version="1"),
            "nimbuses",
            self.address,
        )

    def offer(self, topology_id: str) -> None:
        """Says that its server has a topology's code."""
        self.write(b"", "code", topology_id, self.address)

    def topology(self, topology_id: str, supervisor_id: str, port: int) -> None:
        """Writes a topology of its own, whole, as a Nimbus would."""
        # First: a leader removes code of which there is no topology.
        checkpoint = str(self._cluster.folder / "checkpoints" / topology_id)
        self.write(
            StormBase(
                topology_id=topology_id,
                name="evil",
                owner="eve",
                status="ACTIVE",
                submitted_at=time.time(),
                launch=1,
                conf={"topology.checkpoint.dir": checkpoint},
            ),
            "storms",
            topology_id,
        )
        artifacts = artifacts_of(self.folder)
        self.write(
            CodeManifest(
                topology_id=topology_id,
                artifacts=artifacts,
                uploader=self.address,
                uploaded_at=time.time(),
                distributor="local",
                metafile=Metafile(location="nimbus", artifacts=artifacts).to_text(),
            ),
            "code",
            topology_id,
        )
        self.offer(topology_id)
        self.write(
            Assignment(
                topology_id=topology_id,
                supervisor_id=supervisor_id,
                host="127.0.0.1",
                port=port,
                launch=1,
                epoch=1,
                assigned_at=time.time(),
            ),
            "assignments",
            topology_id,
        )

    def show_logs(self, supervisor_id: str, slots: tuple[int, ...]) -> None:
        """Says that its server has the logs of a supervisor's drivers."""
        self.write(
            SupervisorInfo(
                supervisor_id=supervisor_id,
                host="127.0.0.1",
                slots=slots,
                started_at=1.0,
                version="1",
                heartbeat_at=time.time(),
                logs=self.address,
            ),
            "supervisors",
            supervisor_id,
        )
