"""One run of the load, for the harness: processes that it starts, watches and restarts."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import random
import signal
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from lab.faults.driver import REFUSED, Settings
from lab.faults.stores import Store
from lab.load import ledger
from lab.load.topology import Load
from lab.suite import ROOT
from lab.suite.processes import Marked
from lab.suite.scenario import Injection as AnyInjection
from lab.suite.scenario import ScenarioError
from storm_on_spark.runtime.processes.kept_program import KeptProcess
from storm_on_spark.runtime.storage import LocalStorage
from storm_on_spark.spark.checkpoint.directory import last_batch
from storm_on_spark.testing.faults.machines import WITH_OWN_PROCESS_IDS

_POLL_SECS = 0.05
_STUCK_SECS = 120.0
"""Longest time without progress."""
_END_SECS = 10.0
"""Longest time for processes to end after their driver."""
_TAIL_BYTES = 4000
_FIRST_SHARE, _LAST_SHARE = 0.1, 0.8
"""Least and greatest share of acked messages at which faults happen."""
_LEAST_LAST_SHARE = 0.6
"""Lower limit of the greatest share, however long a fault lasts, so that faults are spread over the run."""
_LEFT_AFTER = 1.4
"""A lasting fault begins only while at least this many times its length is left of the run."""
_TASKS = 2
"""Of the spout."""
_ROUNDS_LEFT = 4
"""So often the spout's tasks can still emit all that may be pending after the last fault. At the fault one is emitted
and not acked, a kill waits for one to be delivered, one shows that messages are acked again; and one to spare."""

T = TypeVar("T")


def pending(load: Load) -> int:
    """Returns how many messages of each task of the spout may be pending."""
    return max(500, int(load.rate))


def last_share(load: Load, lasting: float = 0.0) -> float:
    """Returns which share of the messages is acked at most when the last fault happens.

    What is left afterwards shows that the topology has recovered.

    Args:
        load: what the topology processes.
        lasting: seconds that each fault lasts, in which messages may be acked.

    Example:
        >>> round(last_share(Load(100_000, 40.0)), 2), round(last_share(Load(30_000, 30.0)), 2)
        (0.8, 0.73)
    """
    shown = 1 - _ROUNDS_LEFT * _TASKS * pending(load) / load.messages
    outlasted = 1 - _LEFT_AFTER * lasting / load.seconds
    return min(_LAST_SHARE, max(_LEAST_LAST_SHARE, min(shown, outlasted)))


@dataclass
class Injection(AnyInjection):
    """One fault that was injected."""

    over: int
    """Monotonic ns from which recovery counts: when the fault was injected, or when it was over where it lasts."""
    recovery_secs: float | None = None
    """Until of each spout task a message is acked that was emitted after that."""
    cold: bool = False
    """Whether Spark had not committed a micro-batch yet: what died comes back when the first one is done."""


@dataclass
class Run:
    """A topology that may be killed and started again.

    Args:
        folder: for the run's files; new.
        load: what it processes.
        rng: for moments and victims.
        conf: configuration on top of the harness's own.
        master: Spark's.
        environment: on top of this process's.
        store: where the checkpoint is, if it is in no directory.
        tables: where bolts of each kind write as well, if they do.
        windows: whether there is a windowed bolt.
        gates: the folder with files by which the spout's tasks are blocked, if they can be.
        tasks: of each bolt.
    """

    folder: Path
    load: Load
    rng: random.Random
    conf: Mapping[str, Any] = field(default_factory=dict)
    master: str = "local[2]"
    environment: Mapping[str, str] = field(default_factory=dict)
    store: Store | None = None
    tables: Path | None = None
    windows: bool = False
    gates: Path | None = None
    tasks: int = 2
    injections: list[Injection] = field(default_factory=list)
    #: Problems outside of the oracles' checks.
    problems: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.checkpoint = self.folder / "checkpoint"
        self.ledger = self.folder / "ledger"
        self.temporary = self.folder / "tmp"
        self.trigger = self.folder / "die-after-sink"
        for path in (self.checkpoint, self.ledger, self.temporary):
            path.mkdir(parents=True)
        self.spouts = self.checkpoint / "storm" / "spouts"
        self.cleanup = contextlib.ExitStack()
        self.starts = 0
        self._driver: KeptProcess | None = None
        #: The start, and the driver, that is stopped while another one runs.
        self._frozen: tuple[int, KeptProcess | None] | None = None
        self._pids: list[int] = []
        self._processes = Marked("FAULTS_RUN")

    # --- the driver ---------------------------------------------------------------

    def start(self, *, elsewhere: bool = False) -> None:
        """Starts a driver; the last one must have ended, or be frozen.

        Args:
            elsewhere: whether it gets process ids of its own, so that it takes the others for those of another machine.
        """
        assert self._driver is None or self._driver.pid is None, "two drivers on one checkpoint"
        self.starts += 1
        conf = {
            **({} if self.store is None else self.store.conf),
            "topology.checkpoint.dir": self._where,
            "topology.workers": 2,
            "topology.max.spout.pending": pending(self.load),
            **self.conf,
        }
        settings = Settings(
            checkpoint=self._where,
            ledger=str(self.ledger),
            events=str(self._file("events")),
            state=str(self.folder / "state.json"),
            die_after_sink=str(self.trigger),
            messages=self.load.messages,
            seconds=self.load.seconds,
            master=self.master,
            conf=conf,
            tables=None if self.tables is None else str(self.tables),
            windows=self.windows,
            gates=None if self.gates is None else str(self.gates),
            tasks=self.tasks,
        )
        settings.write(self._file("settings"))
        environment = {
            **os.environ,
            **self.environment,
            **self._processes.environment(self.starts),
            "TMPDIR": str(self.temporary),
            "PYTHONPATH": str(ROOT),
            # Spark's logs belong to the run, and go with it.
            "XDG_STATE_HOME": str(self.folder / "logs"),
        }
        program = [sys.executable, "-m", "lab.faults.driver", str(self._file("settings"))]
        command = [*(WITH_OWN_PROCESS_IDS if elsewhere else ()), *program]
        self._driver = KeptProcess("faults-driver", command, ROOT, self._file("log"), environment)
        self._pids.append(self._driver.leader)

    @property
    def _where(self) -> str:
        return str(self.checkpoint) if self.store is None else self.store.url

    @property
    def pid(self) -> int:
        """The driver's process id."""
        assert self._driver is not None
        return self._driver.leader

    def live_processes(self, role: str) -> list[int]:
        """Returns the live processes of this start of the driver: `process` is the one that leads, `member` follows."""
        mark = f"storm_on_spark.runtime.live.processes.{role}"
        return sorted(pid for pid, command in self._processes.find(self.starts).items() if mark in command)

    def kill_driver(self) -> None:
        """Kills the driver by SIGKILL and waits until it has died of it."""
        os.kill(self.pid, signal.SIGKILL)
        self.died()

    def died(self, timeout: float = _STUCK_SECS) -> None:
        """Waits until the driver has died of SIGKILL.

        Raises:
            ScenarioError: it did not, or ended otherwise.
        """
        status = self._wait(timeout)
        if status != -signal.SIGKILL:
            raise ScenarioError(f"the driver was to die of SIGKILL, but ended with status {status}: {self.reason()}")

    def refused(self, timeout: float = _STUCK_SECS) -> str:
        """Waits until the driver has given up with a reason, and returns the reason.

        Raises:
            ScenarioError: it did not, or ended otherwise.
        """
        status = self._wait(timeout)
        if status != REFUSED:
            raise ScenarioError(
                f"the driver was to give up with a reason, but ended with status {status}: {self.reason()}"
            )
        return self.reason()

    def freeze(self) -> int:
        """Stops the driver with all its processes, so that another one can be started; returns their number."""
        assert self._frozen is None
        self._frozen, self._driver = (self.starts, self._driver), None
        return self._processes.signal(signal.SIGSTOP, self.starts)

    def thaw(self, timeout: float = _STUCK_SECS) -> str:
        """Resumes the frozen driver, waits until it has given up with a reason, and returns the reason.

        Raises:
            ScenarioError: it did not, or ended otherwise.
        """
        assert self._frozen is not None
        (start, driver), present = self._frozen, (self.starts, self._driver)
        self._processes.signal(signal.SIGCONT, start)
        self.starts, self._driver, self._frozen = start, driver, None
        try:
            return self.refused(timeout)
        finally:
            self.starts, self._driver = present

    def has_committed(self, batch: int) -> bool:
        """Whether Spark has committed a micro-batch."""
        root = LocalStorage(self.checkpoint) if self.store is None else self.store.place.open()
        last = last_batch(root, "commits")
        return last is not None and last >= batch

    def completed(self) -> None:
        """Waits until the topology has processed everything and the driver has ended.

        Raises:
            ScenarioError: it gets stuck or fails.
        """
        self._until(self.ended, "completes", ended=True)
        status = self._wait(_STUCK_SECS)
        if status != 0:
            raise ScenarioError(f"the driver ended with status {status}: {self.reason()}")

    def restart(self) -> None:
        """Restarts the driver and waits until the topology is submitted; by then all earlier processes have ended."""
        before = self.starts
        self.start()
        self.wait_for("submitted")
        left = self._processes.find(before)
        if left:
            self.problems.append(f"when driver {self.starts} had started, of driver {before} still ran: {left}")

    def wait_for(self, event: str) -> None:
        """Waits until the driver has reported an event.

        Raises:
            ScenarioError: it ends or gets stuck before.
        """
        self._until(lambda: self.event(event) is not None, f'tells "{event}"')

    def ended(self) -> bool:
        """Whether the driver has ended."""
        return self._driver is not None and self._driver.pid is None

    def wait_until_gone(self) -> None:
        """Waits until all processes of drivers that ended have ended too.

        Raises:
            ScenarioError: they don't.
        """
        deadline = time.monotonic() + _END_SECS
        while left := self._processes.find():
            if time.monotonic() > deadline:
                raise ScenarioError(f"{_END_SECS:.0f} s after the end of the driver still run: {left}")
            time.sleep(_POLL_SECS)

    def event(self, name: str) -> dict[str, Any] | None:
        """Returns an event of the present driver, or None if it has not happened."""
        path = self._file("events")
        lines = path.read_bytes().splitlines() if path.exists() else []
        return next((event for event in map(json.loads, lines) if event["event"] == name), None)

    def reason(self) -> str:
        """Returns what the present driver gave as its reason to end, or the end of its log."""
        event = self.event("refused")
        if event is not None:
            return f"{event['kind']}: {event['reason']}"
        return self._file("log").read_text(errors="replace")[-_TAIL_BYTES:]

    def log(self) -> str:
        """Returns what the present driver printed."""
        return self._file("log").read_text(errors="replace")

    # --- progress ---------------------------------------------------------------

    def moments(self, times: int, lasting: float = 0.0) -> Iterator[int]:
        """Waits for a number of random moments, spread over the run, and yields their numbers.

        Args:
            times: how many.
            lasting: seconds that each fault lasts, in which messages may be acked; some are left after the last one.

        Raises:
            ScenarioError: the driver ends or gets stuck before.
        """
        last = last_share(self.load, lasting)
        for number in range(times):
            share = _FIRST_SHARE + (last - _FIRST_SHARE) * (number + self.rng.random()) / times
            wanted = share * self.load.messages
            self._until(lambda wanted=wanted: self._acked() >= wanted, f"acks {wanted:.0f} messages")  # type: ignore[misc]
            # The moment within a micro-batch is random.
            time.sleep(self.rng.uniform(0, 0.3))
            yield number

    def shuffled(self, items: Iterable[T]) -> list[T]:
        """Returns the items in random order."""
        found = list(items)
        self.rng.shuffle(found)
        return found

    def _acked(self) -> int:
        return ledger.count(self.ledger, ledger.ACKS)

    def injected(self, what: str, proof: str, over: int) -> Injection:
        """Records a fault that has happened, and waits until the topology has recovered from it.

        Raises:
            ScenarioError: it does not recover.
        """
        injection = Injection(what, proof, over, cold=not self.has_committed(0))
        self.injections.append(injection)
        self._until(lambda: self._recovered(injection), f"recovers from {what}")
        return injection

    def _recovered(self, injection: Injection) -> bool:
        injection.recovery_secs = ledger.resumed(self.ledger, injection.over)
        return injection.recovery_secs is not None

    def recovers(self, moment: int) -> bool:
        """Waits until the topology has progressed since `moment` (True) or its driver has ended (False)."""
        self._until(lambda: self.ended() or self.has_recovered_since(moment), "recovers", ended=True)
        return self.has_recovered_since(moment)

    def has_recovered_since(self, moment: int) -> bool:
        """Whether of each spout task a message is acked that was emitted after `moment`."""
        return self._recovered(Injection("", "", moment))

    # --- the end ---------------------------------------------------------------

    def check_nothing_left(self) -> None:
        """Records processes, temporary files and locks that the run left behind."""
        deadline = time.monotonic() + _END_SECS
        while (left := self._processes.find()) and time.monotonic() < deadline:
            time.sleep(_POLL_SECS)
        if left:
            self.problems.append(f"processes left behind: {left}")
        files = [str(path.relative_to(self.temporary)) for path in self.temporary.iterdir()]
        # Where the path of the temporary folder is too long for sockets, they go to /tmp.
        files += [str(path) for pid in self._pids for path in Path("/tmp").glob(f"storm-on-spark-{pid}-*")]  # noqa: S108
        if files:
            self.problems.append(f"temporary files left behind: {sorted(files)}")
        if self.store is not None:
            return
        halves = [str(path.relative_to(self.checkpoint)) for path in self.checkpoint.rglob("*.tmp")]
        if halves:
            self.problems.append(f"half-written files in the checkpoint: {sorted(halves)}")
        with (self.checkpoint / "storm" / "lock").open() as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                self.problems.append("the checkpoint is still locked")

    def end(self) -> None:
        """Kills all remaining processes of the run."""
        self._processes.signal(signal.SIGKILL)
        if self._driver is not None:
            self._driver.end()
        self.cleanup.close()

    def _until(self, condition: Callable[[], bool], what: str, *, ended: bool = False) -> None:
        """Waits for a condition as long as there is progress."""
        moved, seen = time.monotonic(), -1
        while not condition():
            if not ended and self.ended():
                raise ScenarioError(f"the driver ended with status {self._wait(0)} before it {what}: {self.reason()}")
            now = sum(ledger.count(self.ledger, kind) for kind in (ledger.EMITS, ledger.ACKS, ledger.SINK))
            if now != seen:
                moved, seen = time.monotonic(), now
            elif time.monotonic() - moved > _STUCK_SECS:
                raise ScenarioError(f"nothing has moved for {_STUCK_SECS:.0f} s, before the driver {what}")
            time.sleep(_POLL_SECS)

    def _wait(self, timeout: float) -> int:
        assert self._driver is not None
        self._driver.wait(timeout)
        status = self._driver.exit_code
        if status is None:
            raise ScenarioError(f"the driver did not end within {timeout:.0f} s")
        return status

    def _file(self, kind: str) -> Path:
        suffix = {"events": "jsonl", "settings": "json", "log": "log"}[kind]
        return self.folder / f"driver-{self.starts}-{kind}.{suffix}"
