"""Looks for inputs that take new ways through a Pacemaker's parsers, by coverage: `make fuzz-coverage SECONDS=600`.

Needs atheris (libFuzzer for Python). The first byte of an input says what reads the rest: the messages, the frames in
two pieces, a DIGEST-MD5 answer, a JAAS file, or a whole connection with its login and its requests. Each of them takes
its input or raises its own error, and nothing else; a message that was read is written and read again as the same.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import atheris

with atheris.instrument_imports(include=["storm_on_spark.cluster.pacemaker", "storm_on_spark.cluster.security"]):
    from storm_on_spark.api.errors import ConfigError, SetupError
    from storm_on_spark.cluster.errors import AuthenticationError, WireError
    from storm_on_spark.cluster.pacemaker.clients import Clients
    from storm_on_spark.cluster.pacemaker.frames import Frames
    from storm_on_spark.cluster.pacemaker.messages import MessageType, decode, frame
    from storm_on_spark.cluster.pacemaker.operations import Refused
    from storm_on_spark.cluster.pacemaker.settings import ServerSettings
    from storm_on_spark.cluster.security.digest import read_answer
    from storm_on_spark.cluster.security.jaas import parse_jaas

RECORDED = Path(__file__).parents[1] / "tests/unit/cluster/pacemaker/recorded.json"
NONCE = "0123456789abcdef"
JAAS = b'PacemakerDigest { any.Module required username="some username" password="some \\\\" password"; }; // end\n'
ANSWER = (
    b'username="cGFjZW1ha2VyLWNsaWVudA==",realm="default",nonce="0123456789abcdef",nc=00000001,cnonce="AAAA",'
    b'digest-uri="null/default",response=00000000000000000000000000000000,qop=auth,charset=utf-8'
)
LOGIN = (MessageType.CONTROL_MESSAGE, MessageType.SASL_MESSAGE_TOKEN)
SERVERS = [
    ServerSettings.from_conf(conf)
    for conf in ({}, {"pacemaker.auth.method": "DIGEST", "pacemaker.auth.payload": "some username:some password"})
]


def messages(data: bytes) -> None:
    """Reads a message, and reads it again as it is written."""
    found = decode(data)
    assert decode(frame(found)[4:]) == found, data.hex()


def frames(data: bytes) -> None:
    """Reads frames in two pieces; they are those of one piece."""
    middle = data[0] if data else 0
    parts, whole = Frames(1 << 16), Frames(1 << 16)
    assert parts.feed(data[:middle]) + parts.feed(data[middle:]) == whole.feed(data)
    assert parts.held == whole.held


def connection(data: bytes) -> None:
    """Has a server answer what comes on one connection."""
    clients = Clients(SERVERS[data[0] % len(SERVERS) if data else 0], now=lambda: 0.0)
    gate = clients.gate("127.0.0.1")
    for payload in Frames(1 << 16).feed(data[1:]):
        message = decode(payload, 1000)
        if message.type in LOGIN:
            gate.take(message)
            continue
        gate.other()
        try:
            frame(clients.operations.answer(message, gate.who, 0.0))
        except Refused:
            continue


READERS: tuple[Callable[[bytes], object], ...] = (
    messages,
    frames,
    lambda data: read_answer(data, NONCE),
    lambda data: parse_jaas(data.decode("utf-8", "surrogateescape")),
    connection,
)


def read(data: bytes) -> None:
    """Gives an input to what its first byte says."""
    try:
        READERS[data[0] % len(READERS) if data else 0](data[1:])
    except (WireError, AuthenticationError, ConfigError, SetupError):
        return


def write_seeds(folder: Path) -> None:
    """Writes inputs to begin with: the frames that Storm's client and server sent."""
    recorded = json.loads(RECORDED.read_text())
    sent = [bytes.fromhex(each) for conversation in recorded.values() for who, each in conversation if who == "client"]
    whole = b"".join(len(each).to_bytes(4, "big") + each for each in sent[:12])
    seeds = [
        *(b"\0" + bytes.fromhex(each) for conversation in recorded.values() for _, each in conversation),
        b"\1" + whole,
        b"\2" + ANSWER,
        b"\3" + JAAS,
        b"\4\0" + whole,
        b"\4\1" + whole,
    ]
    for number, seed in enumerate(seeds):
        (folder / f"seed-{number}").write_bytes(seed)


def main() -> None:
    """Runs the fuzzer; it ends the process, with a code other than 0 if a reader raised what it must not."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=int, default=600)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        write_seeds(Path(folder))
        limits = [f"-max_total_time={options.seconds}", "-max_len=20000", "-rss_limit_mb=1024", "-timeout=10"]
        atheris.Setup([sys.argv[0], *limits, f"-artifact_prefix={tempfile.gettempdir()}/pacemaker-", folder], read)
        atheris.Fuzz()


if __name__ == "__main__":
    main()
