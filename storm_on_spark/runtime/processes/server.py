"""A real server in separate processes, for development and tests: its folder, ports, log, start and end.

It is reachable from this machine only, keeps its data in a folder that only this user can read, and ends with the
process that started it, however that one ends. Subclasses say which commands are run, and when the server is ready.
"""

from __future__ import annotations

import contextlib
import signal
import socket
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import ClassVar, Final

from storm_on_spark.api.errors import SetupError
from storm_on_spark.runtime.processes.closing import Service
from storm_on_spark.runtime.processes.ending.at_once import make_temporary, remove_temporary
from storm_on_spark.runtime.processes.kept_program import KeptProcess

HOST: Final = "127.0.0.1"
_START_ATTEMPTS: Final = 3
"""How often a start is tried: a port that was free may be taken before the server binds it."""
_TAKEN: Final = ("already in use", "BindException", "eaddrinuse")
_INFORMATION: Final = (" INFO ", "[info]")
_WORDS: Final = 1000

_LOG4J: Final = """\
rootLogger.level = info
rootLogger.appenderRef.file.ref = file
appender.file.type = RollingFile
appender.file.name = file
appender.file.fileName = {log}
appender.file.filePattern = {log}.%i
appender.file.layout.type = PatternLayout
appender.file.layout.pattern = %d %p %c{{1}} %m%n
appender.file.policies.type = SizeBasedTriggeringPolicy
appender.file.policies.size = 10MB
appender.file.strategy.type = DefaultRolloverStrategy
appender.file.strategy.max = 3
"""


class Server(Service):
    """A server of one kind. A `with` statement starts it, and ends it for good.

    Args:
        data_dir: where its data is kept; None for a temporary folder that `close` removes.
        port: for clients; 0 for a free one. It stays the same over stops and starts.
    """

    kind: ClassVar[str]
    """Names its files and its thread."""
    title: ClassVar[str]
    """What messages call it."""
    closed_by: ClassVar[signal.Signals] = signal.SIGTERM
    """The signal that `close` sends if the data are kept."""
    parent: ClassVar[Path | None] = None
    """Where a temporary folder of data is made; None for where Python makes them."""

    def __init__(self, data_dir: Path | None = None, port: int = 0) -> None:
        self._port_is_ours = port == 0
        self._temporary = data_dir is None
        self.data_dir = make_temporary(f"storm-spark-{self.kind}-", self.parent) if data_dir is None else data_dir
        self.port = port or free_port()
        self._processes: list[KeptProcess] = []

    @abstractmethod
    def _commands(self) -> Mapping[str, Sequence[str]]:
        """Writes the configuration; returns the commands to run in `data_dir`, by name, the server's own last.

        Raises:
            SetupError: something that it needs is missing.
        """

    @abstractmethod
    def _answers(self) -> bool:
        """Returns whether it serves."""

    def _environment(self) -> Mapping[str, str] | None:
        """Returns the variables of its processes; None for those of this process."""
        return None

    def _choose_ports(self) -> None:
        """Chooses other free ports, because one was taken."""
        self.port = free_port()

    @property
    def pid(self) -> int | None:
        """The id of its process; None when it doesn't run."""
        return self._processes[-1].pid if self._processes else None

    @property
    def log_file(self) -> Path:
        """Its output."""
        return self.data_dir / f"{self.kind}.log"

    def start(self, *, wait: bool = True, timeout: float = 60) -> None:
        """Starts it, with the data that are there.

        Args:
            wait: whether to return only when it serves.
            timeout: how long that may take, in seconds.

        Raises:
            SetupError: it can't be started, ended at once or doesn't serve in time; the message has its last lines.
        """
        for attempt in range(1, _START_ATTEMPTS + 1):
            self._launch()
            if not wait:
                return
            try:
                self.wait_ready(timeout)
                return
            except SetupError as error:
                taken = any(words in str(error) for words in _TAKEN)
                if not taken or not self._port_is_ours or attempt == _START_ATTEMPTS:
                    raise
                self._choose_ports()

    def wait_ready(self, timeout: float = 60) -> None:
        """Returns as soon as it serves.

        Raises:
            SetupError: it has ended, or doesn't serve in time.
        """
        if self._processes and self._processes[-1].serves(self._answers, timeout):
            return
        what = "ended" if self.pid is None else f"doesn't serve after {timeout:g} s"
        words = last_words(*(process.out for process in self._processes), self.log_file)
        self.kill()
        raise SetupError(f"the {self.title} on port {self.port} {what}: {words}")

    def stop(self) -> None:
        """Ends it in order; it can be started again."""
        self._end(signal.SIGTERM)

    def kill(self) -> None:
        """Ends it by SIGKILL, as a crash would; it can be started again."""
        self._end(signal.SIGKILL)

    def pause(self) -> None:
        """Stops its processes by SIGSTOP: its connections stay open and silent."""
        for process in self._processes:
            process.send(signal.SIGSTOP)

    def resume(self) -> None:
        """Resumes a paused server."""
        for process in self._processes:
            process.send(signal.SIGCONT)

    def close(self) -> None:
        """Ends it for good, and removes its data if they were temporary."""
        # An end in order takes a second, so it is only for a server whose data are kept.
        self._end(signal.SIGKILL if self._temporary else self.closed_by)
        if self._temporary:
            remove_temporary(self.data_dir)

    def _launch(self) -> None:
        if self.pid is not None:
            raise SetupError(f"the {self.title} on port {self.port} runs already")
        self.kill()  # what is left of one that has ended
        self.data_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
        try:
            for name, command in self._commands().items():
                out = self.data_dir / f"{name}.out"
                out.unlink(missing_ok=True)
                thread = f"{name}-server-{self.port}"
                self._processes.append(KeptProcess(thread, command, self.data_dir, out, self._environment()))
        except OSError as error:
            self.kill()
            raise SetupError(f"the {self.title} on port {self.port} can't be started: {error}") from error

    def _end(self, number: signal.Signals) -> None:
        processes, self._processes = self._processes, []
        for process in reversed(processes):
            process.end(number)


def java_command(
    home: Path,
    class_path: str,
    main: str,
    *arguments: str,
    heap: str = "512m",
    log: Path | None = None,
    options: Sequence[str] = (),
) -> list[str]:
    """Returns the command that runs a server in a JVM that starts quickly and needs little memory.

    Args:
        home: of Java.
        class_path: where its classes are.
        main: name of the main class.
        arguments: for it.
        heap: how much memory its objects take at most.
        log: the file that it logs to, by log4j, whose configuration is written beside it.
        options: more of the JVM's.
    """
    logging: list[str] = []
    if log is not None:
        log4j = log.with_name("log4j2.properties")
        log4j.write_text(_LOG4J.format(log=log), "utf-8")
        logging = [f"-Dlog4j2.configurationFile={log4j}"]
    return [
        *(str(home / "bin" / "java"), f"-Xmx{heap}", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"),
        # No file in the system's temporary folder: a killed JVM would leave it behind.
        *("-XX:-UsePerfData", "-Djava.awt.headless=true", *logging, *options, "-cp", class_path, main, *arguments),
    ]


def last_words(*logs: Path, lines: int = 5) -> str:
    """Returns the last warnings and errors of logs, without the lines of stack traces."""
    words: list[str] = []
    last: list[str] = []
    for log in logs:
        with contextlib.suppress(OSError):
            said = [line for line in log.read_text("utf-8", "replace").splitlines() if line.strip()]
            said = [line.strip() for line in said[-200:] if not line.startswith("\t")]
            words += [line for line in said if not any(mark in line for mark in _INFORMATION)]
            last = said[-1:] or last
    return " | ".join(words[-lines:] or last)[-_WORDS:] or "it said nothing"


def free_port() -> int:
    """Returns a port on which nothing listens at this moment."""
    return free_ports(1)[0]


def free_ports(count: int, besides: int = 0) -> list[int]:
    """Returns different ports on which nothing listens at this moment.

    Args:
        count: how many.
        besides: a port that was chosen before, and is none of them.
    """
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count + 1)]
        for each in sockets:
            each.bind((HOST, 0))
        return [port for each in sockets if (port := each.getsockname()[1]) != besides][:count]
