"""Measures streams on containers. It prints one JSON document.

python -m lab.streams deploy --streams 200
python -m lab.streams kills --messages 100000
python -m lab.streams speed --messages 20000 --docs
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
from pathlib import Path

from lab.streams.buses import TRANSPORTS
from lab.streams.deploying import deploy
from lab.streams.killing import kill
from lab.streams.report import write
from lab.streams.speed import speed


def main() -> int:
    """Measures what the command line says; returns 1 if messages are missing or doubled."""
    parser = argparse.ArgumentParser(prog="python -m lab.streams", description="Measures streams on containers.")
    commands = parser.add_subparsers(dest="command", required=True)
    deploying = commands.add_parser("deploy", help="how long it takes to deploy many streams, and what they need")
    deploying.add_argument("--streams", type=int, default=200)
    killing = commands.add_parser(
        "kills", help="whether a message is lost while containers and leading admins are killed"
    )
    killing.add_argument("--messages", type=int, default=100_000)
    killing.add_argument("--every", type=float, default=20.0, metavar="SECS", help="between two kills")
    killing.add_argument("--transport", choices=TRANSPORTS, default="local", help="the message bus")
    speeding = commands.add_parser("speed", help="messages a second and milliseconds of http | filter | log")
    speeding.add_argument("--messages", type=int, default=20_000)
    speeding.add_argument(
        "--modes",
        default="local bus,fused",
        help="which, with commas: `local bus`, `kafka bus`, `fused`, `fused latency`",
    )
    deploying.add_argument("--fused", type=int, default=0, help="how many more there are, each as one topology")
    for each in (deploying, killing):
        each.add_argument("--containers", type=int, default=3)
    for each in (deploying, speeding):
        each.add_argument("--docs", action="store_true", help="write the figures into docs/streams.md, too")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="storm-spark-streams-", ignore_cleanup_errors=True) as folder:
        if given.command == "deploy":
            found = deploy(Path(folder), given.streams, given.containers, given.fused)
        elif given.command == "speed":
            modes = [mode.strip() for mode in given.modes.split(",")]
            found = {"modes": [speed(Path(folder) / mode, given.messages, mode) for mode in modes]}
        else:
            found = kill(Path(folder), given.messages, given.containers, given.every, given.transport)
    sys.stdout.write(json.dumps({"cores": os.cpu_count(), **found}, indent=2) + "\n")
    if getattr(given, "docs", False):
        options = " ".join(argument for argument in sys.argv[1:] if argument != "--docs")
        columns = found["modes"] if given.command == "speed" else [found]
        write(given.command, f"python -m lab.streams {options} --docs", columns)
    return 0 if found.get("exact", True) else 1


if __name__ == "__main__":
    sys.exit(main())
