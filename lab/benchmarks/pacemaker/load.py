"""The generator: thousands of workers that each write a heartbeat every three seconds, in one process.

`python -m lab.benchmarks.pacemaker.load` reads its orders as JSON from standard input, says `ready` when all workers
are connected, and measures when it is told `go`. It prints JSON. A server that refuses a connection or hangs up is also
a result: heartbeats due on such a connection are missed, or go to another server if there are several.
"""

from __future__ import annotations

import json
import math
import os
import select
import socket
import sys
import time
from collections import deque
from dataclasses import dataclass

from lab.benchmarks.pacemaker.wire import PROTOCOLS, path_of

PERIOD = 3.0
_TIMEOUT = 30.0
_UNANSWERED = 4
"""Most waiting heartbeats of one connection; further ones are missed."""


@dataclass
class Orders:
    """What to do."""

    protocol: str
    addresses: list[list[object]]
    """Host and port of each server; workers are spread over them."""
    workers: int
    connections: int
    """At most; some carry more than one worker beyond that."""
    size: int
    """Bytes of a value."""
    seconds: float
    """To measure."""
    warm_up: float = PERIOD
    """Seconds before that."""
    core: int | None = None
    kill_after: float | None = None
    """Seconds of load after which it says `kill`: all servers but the first are to die."""
    sources: int = 8
    """Source addresses in 127.0.0.0/8: each has its own ports."""


class _Line:
    """A connection, its unsent bytes, and the times of the heartbeats that wait for an answer."""

    __slots__ = ("held", "number", "sent", "server", "socket", "waiting")

    def __init__(self, number: int) -> None:
        self.number = number
        self.server = number
        self.socket: socket.socket | None = None
        self.waiting: deque[memoryview] = deque()
        self.sent: deque[float] = deque()
        self.held = b""


def main() -> None:
    """Runs the orders."""
    orders = Orders(**json.loads(sys.stdin.readline()))
    if orders.core is not None:
        os.sched_setaffinity(0, {orders.core})
    try:
        load = Load(orders)
    except OSError as error:
        print(json.dumps({"broken": f"it lets no more workers in: {error}"}), flush=True)
        return
    print("ready", flush=True)
    while (line := sys.stdin.readline().strip()) == "go":
        print(json.dumps(load.run(orders.seconds)), flush=True)
    assert line in ("", "end"), line


class Load:
    """All workers."""

    def __init__(self, orders: Orders) -> None:
        self._orders = orders
        self._protocol = PROTOCOLS[orders.protocol]()
        self._epoll = select.epoll()
        self._lines: dict[int, _Line] = {}
        self._payload = os.urandom(orders.size)
        self._lost = 0
        count = min(orders.workers, orders.connections)
        lines = [_Line(number) for number in range(count)]
        for line in lines:
            self._connect(line)
        self._beats = []
        for worker in range(orders.workers):
            before, behind = self._protocol.beat(path_of(worker), orders.size)
            self._beats.append((lines[worker % count], before, behind))

    def close(self) -> None:
        """Hangs up everywhere."""
        for line in list(self._lines.values()):
            self._drop(line)
        self._epoll.close()

    def _connect(self, line: _Line) -> None:
        host, port = self._orders.addresses[line.server % len(self._orders.addresses)]
        made = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        try:
            made.setsockopt(socket.SOL_IP, 24, 1)  # IP_BIND_ADDRESS_NO_PORT: the port is chosen by connect
            made.bind((f"127.0.0.{2 + line.number % self._orders.sources}", 0))
            made.settimeout(_TIMEOUT)
            made.connect((str(host), int(str(port))))
            made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if self._protocol.login:
                made.sendall(self._protocol.login)
                size = int.from_bytes(_exactly(made, 4), "big")
                _exactly(made, size)
        except OSError:
            made.close()
            raise
        made.setblocking(False)
        line.socket = made
        self._lines[made.fileno()] = line
        self._epoll.register(made.fileno(), select.EPOLLIN)

    def _drop(self, line: _Line) -> None:
        """Notes that a server has hung up."""
        if line.socket is None:
            return
        self._epoll.unregister(line.socket.fileno())
        del self._lines[line.socket.fileno()]
        line.socket.close()
        line.socket, line.held = None, b""
        line.waiting.clear()
        line.sent.clear()
        self._lost += 1

    def _connections(self) -> list[int]:
        """Returns how many each server has."""
        count = len(self._orders.addresses)
        found = [line.server % count for line in self._lines.values()]
        return [found.count(server) for server in range(count)]

    def _returns(self, line: _Line) -> bool:
        """Connects to the next server that accepts it, like a driver whose Pacemaker has died."""
        for _ in range(len(self._orders.addresses) - 1):
            line.server += 1
            try:
                self._connect(line)
            except OSError:
                continue
            return True
        return False

    def run(self, seconds: float) -> dict[str, object]:
        """Writes heartbeats for a time and returns the result."""
        count = len(self._beats)
        begin = time.monotonic()
        measure_at = begin + self._orders.warm_up
        end = measure_at + seconds
        step = PERIOD / count
        index = due = answered = missed = written = 0
        latencies: list[float] = []
        lags: list[float] = []
        payload = self._payload
        cpu = time.process_time()
        kill_at = math.inf if self._orders.kill_after is None else begin + self._orders.kill_after
        killed_at = back_at = None
        told = False
        while (now := time.monotonic()) < end:
            if not told and now >= measure_at:
                print("measuring", flush=True)
                told, cpu = True, time.process_time()
            if now >= kill_at:
                print("kill", flush=True)
                kill_at, killed_at = math.inf, now
            target = int((now - begin) / step)
            # A turn at a time, so that answers are read in between.
            turn = min(target, index + 256)
            while index < turn:
                line, before, behind = self._beats[index % count]
                at = begin + index * step
                measured = at >= measure_at
                index += 1
                due += measured
                if line.socket is None and self._returns(line):
                    back_at = time.monotonic()
                if line.socket is None or len(line.sent) >= _UNANSWERED:
                    missed += measured
                    continue
                stamp = index.to_bytes(8, "big") + payload[8:]
                began = time.monotonic()
                line.sent.append(began if measured else -1.0)
                if measured:
                    lags.append(began - at)
                    written += len(before) + len(stamp) + len(behind)
                self._send(line, (before, stamp, behind))
            pause = 0.0 if index < target else max(0.0, begin + (index + 1) * step - time.monotonic())
            for number, event in self._epoll.poll(pause, 512):
                found = self._lines.get(number)
                if found is None:
                    continue
                line = found
                if event & select.EPOLLOUT:
                    self._flush(line)
                if not event & (select.EPOLLIN | select.EPOLLHUP | select.EPOLLERR):
                    continue
                for sent in self._receive(line):
                    if sent >= 0.0:
                        answered += 1
                        latencies.append(time.monotonic() - sent)
        latencies.sort()
        lags.sort()
        return {
            "due": due,
            "answered": answered,
            "missed": missed,
            "seconds": seconds,
            "bytes": written,
            "p50": _part(latencies, 0.5),
            "p99": _part(latencies, 0.99),
            "max": _part(latencies, 1.0),
            "lag_p99": _part(lags, 0.99),
            "cpu": (time.process_time() - cpu) / seconds,
            "lost": self._lost,
            "connections": self._connections(),
            "back": None if killed_at is None or back_at is None else back_at - killed_at,
        }

    def _send(self, line: _Line, parts: tuple[bytes, ...]) -> None:
        assert line.socket is not None
        if line.waiting:
            line.waiting.extend(map(memoryview, parts))
            return
        try:
            sent = line.socket.sendmsg(parts)
        except BlockingIOError:
            sent = 0
        except OSError:
            self._drop(line)
            return
        for part in parts:
            if sent >= len(part):
                sent -= len(part)
                continue
            line.waiting.append(memoryview(part)[sent:])
            sent = 0
        if line.waiting:
            self._epoll.modify(line.socket.fileno(), select.EPOLLIN | select.EPOLLOUT)

    def _flush(self, line: _Line) -> None:
        assert line.socket is not None
        while line.waiting:
            part = line.waiting[0]
            try:
                sent = line.socket.send(part)
            except BlockingIOError:
                return
            except OSError:
                self._drop(line)
                return
            if sent < len(part):
                line.waiting[0] = part[sent:]
                return
            line.waiting.popleft()
        self._epoll.modify(line.socket.fileno(), select.EPOLLIN)

    def _receive(self, line: _Line) -> list[float]:
        """Returns when the heartbeats were sent that are answered now."""
        if line.socket is None:
            return []
        try:
            data = line.socket.recv(65536)
        except BlockingIOError:
            return []
        except OSError:
            data = b""
        if not data:
            self._drop(line)
            return []
        data = line.held + data
        found = []
        at = 0
        while len(data) - at >= 4 and len(data) - at >= 4 + (size := int.from_bytes(data[at : at + 4], "big")):
            at += 4 + size
            if line.sent:
                found.append(line.sent.popleft())
        line.held = data[at:]
        return found


def _exactly(made: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        more = made.recv(size - len(data))
        if not more:
            raise ConnectionResetError("the server hung up at the login")
        data += more
    return data


def _part(values: list[float], part: float) -> float | None:
    return values[min(len(values) - 1, int(part * len(values)))] if values else None


if __name__ == "__main__":
    main()
