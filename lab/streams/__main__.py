"""Measures streams on containers. It prints one JSON document.

python -m lab.streams deploy --streams 200
python -m lab.streams kills --messages 100000
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
from pathlib import Path

from lab.streams.deploying import deploy
from lab.streams.killing import kill


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
    for each in (deploying, killing):
        each.add_argument("--containers", type=int, default=3)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="storm-spark-streams-", ignore_cleanup_errors=True) as folder:
        if given.command == "deploy":
            found = deploy(Path(folder), given.streams, given.containers)
        else:
            found = kill(Path(folder), given.messages, given.containers, given.every)
    sys.stdout.write(json.dumps({"cores": os.cpu_count(), **found}, indent=2) + "\n")
    return 0 if found.get("exact", True) else 1


if __name__ == "__main__":
    sys.exit(main())
