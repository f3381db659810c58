"""The live process: one thread that reads what spouts have written, executes it, and sends them the outcomes.

`python -m storm_on_spark.runtime.live.processes.process PROCESSES START_ID [DRIVER [SOCKET]]`. A worker starts it and
hands it the state of the tasks after a micro-batch. For a new topology the driver starts it before Spark runs, and adds
its own id. The process starts the others and directs them. Where executors may be on other machines, the driver always
starts it and adds the descriptor of a socket, at which the others call; what they must know comes on stdin.
It ends when the coordinator has not asked for its status for some time, or when the run's folder, the daemon of the
workers, or the driver that started it is gone.
"""

from __future__ import annotations

import contextlib
import logging
import os
import pickle
import selectors
import signal
import socket
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NoReturn

from storm_on_spark.api.errors import StormError
from storm_on_spark.runtime.batches.live_process import Status
from storm_on_spark.runtime.batches.offsets import Offset
from storm_on_spark.runtime.bolts.worker import worker_for
from storm_on_spark.runtime.live.client import busy_of, pulse_of, socket_of
from storm_on_spark.runtime.live.execution.rounds import Round
from storm_on_spark.runtime.live.execution.tasks import LiveTasks
from storm_on_spark.runtime.live.messages import Adopt, Adopted, Barrier, Fetch, Look, MayAdopt
from storm_on_spark.runtime.live.processes.laps import Lap, Laps
from storm_on_spark.runtime.live.processes.live_processes import GivenUpError
from storm_on_spark.runtime.live.processes.member import MemberProcess
from storm_on_spark.runtime.live.processes.pulse import Pulse
from storm_on_spark.runtime.live.processes.told_rounds import ToldRounds
from storm_on_spark.runtime.live.remote.member import RemoteMember
from storm_on_spark.runtime.live.remote.reception import Reception
from storm_on_spark.runtime.processes.diagnostics import breakpoints, log_levels
from storm_on_spark.runtime.processes.diagnostics.busy import BusyPage
from storm_on_spark.runtime.processes.ending.signals import ignore_interrupts
from storm_on_spark.runtime.processes.frames import Frames
from storm_on_spark.runtime.processes.lines.line import SECRET_BYTES
from storm_on_spark.runtime.processes.parent import hang_up_with
from storm_on_spark.runtime.processes.run_folder import remove_if_abandoned
from storm_on_spark.runtime.run.settings import ReportSettings
from storm_on_spark.runtime.run.worker_process import release
from storm_on_spark.runtime.spouts.messages import Live, Told, Written

log = logging.getLogger(__name__)

_ALONE_SECS = 30.0
"""The process ends if the coordinator has not looked at it for this long."""
_LOOK_SECS = 0.25
"""How often it looks whether it should end, at least."""
_LOOK_BESIDE_SECS = 1.0
"""The same for a single process that a driver started, which tells it to end; when that is gone, the kernel does."""
_DYING_SECS = 2.0
"""How long a killed driver may hold its locks: the kernel tells of its end a moment before they are free."""
_LOCKED_SECS = 0.01
_FETCH_SECS = 0.005
"""How often it looks whether a cut that somebody waits for is whole."""
_PAUSES = (0.0, 1.0, 5.0, 20.0, 60.0)
"""Seconds without tasks after they were given up once, twice and so on in a row."""
_HEALTHY_SECS = 60.0
_MEMBER_SECS = 20.0
"""How long another process may take to start."""


class _Peer(Frames):
    """The connection of a spout host, a worker or the coordinator."""

    def __init__(self, end: socket.socket) -> None:
        super().__init__(end)
        self.end = end


class LiveProcess:
    """Sockets on one side, tasks on the other.

    Args:
        start_id: the run.
        processes: number of live processes, including this one.
        leader: the process that it ends with; the leader of its group for None, which is the daemon of workers.
        door: a listening socket at which the other live processes call, and workers of other machines, and what they
            must know; None where all are on this machine.
    """

    def __init__(
        self,
        start_id: str,
        processes: int = 1,
        leader: int | None = None,
        door: tuple[socket.socket, bytes] | None = None,
    ) -> None:
        self._start_id = start_id
        self._path = socket_of(start_id)
        self._own_path = self._path.with_name(f"{os.getpid():x}")  # six characters at most, on Linux
        self._processes = processes
        self._reception: Reception | None = None
        if door is not None:
            self._reception = Reception(*door, self._path, processes - 1)
        #: The other live processes. They are ready when this one listens, unless they call from other machines.
        self._members: Sequence[MemberProcess | RemoteMember] = ()
        self._selector = selectors.DefaultSelector()
        self._tasks: LiveTasks | None = None
        self._look: Look | None = None
        self._looked_at = time.monotonic()
        #: Connections of the executors of spouts, and which of them runs a task.
        self._hosts: set[_Peer] = set()
        self._host_of: dict[int, _Peer] = {}
        #: Workers that wait for a cut.
        self._fetches: list[tuple[_Peer, Fetch]] = []
        #: Ready when a store has more rounds, which another thread writes.
        self._more, self._says_more = socket.socketpair()
        self._rounds = ToldRounds(self._say_more)
        self._laps = Laps()
        self._given_up = 0
        self._given_up_at = float("-inf")
        #: The daemon of the workers leads their process group, which this process is in.
        self._leader = leader or os.getpgrp()
        self._look_secs = _LOOK_BESIDE_SECS if leader and processes == 1 else _LOOK_SECS
        self._listener = socket.socket(socket.AF_UNIX)
        self._inode = 0
        self._pulse_listener = socket.socket(socket.AF_UNIX)
        self._pulse_path = pulse_of(start_id)
        self._pulse_inode = 0
        self._busy_path = busy_of(start_id)
        self._busy_inode = 0

    def run(self) -> None:
        """Starts the other live processes, listens, and returns once this one is no longer needed."""
        self._listen()
        looks_at, laps = 0.0, self._laps
        while True:
            if (now := time.monotonic()) >= looks_at:
                looks_at = now + self._look_secs
                if not self._is_needed():
                    return
                if self._tasks is not None and any(member.over for member in self._members):
                    self._give_up(GivenUpError("another live process has ended"))
            ready = self._selector.select(self._pause())
            laps.end(Lap.WAITS)
            for key, events in ready:
                if key.fileobj is self._listener:
                    end, _ = self._listener.accept()
                    self._selector.register(end, selectors.EVENT_READ, _Peer(end))
                elif key.fileobj is self._more:
                    self._more.recv(4096)
                    self._tell()
                elif events & selectors.EVENT_WRITE:
                    self._flush(key.data)
                else:
                    self._read(key.data)
            laps.end(Lap.READS)
            if self._tasks is not None and self._is_due(self._tasks):
                self._round(self._tasks)
            if self._fetches:
                self._answer_fetches()
                laps.end(Lap.SAVES)

    def _listen(self) -> None:
        self._members = self._new_members()
        for member in self._members:
            member.ready(_MEMBER_SECS)
        # Start the pulse first, so that any client that finds the process also finds its pulse.
        with self._busy_path.open("w+b") as file:
            BusyPage(file.fileno()).note_tasks()
            self._busy_inode = os.fstat(file.fileno()).st_ino
        self._pulse_inode = self._listen_at(self._pulse_listener, self._pulse_path)
        Pulse(self._pulse_listener, self._looked).start()
        self._inode = self._listen_at(self._listener, self._path)
        self._selector.register(self._listener, selectors.EVENT_READ)
        self._selector.register(self._more, selectors.EVENT_READ)

    def _new_members(self) -> Sequence[MemberProcess | RemoteMember]:
        if (reception := self._reception) is not None:
            return [RemoteMember(reception, number) for number in range(1, self._processes)]
        return [MemberProcess(self._start_id) for _ in range(self._processes - 1)]

    def _listen_at(self, listener: socket.socket, path: Path) -> int:
        listener.bind(str(self._own_path))
        listener.listen()
        inode = self._own_path.stat().st_ino
        self._own_path.rename(path)
        return inode

    def _looked(self, look: Look | None) -> Status:
        """Answers a `Look`, on the pulse thread."""
        if look is not None:
            self._look = look
        self._looked_at = time.monotonic()
        return Status(os.getpid(), self._tasks is not None, self._laps.spent())

    def _is_needed(self) -> bool:
        if time.monotonic() - self._looked_at > _ALONE_SECS:
            return False
        try:
            # A worker may start this process when the daemon has told the others that its executor is gone.
            os.kill(self._leader, 0)
            # Another process may have taken this one's place.
            return self._path.stat().st_ino == self._inode
        except (FileNotFoundError, ProcessLookupError):
            return False

    def _pause(self) -> float:
        pause = _FETCH_SECS if self._fetches else self._look_secs
        if self._tasks is None:
            return pause
        if self._tasks.waiting:
            return 0.0
        due = self._tasks.due_in(self._clock_ms())
        return pause if due is None else min(pause, due / 1000)

    def _is_due(self, tasks: LiveTasks) -> bool:
        return tasks.waiting or tasks.due_in(self._clock_ms()) == 0

    def _clock_ms(self) -> int:
        look = self._look
        assert look is not None, "tasks are adopted once there is a clock"
        return look.clock_ms + int(1000 * (time.monotonic() - look.clock_at))

    def _round(self, tasks: LiveTasks) -> None:
        self._laps.rounds += 1
        try:
            self._rounds.hold(tasks.execute(self._clock_ms()))
        except GivenUpError as error:
            self._give_up(error)
            return
        finally:
            self._laps.end(Lap.EXECUTES)
        self._tell()
        self._laps.end(Lap.TELLS)

    def _say_more(self) -> None:
        with contextlib.suppress(OSError):  # it is full, so the word is there
            self._says_more.send(b"+", socket.MSG_DONTWAIT)

    def _tell(self) -> None:
        try:
            told = self._rounds.ready()
        except GivenUpError as error:
            self._give_up(error)
            return
        by_host: dict[_Peer, Told] = {}
        for message in told:
            host = self._host_of.get(message.task)
            if host is not None:
                by_host.setdefault(host, []).append(message)
        for host, messages in by_host.items():
            self._send(host, messages)

    def _give_up(self, error: GivenUpError) -> None:
        log.warning("tuples wait for the next micro-batch: %s", error)
        now = time.monotonic()
        self._given_up = 1 + (self._given_up if now - self._given_up_at < _HEALTHY_SECS else 0)
        self._given_up_at = now
        self._let_go()
        # One of them may be gone or busy.
        for member in self._members:
            member.end()
        self._members = self._new_members()

    def _let_go(self) -> None:
        """Leaves the tasks to the next micro-batch."""
        self._end_tasks()
        for host in list(self._hosts):
            self._send(host, Live(on=False))

    def _end_tasks(self) -> None:
        if self._tasks is not None:
            self._tasks.close()
        self._tasks = None
        self._rounds.close()

    def _read(self, connection: _Peer) -> None:
        for data in connection.received():
            self._handle(connection, pickle.loads(data))
        if connection.over:
            self._forget(connection)

    def _flush(self, connection: _Peer) -> None:
        if connection.flush():
            self._selector.modify(connection.end, selectors.EVENT_READ, connection)
        if connection.over:
            self._forget(connection)

    def _handle(self, connection: _Peer, message: Any) -> None:
        tasks = self._tasks
        if isinstance(message, Written):
            self._host_of[message.task] = connection
            if tasks is not None:
                try:
                    tasks.take(message)
                except GivenUpError as error:
                    self._give_up(error)
        elif isinstance(message, Live):
            self._hosts.add(connection)
            self._send(connection, Live(on=tasks is not None))
        elif isinstance(message, Barrier):
            self._laps.end(Lap.READS)
            self._send(connection, None if tasks is None else self._barrier(tasks, message))
            self._laps.end(Lap.SAVES)
        elif isinstance(message, Fetch):
            self._fetches.append((connection, message))
        elif isinstance(message, MayAdopt):
            self._send(connection, Adopted(self._may_adopt()))
        else:
            assert isinstance(message, Adopt), message
            self._send(connection, Adopted(self._adopt(message)))
            self._laps.end(Lap.SAVES)

    def _answer_fetches(self) -> None:
        try:
            if self._tasks is not None and not self._tasks.is_cut():
                return  # messages continue meanwhile
        except GivenUpError as error:
            self._give_up(error)
        fetches, self._fetches = self._fetches, []
        for connection, asked in fetches:
            tasks = self._tasks
            cut = None if tasks is None else tasks.cut(asked.token, asked.start, asked.end)
            if tasks is not None and cut is None:
                # The worker executes the log, up to the last round that it finds: there must be no more of them.
                self._let_go()
            self._send(connection, cut)

    def _may_adopt(self) -> bool:
        pause = _PAUSES[min(self._given_up, len(_PAUSES) - 1)]
        if self._look is None or time.monotonic() - self._given_up_at < pause:
            return False
        if not all(member.ready() for member in self._members):
            if any(member.over for member in self._members):
                self._give_up(GivenUpError("another live process has ended"))
            return False
        return True

    def _adopt(self, message: Adopt) -> bool:
        if not self._may_adopt():
            return False
        self._end_tasks()
        worker = worker_for(message.start_id, message.spec)
        worker.tasks.clear()
        for member in self._members:
            member.stall_secs = worker.wiring.settings(ReportSettings).stall_secs
        try:
            tasks = LiveTasks(worker, message, self._note, self._members)
            self._rounds.open(worker, tasks.tokens)
            self._tasks = tasks
        except (GivenUpError, StormError, OSError) as error:
            self._give_up(GivenUpError(str(error)))
            return False
        for host in list(self._hosts):
            self._send(host, Live(on=True))
        return True

    def _note(self, done: Round) -> None:
        self._laps.end(Lap.EXECUTES)
        self._rounds.note(done)
        self._laps.end(Lap.LOGS)

    def _barrier(self, tasks: LiveTasks, barrier: Barrier) -> Offset | None:
        try:
            tasks.take_up_to(barrier.written)
            if tasks.behind or self._is_due(tasks):
                self._round(tasks)
            if self._tasks is None:
                return None
            end = tasks.barrier(barrier.start)
            if end is not None:
                self._rounds.follow(tasks.tokens)
        except (GivenUpError, StormError, OSError) as error:
            self._give_up(GivenUpError(str(error)))
            return None
        return end

    def _send(self, connection: _Peer, message: object) -> None:
        if not connection.send(pickle.dumps(message, 5)):
            # It reads slowly, as a spout that sleeps in `next_tuple` does: others don't wait for it.
            self._selector.modify(connection.end, selectors.EVENT_READ | selectors.EVENT_WRITE, connection)
        if connection.over:
            self._forget(connection)

    def _forget(self, connection: _Peer) -> None:
        if connection.end.fileno() < 0:
            return
        self._selector.unregister(connection.end)
        self._hosts.discard(connection)
        connection.end.close()

    def close(self) -> None:
        """Ends the other live processes and stops listening."""
        for member in self._members:
            member.end()
        # The reception ends with the process: closed, it would shut the driver's socket, at which the next one listens.
        self.leave()

    def leave(self, secs: float = 0.0) -> None:
        """Stops listening and removes the files that would remain if the driver was killed.

        Args:
            secs: how long it may take until a killed driver has let go of the run's folder.
        """
        for own in (self._listener, self._more, self._says_more):
            own.close()
        with contextlib.suppress(OSError):  # it has no name yet, or the folder is gone
            self._own_path.unlink(missing_ok=True)
        for path, inode in (
            (self._path, self._inode),
            (self._pulse_path, self._pulse_inode),
            (self._busy_path, self._busy_inode),
        ):
            with contextlib.suppress(OSError):  # it does not listen yet
                if path.stat().st_ino == inode:
                    path.unlink()
        folder, until = self._path.parent, time.monotonic() + secs
        while folder.exists():
            remove_if_abandoned(folder)
            with contextlib.suppress(OSError):  # others use it
                folder.rmdir()
            if time.monotonic() >= until:
                return
            time.sleep(_LOCKED_SECS)


def _door(descriptor: int) -> tuple[socket.socket, bytes]:
    os.set_inheritable(descriptor, False)
    secret = sys.stdin.buffer.read()
    if len(secret) != SECRET_BYTES:
        sys.exit(f"the driver has sent {len(secret)} bytes of a secret of {SECRET_BYTES}: it has ended meanwhile")
    return socket.socket(fileno=descriptor), secret


def main() -> None:
    """Runs the first live process of a run."""
    ignore_interrupts()
    breakpoints.pass_over()
    log_levels.follow()
    from storm_on_spark.runtime.processes.diagnostics.prints import label_all, marked_output

    processes, start_id, *rest = sys.argv[1:]
    driver, descriptors = rest[:1], rest[1:]
    door = _door(int(descriptors[0])) if descriptors else None
    if driver:
        # SIGHUP is held back until this process can hear it: see `LiveClient.start`.
        hang_up_with(int(driver[0]))
        # As with spouts: a bolt's prints must not mix with the stdout of the program that runs the topology.
        os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
        label_all()
    with contextlib.nullcontext() if driver else marked_output():
        process = LiveProcess(start_id, int(processes), int(driver[0]) if driver else None, door)

        def end(number: int, _: object) -> NoReturn:
            # A second one would wait for the lock on the run's folder, which the first one has.
            for other in (signal.SIGTERM, signal.SIGHUP):
                signal.signal(other, signal.SIG_IGN)
            # The others end with this process. A wait for them would be for good where this interrupts such a wait.
            process.leave(_DYING_SECS if driver and number == signal.SIGHUP else 0.0)
            os._exit(0)  # an exception would look like a bolt's

        # The driver's word. The kernel's is the other one, or the daemon's, as its last act when its executor is gone;
        # that has waited if it came before: see `LiveClient.start`.
        signal.signal(signal.SIGTERM, end)
        signal.signal(signal.SIGHUP, end)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGHUP})
        try:
            process.run()
        finally:
            process.close()
            release(start_id)


if __name__ == "__main__":
    main()
