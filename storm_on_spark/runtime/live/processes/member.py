"""A further live process: it executes its share of the tasks under the direction of the first one.

`python -m storm_on_spark.runtime.live.processes.member START_ID FD PAGE PARENT`. Commands arrive on an inherited socket
pair, so no other process can connect. `PAGE` is the descriptor of a file for `busy`. It ends with its parent process.
"""

from __future__ import annotations

import os
import pickle
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from multiprocessing.connection import Connection

from storm_on_spark.api.errors import StormError
from storm_on_spark.runtime.bolts.bolt_task import UnsavedError
from storm_on_spark.runtime.bolts.operator import Waiting
from storm_on_spark.runtime.bolts.stage import bytes_of
from storm_on_spark.runtime.bolts.worker import Worker, worker_for
from storm_on_spark.runtime.codec import chunk
from storm_on_spark.runtime.live import messages
from storm_on_spark.runtime.live.execution.copied import FailedCopyError
from storm_on_spark.runtime.live.execution.local_tasks import LocalTasks
from storm_on_spark.runtime.live.processes.live_processes import GivenUpError
from storm_on_spark.runtime.processes.diagnostics import breakpoints, log_levels
from storm_on_spark.runtime.processes.diagnostics.busy import SIZE, BusyPage, breathed_at, holder
from storm_on_spark.runtime.processes.ending.signals import held_back, ignore_interrupts
from storm_on_spark.runtime.processes.is_stopped import is_stopped
from storm_on_spark.runtime.processes.parent import die_with
from storm_on_spark.runtime.run.worker_process import release

_STOPPED_SECS = 10.0
"""A process that is stopped for this long is given up; one whose interpreter is held, after a tuple's limit."""
_LOOK_SECS = 1.0
"""How often a process is checked for being stopped, while its answer is due."""
_MODULE = "storm_on_spark.runtime.live.processes.member"


class MemberTasks:
    """Answers the requests of the first process.

    Args:
        worker_of: returns this process's instances for a start id and a specification.
    """

    def __init__(self, worker_of: Callable[[str, bytes], Worker] = worker_for) -> None:
        self._worker_of = worker_of
        self._tasks: LocalTasks | None = None

    def answer(self, question: messages.Question) -> messages.Answer:
        """Executes a request and returns the answer."""
        try:
            if isinstance(question, messages.Take):
                worker = self._worker_of(question.start_id, question.spec)
                worker.tasks.clear()
                if self._tasks is not None:
                    self._tasks.close()
                self._tasks = LocalTasks(worker, question.values)
                return messages.Done()
            assert self._tasks is not None, "the first question is Take"
            if isinstance(question, messages.Execute):
                return _executed(self._tasks, question)
            if isinstance(question, messages.Save):
                reports = self._tasks.save(question.number, later=question.later)
                changes = self._tasks.take_changes() if question.take else {}
                return messages.Saved(reports, changes, self._tasks.owes, self._tasks.is_small)
            if isinstance(question, messages.GiveLate):
                late = self._tasks.late_changes(wait=question.wait)
                return messages.Saved([], late or {}, owes=late is None)
            if isinstance(question, messages.Give):
                return messages.Given(self._tasks.give(question.tasks))
            if isinstance(question, messages.Receive):
                self._tasks.receive(question.values)
                return messages.Done()
            assert isinstance(question, messages.GoBack), question
            self._tasks.go_back()
            return messages.Done()
        except StormError as error:
            return messages.Trouble(str(error), isinstance(error, FailedCopyError))


def _executed(tasks: LocalTasks, question: messages.Execute) -> messages.Answer:
    started = time.perf_counter()
    stage = tasks.worker.spec.plan.stages[question.stage]
    by_task: Waiting = {task: [chunk.with_header(body) for body in bodies] for task, bodies in question.bodies.items()}
    try:
        bodies = [bytes_of(body) for found in tasks.executions(stage, by_task, question.info) for _, body in found]
        return messages.Emitted(bodies, time.perf_counter() - started)
    except UnsavedError as error:
        return messages.Raised(f"{error.__cause__!r:.500}")


class MemberProcess:
    """The first process's handle of a further one, which is ready once it has said so.

    Args:
        start_id: the run.
    """

    def __init__(self, start_id: str) -> None:
        ours, theirs = socket.socketpair()
        #: Seconds that one tuple may take.
        self.stall_secs: float = _STOPPED_SECS
        self._page = tempfile.TemporaryFile()  # noqa: SIM115 # as long as the process
        with theirs:
            # The thread that starts it lives as long as the process.
            shared = [theirs.fileno(), self._page.fileno()]
            words = [sys.executable, "-m", _MODULE, start_id, *map(str, shared), str(os.getpid())]
            with held_back(signal.SIGINT):
                self._process = subprocess.Popen(words, pass_fds=shared, stdin=subprocess.DEVNULL)
        self._connection = Connection(ours.detach())
        self._ready = False

    def ready(self, secs: float = 0.0) -> bool:
        """Waits up to `secs`; returns whether the process has reported that it is ready."""
        try:
            if not self._ready and self._connection.poll(secs):
                self._connection.recv_bytes()
                self._ready = True
        except (EOFError, OSError):
            return False
        return self._ready

    @property
    def over(self) -> bool:
        """Whether it has ended."""
        return self._process.poll() is not None

    def ask(self, question: messages.Question) -> None:
        """Sends a request; see `Member`."""
        try:
            self._connection.send_bytes(pickle.dumps(question, 5))
        except OSError as error:
            raise self._gone() from error

    def answer(self) -> messages.Answer:
        """Waits for the answer; see `Member`."""
        try:
            self._await_answer()
            found: messages.Answer = pickle.loads(self._connection.recv_bytes())
        except (EOFError, OSError) as error:
            raise self._gone() from error
        return found

    def _await_answer(self) -> None:
        stopped_at: float | None = None
        while not self._connection.poll(_LOOK_SECS):
            if not is_stopped(self._process.pid):
                stopped_at = None
                self._check_breath()
            elif stopped_at is None:
                stopped_at = time.monotonic()
            elif time.monotonic() - stopped_at > _STOPPED_SECS:
                raise GivenUpError(f"the live process {self._process.pid} has been stopped for {_STOPPED_SECS:.0f} s")

    def _check_breath(self) -> None:
        page = os.pread(self._page.fileno(), SIZE, 0)
        silent = time.monotonic() - breathed_at(page)
        if silent > max(_STOPPED_SECS, self.stall_secs):
            raise GivenUpError(
                f"{holder(page)} has held the Python interpreter of the live process {self._process.pid} for "
                f"{silent:.0f} s (topology.task.stall.secs = {self.stall_secs:g})"
            )

    def _gone(self) -> GivenUpError:
        return GivenUpError(f"the live process {self._process.pid} is gone")

    def end(self) -> None:
        """Ends the process."""
        self._connection.close()
        self._process.kill()
        self._process.wait()
        self._page.close()


def main() -> None:
    """Answers requests until the first process closes the socket."""
    ignore_interrupts()
    start_id, descriptor, page, parent = sys.argv[1:]
    die_with(int(parent))
    breakpoints.pass_over()
    log_levels.follow()
    from storm_on_spark.runtime.processes.diagnostics.prints import marked_output

    for inherited in (int(descriptor), int(page)):
        os.set_inheritable(inherited, False)
    busy = BusyPage(int(page))
    busy.note_tasks()
    busy.breathe()
    with marked_output(), Connection(int(descriptor)) as connection:
        holder = MemberTasks()
        connection.send_bytes(b"ready")
        try:
            while (question := _next(connection)) is not None:
                connection.send_bytes(pickle.dumps(holder.answer(question), 5))
        finally:
            release(start_id)


def _next(connection: Connection) -> messages.Question | None:
    try:
        question: messages.Question = pickle.loads(connection.recv_bytes())
    except (EOFError, ConnectionError):
        return None  # the first process is gone
    return question


if __name__ == "__main__":
    main()
