"""A spout host: the process in which arbitrary Python spouts live.

Started by the coordinator as `python -m storm_on_spark.runtime.spout_host FD`. Every executor is a thread that calls
`next_tuple` of its tasks in turn, as a Storm executor does. When the driver goes, the socket closes and so the host
ends.
"""

from __future__ import annotations

import copy
import os
import pickle
import signal
import sys
import threading
import time
import traceback
from collections import deque
from collections.abc import Callable, Mapping
from multiprocessing.connection import Connection
from pathlib import Path

from storm_on_spark.api.errors import ComponentError, StormError
from storm_on_spark.runtime.batch_size import FIRST_TUPLES
from storm_on_spark.runtime.batch_spout_task import open_spout_task
from storm_on_spark.runtime.latency import LatencyHistogram
from storm_on_spark.runtime.messages import (
    Consumed,
    Failed,
    Idle,
    Message,
    Progress,
    Ready,
    SetActive,
    SetClock,
    Settle,
    Setup,
    Stop,
    Want,
)
from storm_on_spark.runtime.spec import load_spec
from storm_on_spark.runtime.spout_log import iter_cuts
from storm_on_spark.runtime.spout_task import SpoutTask
from storm_on_spark.runtime.worker import Worker

_BURST = 64
"""Calls of `next_tuple` between two looks at the inbox."""
_BURST_SECONDS = 0.002
"""The same, in seconds."""
_CUT_BYTES = 16 << 20
"""A cut is due when so much waits for one, by the size of the tuples in the last cut: few tuples may be large."""
_GUESSED_TUPLE_BYTES = 64 << 10
"""The size of a tuple as long as there was no cut."""
_CUT_SECONDS = 0.05
"""A cut that nobody asked for is due this long after there was something to cut."""
_GATHER_SECONDS = 0.02
"""How long a cut that is wanted waits for a spout that goes on emitting: acks that let it emit again come at the same
time as the wish, and the few tuples of its first moment are not worth a micro-batch."""
_CUT_SHARE = 10
"""Unasked cuts take at most one part in this many of the time: big snapshots are taken less often."""
_IDLE_SECONDS = ((3, 0.001), (4, 0.002), (250, 0.004), (350, 0.01))
_MOST_IDLE_SECONDS = 0.02
"""Waits after calls of `next_tuple` that emitted nothing, as in Storm's progressive wait strategy: up to which call in
a row, how long. The last two are for a spout that has had nothing for a second, and for two: 100 calls a second take
0.9 % of a core, 250 took 2 %."""
_HELD_SECONDS = 0.05
"""The same while no spout may be called and nothing waits to be cut: only a message changes that, and it wakes."""
_REPORT_SECONDS = 0.1


class _TaskLoop:
    """One task on its executor's thread, and what it owes the coordinator.

    Args:
        task: the task, open.
        conf: its configuration.
        send: sends a message to the coordinator.
        consumed: position in the log up to which batches are planned.
    """

    def __init__(
        self, task: SpoutTask, conf: Mapping[str, object], send: Callable[[Message], None], consumed: int
    ) -> None:
        self.task = task
        self._send = send
        limit = conf.get("topology.max.spout.pending")
        self._max_pending = int(limit) if limit is not None else None  # type: ignore[call-overload]
        self._max_bytes: int = int(conf["topology.spout.log.max.bytes"])  # type: ignore[call-overload]
        #: How many tuples of the task a micro-batch may hold.
        self._share: int = min(FIRST_TUPLES, int(conf["topology.batch.max.tuples"]))  # type: ignore[call-overload]
        #: Cuts that Spark has not committed: (end position, tuples).
        self._uncommitted = deque((cut.end, cut.tuples) for cut in iter_cuts(task.log.folder, consumed, None))
        self._waiting_tuples = sum(tuples for _, tuples in self._uncommitted)
        #: What a tuple takes in the log, known once tuples were pickled; and so how many a cut may hold.
        self._tuple_bytes = float(_GUESSED_TUPLE_BYTES)
        self._cut_tuples = self._most_tuples()
        self._consumed = consumed
        #: Whether a micro-batch could start with the next cut; and whether the coordinator waits for an answer.
        self._wanted = self._asked = False
        #: Whether the last burst ended though the spout could have gone on; and since when a cut has been wanted.
        self._going_on = False
        self._wanted_at = 0.0
        #: Since when there has been something to cut.
        self._dirty_at: float | None = None
        self._last_cut = time.monotonic()
        self._cut_cost = 0.0
        self._last_report = 0.0
        self._reported = copy.copy(task.stats)
        self._saved_batch = task.settled_batch

    def blocked(self) -> bool:
        """Whether back pressure or `topology.max.spout.pending` forbids to call `next_tuple`."""
        return self._room() <= 0

    def _room(self) -> float:
        """Returns how many tuples may come before `next_tuple` is forbidden."""
        task = self.task
        waiting = self._waiting_tuples + task.fresh
        room: float = 2 * self._share - waiting
        if self._max_pending is not None:
            room = min(room, self._max_pending - len(task.pending))
        if waiting > 0:
            # Without a tuple that waits no batch is coming that would make room.
            free = self._max_bytes - (task.log.end - self._consumed)
            room = min(room, free / self._tuple_bytes - task.fresh)
        return room

    def _enough(self) -> int:
        """Returns how many tuples make a cut: no more than the next micro-batch may hold."""
        return min(self._cut_tuples, self._share)

    def _most_tuples(self) -> int:
        """Returns how many tuples a cut may hold, by their size."""
        return max(1, min(self.task.most_cut_tuples, int(_CUT_BYTES / self._tuple_bytes)))

    def held(self, active: bool) -> bool:
        """Whether nothing can happen until a message comes."""
        return not self.task.dirty and (not active or self.blocked())

    def burst(self, active: bool) -> bool:
        """Calls `next_tuple` a few times; returns whether anything was emitted."""
        emitted = self._going_on = False
        if not active:
            return False
        task = self.task
        now = task.now()
        until = now + _BURST_SECONDS
        full = self._enough()
        enough: float = task.fresh
        for _ in range(_BURST):
            if task.fresh >= enough:
                # Asked again only when so many have come: acks, which make room, come between two bursts.
                room = self._room()
                if room <= 0:
                    break
                enough = task.fresh + (room if task.fresh else 1)
            if not task.next_tuple(now):
                break
            emitted = True
            now = task.now()
            if task.fresh >= full or now > until:
                self._going_on = True
                break
        else:
            self._going_on = True
        return emitted

    def handle(self, message: Message) -> None:
        """Deals with a message to the task."""
        if isinstance(message, Settle):
            self.task.settle(message.batch, message.roots, message.codes)
        elif isinstance(message, Consumed):
            self._consumed = message.position
            while self._uncommitted and self._uncommitted[0][0] <= message.position:
                self._waiting_tuples -= self._uncommitted.popleft()[1]
            self.task.trim(message.position)
        elif isinstance(message, Want):
            self._share = message.share or self._share
            self._wanted = self._asked = True
            self._wanted_at = time.monotonic()
        elif isinstance(message, SetActive):
            (self.task.activate if message.active else self.task.deactivate)()

    def cut_if_due(self, active: bool) -> None:
        """Cuts when somebody waits for it or enough has come together, and tells the coordinator."""
        task, now = self.task, time.monotonic()
        if task.dirty:
            if self._dirty_at is None:
                self._dirty_at = now
            rested = now - self._last_cut >= _CUT_SHARE * self._cut_cost
            due = now - self._dirty_at >= _CUT_SECONDS and rested
            gathering = self._wanted and self._going_on and now - self._wanted_at < _GATHER_SECONDS
            if task.fresh >= self._enough() or ((due or (self._wanted and task.fresh)) and not gathering):
                self._cut(now)
        if self._asked and not task.fresh:
            self._asked = False
            self._send(Idle(task.task, active))
        if now - self._last_report > _REPORT_SECONDS:
            self._last_report = now
            task.stats.pending = len(task.pending)
            task.stats.exhausted = task.exhausted()
            if task.stats != self._reported or task.errors:
                self._progress(cut=False, tuples=0)

    def _cut(self, now: float) -> None:
        task, tuples = self.task, self.task.fresh
        cut = task.cut()
        if tuples:
            self._tuple_bytes = max(1.0, task.cut_bytes / tuples)
            self._cut_tuples = self._most_tuples()
        self._saved_batch = task.settled_batch
        self._uncommitted.append((cut.end, tuples))
        self._waiting_tuples += tuples
        self._dirty_at = None
        self._last_cut = time.monotonic()
        self._cut_cost = self._last_cut - now
        if tuples:
            self._wanted = self._asked = False
            if cut.position == task.log.base:
                # The segment before could not go while it was the last one.
                task.trim(self._consumed)
        self._progress(cut=True, tuples=tuples)

    def _progress(self, *, cut: bool, tuples: int) -> None:
        task = self.task
        task.stats.pending = len(task.pending)
        task.stats.exhausted = task.exhausted()
        self._reported = copy.copy(task.stats)
        latencies, task.latencies = task.latencies, LatencyHistogram()
        errors, task.errors[:] = tuple(task.errors), []
        self._send(
            Progress(
                task.task,
                task.log.end,
                cut,
                tuples,
                self._saved_batch,
                self._reported,
                latencies,
                errors,
            )
        )


def _idle_seconds(calls: int) -> float:
    """Returns how long to wait after so many calls of `next_tuple` in a row that emitted nothing."""
    return next((seconds for most, seconds in _IDLE_SECONDS if calls <= most), _MOST_IDLE_SECONDS)


class _Executor(threading.Thread):
    """A thread with one or more tasks of one spout."""

    def __init__(self, host: SpoutHost, tasks: tuple[int, ...], active: bool) -> None:
        super().__init__(name=f"spout-{'-'.join(map(str, tasks))}", daemon=True)
        self._host = host
        self.tasks = tasks
        self._active = active
        self._inbox: deque[Message] = deque()
        self._news = threading.Event()
        self._stopping = False

    def tell(self, message: Message) -> None:
        """Hands a message to the thread."""
        self._inbox.append(message)
        self._news.set()

    def stop(self) -> None:
        """Lets the thread end after the current call."""
        self._stopping = True
        self._news.set()

    def run(self) -> None:
        task = self.tasks[0]
        loops: dict[int, _TaskLoop] = {}
        try:
            for task in self.tasks:
                loops[task] = self._host.open(task)
                if self._active:
                    loops[task].task.activate()
            idle = 0
            while not self._stopping:
                self._news.clear()
                while self._inbox:
                    message = self._inbox.popleft()
                    if isinstance(message, SetActive):
                        if message.active == self._active:
                            continue
                        self._active = message.active
                    for task in [message.task] if isinstance(message, (Settle, Consumed)) else self.tasks:
                        loops[task].handle(message)
                emitted = False
                for task, loop in loops.items():  # noqa: B007 # `task` tells the handler below where it happened
                    emitted |= loop.burst(self._active)
                    loop.cut_if_due(self._active)
                if emitted:
                    idle = 0
                elif not self._inbox:
                    idle += 1
                    held = all(loop.held(self._active) for loop in loops.values())
                    self._news.wait(_HELD_SECONDS if held else _idle_seconds(idle))
            for loop in loops.values():
                if loop.task.dirty:
                    loop.task.cut()
                loop.task.close()
        except (StormError, OSError) as error:
            self._fail(task, error, error.cause_text if isinstance(error, ComponentError) else traceback.format_exc())
        except BaseException as error:  # asyncio's CancelledError, for one: the thread must not end without a word
            self._fail(task, error, traceback.format_exc())

    def _fail(self, task: int, error: BaseException, trace: str) -> None:
        component = self._host.component_of(task)
        message = str(error)
        if isinstance(error, OSError):
            message = f"component {component!r} (task {task}): the spout log can't be written: {error}"
        elif not isinstance(error, StormError):
            message = f"component {component!r} (task {task}) failed: {type(error).__name__}: {error}"
        self._host.send(Failed(task, component, message, trace))


class SpoutHost:
    """The process: reads messages on its main thread and hands them to the executors."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._lock = threading.Lock()
        setup = self._receive()
        assert isinstance(setup, Setup)
        self._setup = setup
        self._worker = Worker(load_spec(setup.spec))
        self._clock_ms = setup.clock_ms
        self._executors = [_Executor(self, tasks, setup.active) for tasks in setup.tasks]

    def run(self) -> None:
        """Runs until the coordinator says stop or goes away."""
        by_task = {task: executor for executor in self._executors for task in executor.tasks}
        for executor in self._executors:
            executor.start()
        try:
            while True:
                message = self._receive()
                if isinstance(message, Stop):
                    break
                if isinstance(message, SetClock):
                    self._clock_ms = message.clock_ms
                elif isinstance(message, (Settle, Consumed)):
                    by_task[message.task].tell(message)
                else:
                    for executor in self._executors:
                        executor.tell(message)
        except (EOFError, OSError):
            # The driver is gone; what is in the log is all that counts.
            os._exit(0)
        for executor in self._executors:
            executor.stop()
        deadline = time.monotonic() + 5
        for executor in self._executors:
            executor.join(max(0.0, deadline - time.monotonic()))

    def open(self, task: int) -> _TaskLoop:
        """Opens a task's spout and log."""
        worker, setup = self._worker, self._setup
        folder = Path(setup.folder) / str(task)
        spout = open_spout_task(worker.spec, worker.wiring, worker.context(task), folder, self.clock)
        loop = _TaskLoop(spout, worker.wiring.conf(spout.component), self.send, setup.consumed[task])
        self.send(Ready(task, spout.log.end))
        return loop

    def clock(self) -> int:
        """Returns the topology's time in ms."""
        if self._setup.clock_at is None:
            return self._clock_ms
        return self._setup.clock_ms + int(1000 * (time.monotonic() - self._setup.clock_at))

    def component_of(self, task: int) -> str:
        """Returns the component that owns `task`."""
        return self._worker.wiring.component_of[task]

    def send(self, message: Message) -> None:
        """Sends a message to the coordinator; any thread may."""
        with self._lock:
            try:
                self._connection.send_bytes(pickle.dumps(message, 5))
            except OSError:
                os._exit(0)

    def _receive(self) -> Message:
        message: Message = pickle.loads(self._connection.recv_bytes())
        return message


def main() -> None:
    """Runs a spout host on the inherited socket that the first argument names."""
    # Ctrl-C goes to the whole process group; the driver decides what becomes of the host.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # What a spout prints is no answer of the program that runs the topology.
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    connection = Connection(int(sys.argv[1]))
    try:
        host = SpoutHost(connection)
    except Exception as error:
        failed = Failed(-1, "", str(error), traceback.format_exc())
        connection.send_bytes(pickle.dumps(failed, 5))
        return
    host.run()


if __name__ == "__main__":
    main()
