"""A spout host: a process that runs Python spouts.

The coordinator starts it: `python -m storm_on_spark.runtime.spouts.spout_host FD PARENT PAGE`. Every executor is a
thread that calls `next_tuple` of its tasks in turn, as a Storm executor does. When the driver goes, the host ends with
it.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import signal
import sys
import threading
import time
import weakref
from collections import deque
from collections.abc import Iterator
from multiprocessing.connection import Connection
from typing import Final, NoReturn, Protocol

from storm_on_spark.api.errors import CheckpointError, ComponentError, StormError
from storm_on_spark.api.text.traces import own_trace, summary, whole_trace
from storm_on_spark.runtime.processes.diagnostics import breakpoints, log_levels, prints
from storm_on_spark.runtime.processes.ending.signals import ignore_interrupts
from storm_on_spark.runtime.processes.parent import die_with
from storm_on_spark.runtime.processes.wake import Wake
from storm_on_spark.runtime.run.run import Run
from storm_on_spark.runtime.run.settings import ReportSettings
from storm_on_spark.runtime.run.spec import load_spec
from storm_on_spark.runtime.run.worker_process import release
from storm_on_spark.runtime.spouts import messages
from storm_on_spark.runtime.spouts.live_line import LineChanged, LiveLine
from storm_on_spark.runtime.spouts.native.task import NativeSpoutTask
from storm_on_spark.runtime.spouts.opening import open_loop
from storm_on_spark.runtime.spouts.pacing import RestRules
from storm_on_spark.runtime.spouts.task_loop import TaskLoop
from storm_on_spark.runtime.spouts.watching.blocked import watch
from storm_on_spark.runtime.spouts.watching.holding import HostBreath


class _Open(Protocol):
    def fileno(self) -> int: ...


_SHORT_FROM_SECS: Final = 0.05
"""From which wait on a spout has been idle for so long that turns are short."""
_SHORT_SECS: Final = 1.0
"""How long an executor then does nothing but call its spouts, until it looks after everything else again."""

_kept: weakref.WeakSet[_Open] = weakref.WeakSet()


class _Waker:
    """What a spout gets to wake its executor; see `Waker` of the API."""

    def __init__(self, news: Wake) -> None:
        self._news = news

    def __call__(self) -> None:
        self._news.set()

    def watch(self, descriptor: int) -> None:
        self._news.watch_others(descriptor)

    def unwatch(self, descriptor: int) -> None:
        self._news.unwatch_others(descriptor)


class Executor(threading.Thread):
    """A thread with one or more tasks of one spout.

    Args:
        host: the process.
        tasks: the tasks.
        active: whether they start out active.
    """

    def __init__(self, host: SpoutHost, tasks: tuple[int, ...], active: bool) -> None:
        super().__init__(name=f"spout-{'-'.join(map(str, tasks))}", daemon=True)
        self._host = host
        self.tasks = tasks
        self._active = active
        self._inbox: deque[messages.Message] = deque()
        self._news = Wake()
        #: To the live process, if there is one.
        self._line: LiveLine | None = None
        self._stopping = False

    def tell(self, message: messages.Message) -> None:
        """Hands a message to the thread."""
        self._inbox.append(message)
        self._news.set()

    def stop(self) -> None:
        """Lets the thread end after the current call."""
        self._stopping = True
        self._news.set()

    @property
    def is_live(self) -> bool:
        """Whether there is a line to a live process."""
        return self._line is not None

    def run(self) -> None:
        """Opens the tasks, and calls them in turn until the thread is stopped."""
        task = self.tasks[0]
        loops: dict[int, TaskLoop] = {}
        try:
            for task in self.tasks:
                prints.speaks(self._host.component_of(task), task)
                loops[task] = self._host.open(task)
                loops[task].task.spout.woken_by(_Waker(self._news))
                if self._active:
                    loops[task].task.activate()
            rest, several = RestRules(), len(loops) > 1
            #: Whether something has come, and until when turns are short if nothing does.
            news, short_until = True, 0.0
            while not self._stopping:
                emitted = False
                if not news and time.monotonic() < short_until:
                    emitted = self._call_once(loops)
                    if not emitted and not any(loop.has_to_tell() for loop in loops.values()):
                        news = self._news.wait(rest.after(emitted=False, news=False, held=False))
                        continue
                for message in self._messages():
                    for task in [message.task] if isinstance(message, messages.ForOneTask) else self.tasks:
                        if several:
                            prints.speaks(loops[task].task.component, task)
                        loops[task].handle(message)
                for task, loop in loops.items():
                    if several:
                        prints.speaks(loop.task.component, task)
                    emitted |= loop.burst(self._active)
                    loop.cut_if_due(self._active)
                held = not emitted and all(loop.held(self._active) for loop in loops.values())
                secs = rest.after(emitted=emitted, news=bool(self._inbox), held=held)
                idle = secs >= _SHORT_FROM_SECS and self._active and all(loop.is_idle() for loop in loops.values())
                short_until = time.monotonic() + _SHORT_SECS if idle else 0.0
                news = not secs or self._news.wait(
                    secs, others=self._active and not any(loop.blocked() for loop in loops.values())
                )
            for loop in loops.values():
                loop.close()
        except (StormError, OSError) as error:
            self._fail(task, error)
        except BaseException as error:  # asyncio's CancelledError, for one: the thread must not end without a word
            self._fail(task, error)
        finally:
            if self._line is not None:
                self._leave(self._line)
            self._news.close()

    def _call_once(self, loops: dict[int, TaskLoop]) -> bool:
        """Calls each of the idle tasks once; returns whether any emitted."""
        emitted = False
        for task, loop in loops.items():
            if len(loops) > 1:
                prints.speaks(loop.task.component, task)
            emitted |= loop.call_once()
        return emitted

    def _messages(self) -> Iterator[messages.Message | LineChanged]:
        """Yields the messages received from the coordinator and the live process."""
        self._news.clear()
        while self._inbox:
            message = self._inbox.popleft()
            if isinstance(message, messages.GoLive):
                self._go_live(message)
                continue
            if isinstance(message, messages.SetActive):
                if message.active == self._active:
                    continue
                self._active = message.active
            yield message
        if self._line is not None:
            line = self._line
            yield from line.received()
            if line.over:
                self._leave(line)

    def _go_live(self, message: messages.GoLive) -> None:
        if self._line is not None and self._line.pid == message.pid:
            return
        with contextlib.suppress(OSError):  # it is gone again
            line = LiveLine(message.path, message.pid, keep_from_children)
            if self._line is not None:
                self._leave(self._line)
            self._news.watch(line.fileno())
            self._line = line

    def _leave(self, line: LiveLine) -> None:
        self._news.watch(None)
        line.close()
        self._line = None

    def _fail(self, task: int, error: BaseException) -> None:
        self._host.send(failed(task, self._host.component_of(task), error))


def failed(task: int, component: str, error: BaseException) -> messages.Failed:
    """Returns the message that a task has failed for good."""
    message = str(error)
    if isinstance(error, OSError):
        message = f"component {component!r} (task {task}): the spout log can't be written: {error}"
    elif not isinstance(error, StormError):
        message = f"component {component!r} (task {task}) failed: {summary(error)}"
    if isinstance(error, ComponentError):
        traces = error.cause_text, error.own_trace
    else:
        traces = whole_trace(error), own_trace(error)
    return messages.Failed(task, component, message, *traces, refused=isinstance(error, CheckpointError))


class SpoutHost:
    """The process: reads messages on its main thread and hands them to the executors.

    Args:
        connection: to the coordinator.
        breath: what says that this process runs.
    """

    def __init__(self, connection: messages.Channel, breath: HostBreath) -> None:
        self._connection = connection
        self._breath = breath
        self._lock = threading.Lock()
        setup = self._receive()
        if not isinstance(setup, messages.Setup):
            raise StormError(f"the first message to a spout host must be Setup, not {type(setup).__name__}")
        self._setup = setup
        self._run = Run(load_spec(setup.spec))
        self._clock_ms = setup.clock_ms
        self._executors = [Executor(self, tasks, setup.active) for tasks in setup.tasks]
        self._by_task = {task: executor for executor in self._executors for task in executor.tasks}

    def run(self) -> None:
        """Runs until the coordinator sends `Stop` or closes the connection."""
        self._breath.begin(self._run.wiring.settings(ReportSettings).stall_secs)
        for executor in self._executors:
            executor.start()
        watch(self._executors, self.send)
        try:
            while True:
                message = self._receive()
                if isinstance(message, messages.Stop):
                    break
                if isinstance(message, messages.SetClock):
                    self._clock_ms = message.clock_ms
                else:
                    self._tell(message)
        except (EOFError, OSError):
            _end()  # the driver is gone; what is in the log is all that counts
        for executor in self._executors:
            executor.stop()
        deadline = time.monotonic() + 5
        for executor in self._executors:
            executor.join(max(0.0, deadline - time.monotonic()))
        release(self._run.spec.start_id)

    def _tell(self, message: messages.Message) -> None:
        if isinstance(message, messages.ForOneTask):
            self._by_task[message.task].tell(message)
        else:
            for executor in self._executors:
                executor.tell(message)

    def open(self, task: int) -> TaskLoop:
        """Opens a task's spout and log, on its executor's thread."""
        self._breath.note_executor(self.component_of(task), self._by_task[task].tasks)
        loop = open_loop(self._run, self._setup, task, self.clock, self.send)
        reached = loop.task.reached() if isinstance(loop.task, NativeSpoutTask) else None
        self.send(messages.Ready(task, loop.task.log.written, reached))
        return loop

    def clock(self) -> int:
        """Returns the topology's time in ms."""
        if self._setup.clock_at is None:
            return self._clock_ms
        return self._setup.clock_ms + int(1000 * (time.monotonic() - self._setup.clock_at))

    def component_of(self, task: int) -> str:
        """Returns the component that owns `task`."""
        return self._run.wiring.component_of[task]

    def send(self, message: messages.Message) -> None:
        """Sends a message to the coordinator; any thread may."""
        with self._lock:
            try:
                self._connection.send_bytes(pickle.dumps(message, 5))
            except OSError:
                _end()

    def _receive(self) -> messages.Message:
        message: messages.Message = pickle.loads(self._connection.recv_bytes())
        return message


def _end() -> NoReturn:
    """Ends this process immediately, and the processes that its spouts started."""
    if os.getpgid(0) == os.getpid():
        os.killpg(0, signal.SIGKILL)
    os._exit(0)


def keep_from_children(line: _Open) -> None:
    """Keeps a connection out of child processes that a spout starts, so that it ends with this process.

    Args:
        line: owns the connection's descriptor. After it is closed, the number may belong to another file.
    """
    os.set_inheritable(line.fileno(), False)
    _kept.add(line)


def _leave_kept() -> None:
    nothing = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
    for line in list(_kept):
        with contextlib.suppress(OSError):  # it is closed
            # The number stays taken: the child's copy of `line` may close it once more.
            os.dup2(nothing, line.fileno(), inheritable=False)
    os.close(nothing)


os.register_at_fork(after_in_child=_leave_kept)


def main() -> None:
    """Runs a spout host on the inherited socket that the first argument names, for the process that the second does.

    The third argument is the descriptor of the file for `holding`.
    """
    die_with(int(sys.argv[2]))
    ignore_interrupts()
    # A spout's prints must not mix with the stdout of the program that runs the topology.
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    prints.label_all()
    breakpoints.pass_over()
    log_levels.follow()
    # In its own group, which the driver ends as a whole when this process has ended.
    with contextlib.suppress(PermissionError):  # it leads a session, and so a group
        os.setpgid(0, 0)
    connection = Connection(int(sys.argv[1]))
    keep_from_children(connection)
    breath = HostBreath(int(sys.argv[3]))
    try:
        host = SpoutHost(connection, breath)
    except Exception as error:
        reason = str(error) if isinstance(error, StormError) else f"a spout host can't start: {summary(error)}"
        message = messages.Failed(-1, "", reason, whole_trace(error), own_trace(error))
        connection.send_bytes(pickle.dumps(message, 5))
        return
    host.run()


if __name__ == "__main__":
    main()
