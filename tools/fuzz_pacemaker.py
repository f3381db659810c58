"""Mutates messages and sends them to a Pacemaker: it must not fall, swell or hang. `make fuzz SECONDS=600`.

Starts from the frames that were recorded from Storm's client and server. What is checked, all the time: any payload is
a message or one `WireError`; a message that was read is written and read again as the same; each connection that the
server closes has one line in its log, and no line tells of its own fault; another client is answered meanwhile;
memory stays within a bound.
"""

from __future__ import annotations

import argparse
import json
import logging
import random
import socket
import sys
import time
from pathlib import Path

from storm_on_spark.cluster.errors import WireError
from storm_on_spark.cluster.pacemaker.messages import MessageType, Pulse, decode, frame
from storm_on_spark.cluster.pacemaker.server import PacemakerServer
from storm_on_spark.testing.servers.pacemaker_client import RawClient

RECORDED = Path(__file__).parents[1] / "tests/unit/cluster/pacemaker/recorded.json"
MOST_GROWTH_MB = 200
NUMBERS = [b"\xff\xff\xff\xff", b"\x7f\xff\xff\xff", b"\0\0\0\0", b"\x80\0\0\0", b"\0\xa0\0\0"]
PROBE = Pulse("/probe", b"alive")


class Lines(logging.Handler):
    """Counts the lines of the server's log, by how they begin."""

    def __init__(self) -> None:
        super().__init__()
        self.closed = 0
        self.faults: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        message = record.getMessage()
        self.closed += message.startswith("closed ")
        if record.levelno >= logging.ERROR or "a fault of this server" in message:
            self.faults.append(message)


def mutated(payload: bytes, seeds: list[bytes], choose: random.Random) -> bytes:
    """Returns a payload with a few changes."""
    data = bytearray(payload)
    for _ in range(choose.randint(1, 5)):
        at = choose.randrange(len(data) + 1)
        kind = choose.randrange(6)
        if kind == 0 and data:
            data[at % len(data)] = choose.randrange(256)
        elif kind == 1:
            data[at : at + choose.randint(1, 8)] = b""
        elif kind == 2:
            data[at:at] = choose.randbytes(choose.randint(1, 8))
        elif kind == 3:
            data[at : at + 4] = choose.choice(NUMBERS)
        elif kind == 4:
            other = choose.choice(seeds)
            begin = choose.randrange(len(other) + 1)
            data[at:at] = other[begin : begin + choose.randint(1, 40)]
        else:
            data[at:at] = bytes(data[at : at + 20]) * choose.randint(1, 50)
    return bytes(data)


def check_codec(payload: bytes) -> None:
    """Reads a payload; what is a message is the same after it was written and read again."""
    try:
        found = decode(payload)
    except WireError:
        return
    assert decode(frame(found)[4:]) == found, payload.hex()


def attack(port: int, payloads: list[bytes], choose: random.Random) -> None:
    """Sends payloads over one connection, in pieces, with a wrong length now and then."""
    with socket.create_connection(("127.0.0.1", port), timeout=10) as client:
        stream = b"".join(
            (choose.choice(NUMBERS) if choose.random() < 0.02 else len(payload).to_bytes(4, "big")) + payload
            for payload in payloads
        )
        try:
            while stream:
                size = choose.randint(1, len(stream))
                client.sendall(stream[:size])
                stream = stream[size:]
            client.shutdown(socket.SHUT_WR)
            while client.recv(1 << 16):
                pass
        except OSError:
            return


def memory_mb() -> float:
    """Returns the resident memory of this process."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * 4096 / (1 << 20)


def fuzz(seconds: float, seed: int) -> dict[str, int]:
    """Runs for a while; returns what was done.

    Raises:
        AssertionError: a check failed; the seed repeats it.
    """
    choose = random.Random(seed)
    seeds = [bytes.fromhex(each) for frames in json.loads(RECORDED.read_text()).values() for _, each in frames]
    lines = Lines()
    logger = logging.getLogger("storm_on_spark.cluster.pacemaker")
    logger.addHandler(lines)
    logger.propagate = False
    done = {"payloads": 0, "connections": 0}
    try:
        for method in ("NONE", "DIGEST"):
            conf = {
                "pacemaker.auth.method": method,
                **({"pacemaker.auth.payload": "some username:some password"} if method == "DIGEST" else {}),
            }
            with PacemakerServer(conf, port=0) as server:
                end = time.monotonic() + seconds / 2
                before = memory_mb()
                while time.monotonic() < end:
                    payloads = [mutated(choose.choice(seeds), seeds, choose) for _ in range(choose.randint(1, 20))]
                    for payload in payloads:
                        check_codec(payload)
                    told = lines.closed
                    attack(server.port, payloads, choose)
                    done["payloads"] += len(payloads)
                    done["connections"] += 1
                    with RawClient(server.port, timeout=10) as other:
                        answer = other.ask(MessageType.SEND_PULSE, PROBE).type
                        expected = MessageType.SEND_PULSE_RESPONSE if method == "NONE" else MessageType.NOT_AUTHORIZED
                        assert answer is expected, answer
                    assert lines.closed - told <= 1, "one connection, more than one line"
                    assert not lines.faults, lines.faults
                    assert memory_mb() - before < MOST_GROWTH_MB, f"{memory_mb() - before:.0f} MiB more than before"
    finally:
        logger.removeHandler(lines)
        logger.propagate = True
    return {**done, "closed": lines.closed}


def main() -> int:
    """Runs the fuzzer, and prints what it did."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    options = parser.parse_args()
    print(f"seed {options.seed}")
    print(fuzz(options.seconds, options.seed))
    return 0


if __name__ == "__main__":
    sys.exit(main())
