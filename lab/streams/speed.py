"""The speed of a stream, with its modules on a bus or fused: messages a second, and milliseconds of one message."""

from __future__ import annotations

import statistics
import time
from pathlib import Path
from typing import Any

import httpx

from lab.streams.buses import bus
from lab.streams.cluster import Cluster, eventually, numbers
from storm_on_spark.cluster.zookeeper.server import ZooKeeperServer

_PORT = 19_731
_BODY = 1_000
_SINGLE = 20
_LINES = {"Content-Type": "application/x-ndjson"}
_POLL_SECS = 0.002
_PATIENCE_SECS = 120.0
_PROFILES: dict[str, dict[str, object]] = {"fused latency": {"topology.profile": "latency"}}


def speed(home: Path, messages: int, mode: str) -> dict[str, Any]:
    """Sends messages through `http | filter | log`, and has `rate | filter | file` make as many.

    Args:
        home: an empty folder.
        messages: how many.
        mode: `fused`, `fused latency` for micro-batches, or a transport and "bus".

    Returns:
        Messages a second of both, from the first until the last was written; median and greatest milliseconds from a
        POST of one message until its line was logged; seconds until the stream was deployed.
    """
    home.mkdir(parents=True, exist_ok=True)
    fused = mode.startswith("fused")
    with (
        ZooKeeperServer(home / "zookeeper", tick=0.2) as server,
        bus("local" if fused else mode.removesuffix(" bus"), home) as conf,
        Cluster(home, server.connect_string, conf={**conf, **_PROFILES.get(mode, {})}) as xd,
    ):
        xd.start(admins=1, containers=1)
        (log,) = (node.log for node in xd.containers.values())
        deployed = _deploy(xd, "posted", f"http --port={_PORT} | filter --expression=payload!='drop' | log", fused)
        _post(["ready"])
        _await(log, 1)
        single: list[float] = []
        for number in range(_SINGLE):
            began = time.monotonic()
            _post([f"one{number}"])
            _await(log, number + 2)
            single.append(1_000 * (time.monotonic() - began))
        began = time.monotonic()
        for first in range(0, messages, _BODY):
            _post([f"m{number}" for number in range(first, min(messages, first + _BODY))])
        _await(log, messages + _SINGLE + 1)
        posted = messages / (time.monotonic() - began)
        xd.ask("DELETE", "/streams/deployments/posted")
        out = home / "out"
        source = f"rate --messagesPerSecond=1000000 --maxMessages={messages}"
        _deploy(xd, "made", f"{source} | filter --expression='payload.length() > 0' | file --dir='{out}'", fused)
        eventually(lambda: any(out.glob("*.json")), timeout=_PATIENCE_SECS)
        began = time.monotonic()
        eventually(lambda: len(numbers(out)) >= messages, xd.logs, timeout=_PATIENCE_SECS)
        made = messages / (time.monotonic() - began)
        exact = numbers(out) == list(range(messages))
    return {
        "mode": mode,
        "messages": messages,
        "seconds_until_deployed": round(deployed, 1),
        "http_messages_per_second": round(posted),
        "http_milliseconds_median": round(statistics.median(single)),
        "http_milliseconds_most": round(max(single)),
        "rate_messages_per_second": round(made),
        "exact": exact,
    }


def _deploy(xd: Cluster, name: str, definition: str, fused: bool) -> float:
    began = time.monotonic()
    xd.create(name, definition)
    xd.deploy(name, fused=fused)
    eventually(lambda: xd.state(name) == "deployed", xd.logs)
    return time.monotonic() - began


def _post(payloads: list[str]) -> None:
    url = f"http://127.0.0.1:{_PORT}"

    def sent() -> bool:
        try:
            answer = httpx.post(url, content="\n".join(payloads), headers=_LINES, timeout=_PATIENCE_SECS)
        except httpx.ConnectError:
            return False
        answer.raise_for_status()
        return True

    eventually(sent)


def _await(log: Path, count: int) -> None:
    """Returns when this many messages were logged; a message that was sent again counts again."""
    deadline = time.monotonic() + _PATIENCE_SECS
    while (found := log.read_bytes().count(b"INFO sink.posted - ")) < count:
        assert time.monotonic() < deadline, f"{found} of {count} lines in {log}"
        time.sleep(_POLL_SECS)
