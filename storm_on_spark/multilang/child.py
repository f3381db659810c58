"""A child process that speaks multilang, which any process of this machine can use in turns.

Spark gives the next micro-batch of a task to any Python worker, while a component in another language keeps its memory
in one process. So the child's standard input and output are named pipes in a folder. A worker opens them, takes a
turn, and leaves: what is in the pipes by then is left for the next turn.

A folder has `in` and `out` (the pipes), `record` (the child's identity and its last turn; locked during a turn), `pids`
(Storm's folder of process ids), and the files of `storm_on_spark.multilang.guardian`.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import logging
import os
import secrets
import select
import shutil
import subprocess
import sys
import time
import weakref
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from storm_on_spark.multilang import launcher
from storm_on_spark.multilang.errors import ShellError
from storm_on_spark.multilang.framing import framing_of
from storm_on_spark.multilang.guardian import IDLE_SECS, Guardian, end_family
from storm_on_spark.multilang.messages import log_message
from storm_on_spark.multilang.own_libraries import with_libraries
from storm_on_spark.runtime.processes.lock_file import is_file
from storm_on_spark.runtime.processes.run_folder import make_private
from storm_on_spark.runtime.processes.sessions import started_at

_log = logging.getLogger(__name__)

_READ_BYTES = 1 << 16
_LOOK_SECS = 0.25
_LOCK_SECS = 5.0
_EXIT_SECS = 10.0
_RECORD_BYTES = 128
_IN_TURN = -1
MOST_MESSAGES = 1_000_000
"""Messages that a child may send in one go, while it is waited for without a limit of time."""


@dataclass(frozen=True)
class Launch:
    """How the child of one task is started.

    Args:
        command: program and arguments.
        folder: where the folders of the run's children are.
        name: component and task, e.g. `split-4`; the folder of the child begins with it.
        label: precedes each line of the child's stderr.
        directory: the child's working directory.
        environment: variables beside those of this process.
        serializer: the value of `topology.multilang.serializer`.
        timeout_secs: the longest silence of the child.
        idle: whether it ends after a long time without a turn.
    """

    command: tuple[str, ...]
    folder: Path
    name: str
    label: str
    directory: str
    environment: Mapping[str, str]
    serializer: str
    timeout_secs: float
    idle: bool = True


class Child:
    """One child, as one process sees it. `start` and `attach` make it.

    Args:
        launch: how it was started.
        folder: its folder.
    """

    def __init__(self, launch: Launch, folder: Path) -> None:
        self.launch = launch
        self.folder = folder
        self.framing = framing_of(launch.serializer)
        self._queue: deque[bytes] = deque()
        self._messages: deque[Any] = deque()
        #: Messages since it last read something.
        self._unasked = 0
        #: When the child last sent something, or was asked for the first time; monotonic seconds.
        self._heard = time.monotonic()
        descriptors = [os.open(folder / "record", os.O_RDWR | os.O_CLOEXEC)]
        self._close = weakref.finalize(self, _close_all, descriptors)
        self._record = descriptors[0]
        found = json.loads(os.pread(self._record, _RECORD_BYTES, 0))
        self.pid: int = found["pid"]
        self._owner: int = found["owner"]
        self._started: str = found["started"]
        descriptors.append(os.open(folder / "out", os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC))
        self._output = descriptors[1]
        # Refused with ENXIO once nobody reads.
        descriptors.append(os.open(folder / "in", os.O_WRONLY | os.O_NONBLOCK | os.O_CLOEXEC))
        self._input = descriptors[2]

    @classmethod
    def start(cls, launch: Launch, setup: Callable[[str], Mapping[str, Any]]) -> Child:
        """Starts a child and shakes hands; children of the same name that are left are ended.

        Args:
            launch: how.
            setup: returns the first message, given the folder for process ids.

        Raises:
            ShellError: it ended, was silent, or sent something else than its process id.
        """
        make_private(launch.folder)
        for abandoned in launch.folder.glob(f"{launch.name}-*"):
            shutil.rmtree(abandoned, ignore_errors=True)
        folder = launch.folder / f"{launch.name}-{secrets.token_hex(4)}"
        (folder / "pids").mkdir(mode=0o700, parents=True)
        folder.chmod(0o700)
        _spawn(launch, folder)
        # With a reader, a child that has ended by now can be opened, too, and its end is told as that of any other.
        reader = os.open(folder / "in", os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            child = cls(launch, folder)
        finally:
            os.close(reader)
        try:
            child.begin_turn(0)
            child.send(child.framing.encode(setup(str(folder / "pids"))))
            child._shake_hands()
        except ShellError as error:
            raise child.ended(error) from None
        return child

    @classmethod
    def attach(cls, launch: Launch, name: str, rest: bytes, queue: bytes) -> Child | None:
        """Returns the living child in the folder `name`, or None.

        Args:
            launch: how it was started.
            name: of its folder.
            rest: the message that it had sent a part of after its last turn.
            queue: what was not written to it in that turn.
        """
        try:
            child = cls(launch, launch.folder / name)
        except (OSError, ValueError):
            return None
        if rest:
            child._messages.extend(child.framing.feed(rest))
        if queue:
            child.send(queue)
        return child

    # --- turns --------------------------------------------------------------------------------------------

    def begin_turn(self, last: int) -> bool:
        """Locks the child; returns whether it lives and its last turn was `last`, so that it is what is expected."""
        deadline = time.monotonic() + _LOCK_SECS
        while True:
            try:
                fcntl.flock(self._record, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > deadline:  # an attempt that was given up, and still runs
                    return False
                time.sleep(0.01)
        if not is_file(self._record, self.folder / "record") or not self.alive():
            return False
        if json.loads(os.pread(self._record, _RECORD_BYTES, 0))["turn"] != last:
            return False
        self._write_record(_IN_TURN)
        self._heard = time.monotonic()
        return True

    def end_turn(self, turn: int) -> None:
        """Unlocks the child."""
        self._write_record(turn)
        fcntl.flock(self._record, fcntl.LOCK_UN)

    def ask(self) -> None:
        """Begins to measure the child's silence, as it is about to be asked."""
        self._heard = time.monotonic()

    def _write_record(self, turn: int) -> None:
        _write_record(self._record, self.pid, self._started, self._owner, turn)

    # --- messages -----------------------------------------------------------------------------------------

    def send(self, data: bytes) -> None:
        """Queues an encoded message; `exchange` writes it."""
        self._queue.append(data)

    @property
    def queued(self) -> int:
        """How many messages wait to be written."""
        return len(self._queue)

    @property
    def unsent(self) -> bytes:
        """What waits to be written."""
        return b"".join(self._queue)

    def exchange(self, handle: Callable[[Any], None], done: Callable[[], bool], most_secs: float | None = None) -> bool:
        """Writes and reads until `done`.

        Args:
            handle: called with each message of the child.
            done: asked after each step.
            most_secs: after this time it is given up, even if the child speaks; None for no limit.

        Returns:
            Whether it is done.

        Raises:
            ShellError: the child ended, was silent for too long or, without `most_secs`, sends without end, or
                `handle` raised it.
        """
        self._unasked = 0
        deadline = None if most_secs is None else time.monotonic() + most_secs
        while True:
            while self._messages:
                handle(self._messages.popleft())
            if done():
                return True
            if deadline is not None and time.monotonic() > deadline:
                return False
            if deadline is None and self._unasked > MOST_MESSAGES:
                raise ShellError(
                    f"it sent more than {MOST_MESSAGES} messages without reading its input or saying that it is done"
                )
            self._step()

    def _step(self) -> None:
        """Writes and reads once, and waits a moment for that to be possible."""
        writing = [self._input] if self._queue else []
        ready, writable, _ = select.select([self._output], writing, [], _LOOK_SECS)
        if writable:
            self._write()
        if ready:
            self._read()
        if not ready:
            if not self.alive():
                self._read()
                raise ShellError("it ended")
            silent = time.monotonic() - self._heard
            if silent > self.launch.timeout_secs:
                raise ShellError(
                    f"it was silent for {silent:.0f} s (topology.subprocess.timeout.secs = "
                    f"{self.launch.timeout_secs:g})"
                )

    def _write(self) -> None:
        parts, size = [], 0
        while self._queue and size < _READ_BYTES:
            parts.append(self._queue.popleft())
            size += len(parts[-1])
        data = b"".join(parts)
        try:
            written = os.write(self._input, data)
        except BlockingIOError:
            written = 0
        except BrokenPipeError:
            raise self._closed("input") from None
        if written:
            self._unasked = 0
        # Whole messages again, so that `queued` counts what waits.
        for part in reversed(parts):
            size -= len(part)
            if size + len(part) > written:
                self._queue.appendleft(part[max(0, written - size) :])

    def _read(self) -> None:
        try:
            data = os.read(self._output, _READ_BYTES)
        except BlockingIOError:
            return
        if not data:
            raise self._closed("output")
        self._heard = time.monotonic()
        found = self.framing.feed(data)
        self._unasked += len(found)
        self._messages.extend(found)

    def _shake_hands(self) -> None:
        known: list[int] = []
        more: list[Any] = []

        def handle(message: Any) -> None:
            if known:
                more.append(message)
                return
            if isinstance(message, dict) and message.get("command") == "log":
                log_message(_log, self.launch.label, message)
                return
            pid = message.get("pid") if isinstance(message, dict) else None
            if not isinstance(pid, int) or isinstance(pid, bool):
                raise ShellError(f"its first message must be its process id, not {message!r:.200}")
            known.append(pid)

        self.exchange(handle, lambda: bool(known))
        self._messages.extend(more)

    # --- the end ------------------------------------------------------------------------------------------

    def _closed(self, stream: str) -> ShellError:
        # A process that ends closes its files a little earlier.
        deadline = time.monotonic() + _EXIT_SECS
        while self.alive() and time.monotonic() < deadline:
            time.sleep(0.01)
        return ShellError(f"it closed its standard {stream}" if self.alive() else "it ended")

    def alive(self) -> bool:
        """Whether the process lives."""
        return started_at(self.pid) == self._started

    def ended(self, error: ShellError) -> ShellError:
        """Ends the child; returns the error with its exit code and the last lines of its stderr."""
        died = not self.alive()
        end_family(self.pid, self._started)
        deadline = time.monotonic() + _EXIT_SECS
        # Its guardian, in the process that started it, writes down how it ended.
        while not (self.folder / "exit").exists() and started_at(self._owner) and time.monotonic() < deadline:
            if not self.folder.exists():
                break
            time.sleep(0.01)
        code = tail = ""
        with contextlib.suppress(OSError):
            code = (self.folder / "exit").read_text() if died else ""
        with contextlib.suppress(OSError):
            tail = (self.folder / "stderr").read_bytes().decode("utf-8", "replace").strip()
        self.end()
        program = self.launch.command[0]
        said = f"; its last lines on stderr:\n{tail}" if tail else "; it wrote nothing to stderr"
        name = self.launch.label.strip("[] ")
        return ShellError(
            f"child process {self.pid} of {name} ({program}): {error}{f', exit code {code}' if code else ''}{said}"
        )

    def end(self) -> None:
        """Ends the child and all that it has started, and removes its files."""
        end_family(self.pid, self._started)
        shutil.rmtree(self.folder, ignore_errors=True)
        self._close()


def run_in(directory: str | None, command: Sequence[str] = ()) -> str:
    """Returns a child's working directory.

    Storm runs a component in the folder `resources` of the topology's code. Here that is looked for in the working
    directory and where Python looks for modules, and then the first of these folders that has a file of the command.

    Args:
        directory: the one that was asked for, or None.
        command: its relative arguments may be files.

    Returns:
        The given folder, else `resources` of the code, else a folder with a file of the command, else the process'
        own.

    Raises:
        ShellError: the given one does not exist.
    """
    if directory is not None:
        if not Path(directory).is_dir():
            raise ShellError(f"there is not a folder {directory!r} to run the command in")
        return directory
    places = [Path(place or ".") for place in (".", *sys.path)]
    for place in places:
        found = place / "resources"
        if found.is_dir():
            return str(found.absolute())
    for place in places:
        if any(word and (place / word).is_file() for word in command[1:]):
            return str(place.absolute())
    return str(Path.cwd())


def checked_command(command: object, shown: str) -> tuple[str, ...]:
    """Returns a command as a tuple.

    Raises:
        ShellError: it is not a list of strings.
    """
    if isinstance(command, str) or not isinstance(command, Sequence) or not command:
        raise ShellError(f'{shown} takes a list of strings such as ["node", "split.js"], not {command!r:.200}')
    for part in command:
        if not isinstance(part, str) or "\0" in part:
            raise ShellError(f"{shown}: {part!r:.100} is not a string that can stand in a command")
    if not command[0]:
        raise ShellError(f"{shown}: the command has no program")
    return tuple(command)


def _spawn(launch: Launch, folder: Path) -> None:
    for name in ("in", "out"):
        os.mkfifo(folder / name, 0o600)
    # Opened for both directions neither waits for the other side.
    kept = [os.open(folder / name, os.O_RDWR | os.O_CLOEXEC) for name in ("in", "out")]
    stdin = os.open(folder / "in", os.O_RDONLY | os.O_CLOEXEC)
    stdout = os.open(folder / "out", os.O_WRONLY | os.O_CLOEXEC)
    writes = os.open(folder / "in", os.O_WRONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    reads = os.open(folder / "out", os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        process = subprocess.Popen(
            [sys.executable, "-I", "-S", launcher.__file__, str(os.getpid()), *launch.command],
            stdin=stdin,
            stdout=stdout,
            stderr=subprocess.PIPE,
            cwd=launch.directory,
            env=with_libraries({**os.environ, **launch.environment}),
            start_new_session=True,
        )
    except BaseException:
        os.close(writes)
        os.close(reads)
        raise
    finally:
        for descriptor in (*kept, stdin, stdout):
            os.close(descriptor)
    record = os.open(folder / "record", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    # Not reaped yet, so it has a number and a time, even if it has ended.
    _write_record(record, process.pid, started_at(process.pid) or "ended", os.getpid(), 0)
    os.close(record)
    Guardian(process, folder, [writes, reads], launch.label, IDLE_SECS if launch.idle else None)


def _write_record(descriptor: int, pid: int, started: str, owner: int, turn: int) -> None:
    text = json.dumps({"pid": pid, "started": started, "owner": owner, "turn": turn})
    os.pwrite(descriptor, text.encode().ljust(_RECORD_BYTES), 0)


def _close_all(descriptors: list[int]) -> None:
    for descriptor in descriptors:
        with contextlib.suppress(OSError):
            os.close(descriptor)
