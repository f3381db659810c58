"""A bolt that misbehaves as its first argument says, once it gets the word `bad`."""

from __future__ import annotations

import json
import os
import sys
import time


def read():
    lines = []
    while (line := sys.stdin.readline().rstrip("\n")) != "end":
        if not line:
            sys.exit(0)
        lines.append(line)
    return json.loads("\n".join(lines))


def send(message):
    sys.stdout.write(json.dumps(message) + "\nend\n")
    sys.stdout.flush()


def main(how):
    read()
    if how == "start":
        sys.stderr.write("no such model\n")
        sys.exit(3)
    send({"pid": os.getpid()})
    while True:
        message = read()
        if message["stream"] == "__heartbeat":
            send({"command": "sync"})
            continue
        if message["tuple"] == ["bad"]:
            sys.stderr.write(f"about to {how}\n")
            sys.stderr.flush()
            if how == "die":
                os._exit(7)
            if how == "hang":
                time.sleep(3600)
            if how == "garbage":
                sys.stdout.write("hello\nend\n")
                sys.stdout.flush()
            if how == "flood":
                while True:
                    send({"command": "log", "msg": "again", "level": 0})
            if how == "unknown":
                send({"command": "ack", "id": "nothing"})
            if how == "undeclared":
                send({"command": "emit", "stream": "nowhere", "tuple": [1]})
            if how == "stderr":
                sys.stderr.write("x" * 3_000_000)
                sys.stderr.write("\nlast words\n")
                sys.stderr.flush()
                os._exit(7)
            if how == "keep":
                continue
            if how == "slow":
                time.sleep(0.3)
        send({"command": "emit", "anchors": [message["id"]], "tuple": message["tuple"], "need_task_ids": False})
        send({"command": "ack", "id": message["id"]})


if __name__ == "__main__":
    main(sys.argv[1])
