"""A bolt that keeps its tuples, and emits and acks them on a tick."""

from __future__ import annotations

import json
import os
import sys


def read():
    lines = []
    while (line := sys.stdin.readline().rstrip("\n")) != "end":
        if not line:
            sys.exit(0)
        lines.append(line)
    return json.loads("\n".join(lines))


def send(**message):
    sys.stdout.write(json.dumps(message) + "\nend\n")
    sys.stdout.flush()


def main():
    read()
    send(pid=os.getpid())
    kept = []
    while True:
        message = read()
        if message["stream"] == "__heartbeat":
            send(command="sync")
            continue
        if message["stream"] != "__tick":
            kept.append(message)
            continue
        for tup in kept:
            send(command="emit", anchors=[tup["id"]], tuple=tup["tuple"], need_task_ids=False)
            send(command="ack", id=tup["id"])
        kept.clear()
        send(command="ack", id=message["id"])


if __name__ == "__main__":
    main()
