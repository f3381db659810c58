"""Admins and containers in separate processes."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

import httpx

from lab.suite import ROOT
from storm_on_spark.testing.simulated.process import DaemonProcess
from storm_on_spark.xd.admin.rest.schemas import MAXIMUM_PAGE_SIZE

T = TypeVar("T")

SESSION_MILLIS = 3000
_END_SECS = 30.0


def eventually(what: Callable[[], T], told: Callable[[], object] = lambda: "", timeout: float = 60) -> T:
    """Returns the first value of `what` that is true."""
    deadline = time.monotonic() + timeout
    while not (value := what()):
        assert time.monotonic() < deadline, told()
        time.sleep(0.05)
    return value


class Node(DaemonProcess):
    """A daemon.

    Args:
        home: the folder of all.
        name: of its own folder there.
        arguments: of `storm-spark`.
    """

    def __init__(self, home: Path, name: str, *arguments: str) -> None:
        folder = home / name
        folder.mkdir()
        environment = {
            **os.environ,
            "PYTHONPATH": str(ROOT),
            "STORM_SPARK_XD_HOME": str(home),
            "TMPDIR": str(home),
            "XDG_STATE_HOME": str(home / "state"),
        }
        super().__init__(arguments, folder, environment, "storm_on_spark.cli")

    def document(self) -> dict[str, Any]:
        """Returns the document that it begins with."""
        found: dict[str, Any] = json.loads(self.line())
        return found

    def close(self) -> None:
        """Ends it in an orderly way."""
        self.end()
        assert self.join(_END_SECS), f"{self.folder.name} did not end within {_END_SECS:g} s: {self.said[-2000:]}"


class Cluster:
    """Admins and containers around a ZooKeeper; closed with a `with` statement.

    They are open: tests and benchmarks send requests, and read nodes, without a login.

    Args:
        home: the folder that they share.
        connect: of ZooKeeper.
        session_millis: after which a node that is silent has departed.
        conf: more of the configuration, for all.
    """

    def __init__(
        self, home: Path, connect: str, session_millis: int = SESSION_MILLIS, conf: Mapping[str, object] | None = None
    ) -> None:
        self.home = home
        own = {"zk.client.connect": connect, "storm.zookeeper.session.timeout": session_millis, **(conf or {})}
        self._conf = tuple(text for key, value in own.items() for text in ("-c", f"{key}={value}"))
        self.nodes: list[Node] = []
        self.admins: dict[str, Node] = {}
        self.containers: dict[str, Node] = {}

    def __enter__(self) -> Cluster:
        return self

    def __exit__(self, *_: object) -> None:
        # All at the same time, each with its Spark.
        for node in self.nodes:
            node.end()
        for node in self.nodes:
            node.close()

    def start(self, admins: int = 0, containers: int = 0) -> None:
        """Starts several at the same time, and returns when all are up."""
        made = [
            (kind, self._node(f"xd-{kind}", *(["--port", "0"] if kind == "admin" else [])))
            for kind in ["admin"] * admins + ["container"] * containers
        ]
        for kind, node in made:
            (self.admins if kind == "admin" else self.containers)[node.document()[kind]] = node

    def _node(self, command: str, *arguments: str) -> Node:
        node = Node(self.home, f"{command}-{len(self.nodes)}", command, "--json", "--open", *self._conf, *arguments)
        self.nodes.append(node)
        return node

    def ask(self, method: str, path: str, body: object = None, admin: str | None = None) -> Any:
        """Sends a request to an admin, by default the first; returns its answer."""
        url = admin or next(iter(self.admins))
        answer = httpx.request(method, f"{url}{path}", json=body, timeout=60)
        assert answer.is_success, answer.text
        return answer.json() if answer.content else None

    def create(self, name: str, definition: str) -> None:
        """Creates a stream."""
        self.ask("POST", "/streams/definitions", {"name": name, "definition": definition})

    def deploy(self, name: str, properties: dict[str, str] | None = None, *, fused: bool = False) -> Any:
        """Deploys a stream."""
        return self.ask("POST", f"/streams/deployments/{name}", {"properties": properties or {}, "fused": fused})

    def modules(self) -> dict[str, str]:
        """Returns module -> its container, for running modules."""
        found: list[dict[str, str]] = []
        total = 1
        while len(found) < total:
            answer = self.ask(
                "GET", f"/runtime/modules?size={MAXIMUM_PAGE_SIZE}&page={len(found) // MAXIMUM_PAGE_SIZE}"
            )
            found += answer["content"]
            total = answer["page"]["totalElements"]
        return {each["name"]: each["containerId"] for each in found if each["state"] == "deployed"}

    def state(self, name: str) -> str:
        """Returns the state of a stream."""
        return str(self.ask("GET", f"/streams/deployments/{name}")["state"])

    def kill_container(self, container: str) -> None:
        """Ends a container by SIGKILL."""
        self.containers.pop(container).kill()

    def logs(self) -> str:
        """Returns the logs of all."""
        return "\n".join(f"--- {node.folder.name}\n{node.said}" for node in self.nodes)


def numbers(folder: Path) -> list[int]:
    """Returns the payloads that the sink `file` has written, in order."""
    found = [
        int(json.loads(line)["payload"])
        for path in sorted(folder.glob("*.json"))
        for line in path.read_bytes().splitlines()
    ]
    return sorted(found)
