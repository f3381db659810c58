"""Storm's multilang protocol for components in Python, with the names that components import from `storm`.

A separate program: it runs in the child process, with whatever Python 3 that is, and needs nothing of this package.
Messages are JSON, each followed by a line `end`.
"""

from __future__ import annotations

import json
import os
import sys
import traceback
from collections import deque

__all__ = [
    "BasicBolt",
    "Bolt",
    "Spout",
    "Tuple",
    "ack",
    "emit",
    "emitBolt",
    "emitDirect",
    "emitSpout",
    "fail",
    "initComponent",
    "log",
    "logDebug",
    "logError",
    "logInfo",
    "logTrace",
    "logWarn",
    "readCommand",
    "readMsg",
    "readTaskIds",
    "readTuple",
    "reportError",
    "rpcMetrics",
    "sendMsgToParent",
    "sendpid",
    "sync",
]

TRACE, DEBUG, INFO, WARN, ERROR = range(5)

_commands = deque()  # read while task ids were waited for
_task_ids = deque()  # read while a command was waited for
_is_spout = False
_anchor = None  # what a BasicBolt processes


class Tuple:
    """The input of a bolt: `id`, `component`, `stream`, `task` and `values`."""

    def __init__(self, id, component, stream, task, values):
        self.id = id
        self.component = component
        self.stream = stream
        self.task = task
        self.values = values

    def __repr__(self):
        return "<Tuple component={!r} id={!r} stream={!r} task={!r} values={!r}>".format(
            self.component, self.id, self.stream, self.task, self.values
        )

    def is_heartbeat_tuple(self):
        return self.task == -1 and self.stream == "__heartbeat"

    def is_tick_tuple(self):
        return self.component == "__system" and self.stream == "__tick"


# Messages.


def readMsg():
    """Returns the next message. At the end of the input the process ends: nobody is there any more."""
    lines = []
    while True:
        line = sys.stdin.buffer.readline()
        if not line:
            sys.exit(0)
        line = line.rstrip(b"\r\n")
        if line == b"end":
            return json.loads(b"\n".join(lines).decode("utf-8"))
        lines.append(line)


def readTaskIds():
    """Returns the tasks that got the last tuple that was emitted; commands that come before wait."""
    if _task_ids:
        return _task_ids.popleft()
    message = readMsg()
    while not isinstance(message, list):
        _commands.append(message)
        message = readMsg()
    return message


def readCommand():
    """Returns the next message that is not a list of tasks."""
    if _commands:
        return _commands.popleft()
    message = readMsg()
    while isinstance(message, list):
        _task_ids.append(message)
        message = readMsg()
    return message


def readTuple():
    """Returns the next input of a bolt."""
    command = readCommand()
    return Tuple(command["id"], command["comp"], command["stream"], command["task"], command["tuple"])


def sendMsgToParent(message):
    """Sends a message."""
    sys.stdout.buffer.write(json.dumps(message).encode("utf-8") + b"\nend\n")
    sys.stdout.buffer.flush()


def sync():
    """Says that a command is done, or answers a heartbeat."""
    sendMsgToParent({"command": "sync"})


def sendpid(heartbeatdir):
    """Says which process this is."""
    pid = os.getpid()
    open(os.path.join(heartbeatdir, str(pid)), "w").close()
    sendMsgToParent({"pid": pid})


def initComponent():
    """Shakes hands; returns configuration and context."""
    setup = readMsg()
    sendpid(setup["pidDir"])
    return [setup["conf"], setup["context"]]


# What a component says.


def emit(*args, **kwargs):
    """Emits a tuple, as `emitBolt` or `emitSpout` do; returns the tasks that get it."""
    return (emitSpout if _is_spout else emitBolt)(*args, **kwargs)


def emitDirect(task, *args, **kwargs):
    """Emits a tuple to one task."""
    kwargs["directTask"] = task
    emit(*args, **kwargs)


def emitBolt(tup, stream=None, anchors=(), directTask=None, need_task_ids=True):
    """Emits a tuple of a bolt, anchored to `anchors`; one of a `BasicBolt` is anchored to its input."""
    if _anchor is not None:
        anchors = [_anchor]
    message = {"command": "emit", "anchors": [anchor.id for anchor in anchors], "tuple": list(tup)}
    return _emitted(message, stream, directTask, need_task_ids)


def emitSpout(tup, stream=None, id=None, directTask=None, need_task_ids=True):
    """Emits a tuple of a spout, tracked if it has an id."""
    message = {"command": "emit", "tuple": list(tup)}
    if id is not None:
        message["id"] = id
    return _emitted(message, stream, directTask, need_task_ids)


def _emitted(message, stream, task, need_task_ids):
    if stream is not None:
        message["stream"] = stream
    if task is not None:
        message["task"] = task
    if not need_task_ids:
        message["need_task_ids"] = False
    sendMsgToParent(message)
    return readTaskIds() if task is None and need_task_ids else None


def ack(tup):
    """Acks an input."""
    sendMsgToParent({"command": "ack", "id": tup.id})


def fail(tup):
    """Fails an input."""
    sendMsgToParent({"command": "fail", "id": tup.id})


def reportError(msg):
    """Reports an error, which the topology's status shows."""
    sendMsgToParent({"command": "error", "msg": msg})


def rpcMetrics(name, params):
    """Sends a metric."""
    sendMsgToParent({"command": "metrics", "name": name, "params": params})


def log(msg, level=INFO):
    """Logs a message."""
    sendMsgToParent({"command": "log", "msg": msg, "level": level})


def logTrace(msg):
    log(msg, TRACE)


def logDebug(msg):
    log(msg, DEBUG)


def logInfo(msg):
    log(msg, INFO)


def logWarn(msg):
    log(msg, WARN)


def logError(msg):
    log(msg, ERROR)


# Components.


class _Component:
    def initialize(self, conf, context):
        """Called first."""

    def run(self):
        """Shakes hands, and works until the end of the input."""
        global _is_spout
        _is_spout = isinstance(self, Spout)
        conf, context = initComponent()
        try:
            self.initialize(conf, context)
            while True:
                self._step()
        except Exception:
            # The process ends, and another is started in its place.
            reportError(traceback.format_exc())
            raise


class Bolt(_Component):
    """A bolt, which anchors what it emits, and acks its inputs, by itself."""

    def process(self, tup):
        """Called with each input."""

    def _step(self):
        tup = readTuple()
        if tup.is_heartbeat_tuple():
            sync()
        else:
            self._take(tup)

    def _take(self, tup):
        self.process(tup)


class BasicBolt(Bolt):
    """A bolt whose tuples are anchored to its input, which is acked after `process`, and failed where that raises."""

    def _take(self, tup):
        global _anchor
        _anchor = tup
        try:
            self.process(tup)
        except Exception:
            reportError(traceback.format_exc())
            fail(tup)
        else:
            ack(tup)
        finally:
            _anchor = None


class Spout(_Component):
    """A spout, which is asked for tuples, and told of what became of them."""

    def nextTuple(self):
        """Emits what there is to emit."""

    def ack(self, id):
        """Called when a message is done."""

    def fail(self, id):
        """Called when a message has failed."""

    def activate(self):
        """Called before it is asked for tuples."""

    def deactivate(self):
        """Called when it is not asked any more."""

    def _step(self):
        command = readCommand()
        what = command["command"]
        if what == "next":
            self.nextTuple()
        elif what in ("ack", "fail"):
            getattr(self, what)(command["id"])
        elif what in ("activate", "deactivate"):
            getattr(self, what)()
        sync()
