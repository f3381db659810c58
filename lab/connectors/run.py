"""One run: a broker, a topic, and drivers that are killed and started again."""

from __future__ import annotations

import json
import os
import random
import signal
import sys
from dataclasses import replace
from pathlib import Path
from typing import Final

from deltalake import DeltaTable
from deltalake.exceptions import TableNotFoundError

from lab.connectors.pipeline import COPIES, GROUP, PARTITIONS, TOPIC, Job
from lab.suite import ROOT
from lab.suite.processes import Marked, wait_for
from lab.suite.scenario import Injection, ScenarioError
from storm_on_spark.connectors.kafka.server import KafkaServer
from storm_on_spark.connectors.kafka.topics import create
from storm_on_spark.runtime.processes.kept_program import KeptProcess

_STUCK_SECS: Final = 240.0
_LAST_WORDS: Final = 600
_WORDS: Final = {"worker": "worker_daemon", "spout host": "spout_host"}
"""Texts in the command lines of processes that can be killed, other than the driver."""


class Run:
    """One run.

    Args:
        folder: for all that it leaves; made.
        messages: in the topic.
        rng: decides when faults happen.
        patience: factor on the times allowed.
    """

    def __init__(self, folder: Path, messages: int, rng: random.Random, patience: float) -> None:
        folder.mkdir(parents=True)
        self.folder = folder
        self.messages = messages
        self.rng = rng
        self.injections: list[Injection] = []
        #: Numbers whose records were deleted before they were read, if that is the fault.
        self.gone: set[int] = set()
        #: Numbers that are in the tables but in no state: their micro-batch was not committed before their records were
        #: deleted.
        self.uncounted: set[int] = set()
        self.copies = False
        self._patience = patience
        self._marked = Marked("STORM_CONNECTOR_FAULTS")
        self._driver: KeptProcess | None = None
        self._generation = 0
        self.server = KafkaServer(folder / "kafka")

    # --- what runs ---------------------------------------------------------------

    def begin(self, *, plain: bool = False, copies: bool = False) -> None:
        """Starts the broker, fills the topic, and starts the first driver."""
        self.copies = copies
        self.server.start()
        servers = self.server.bootstrap_servers
        _fill(servers, self.messages)
        if copies:
            create(servers, {COPIES: PARTITIONS})
        self.job = Job(servers, self.messages, plain=plain, copies=copies)
        self.start()

    def start(self, *, earliest: bool = False) -> None:
        """Starts a driver."""
        replace(self.job, earliest=earliest).save(self.folder)
        (self.folder / "error").unlink(missing_ok=True)
        self._generation += 1
        command = [sys.executable, "-m", "lab.connectors.pipeline", str(self.folder)]
        environment = {**os.environ, **self._marked.environment(self._generation)}
        self._driver = KeptProcess("connectors-driver", command, ROOT, self.folder / "driver.log", environment)

    def kill(self) -> str:
        """Kills the driver and its processes; returns the proof."""
        assert self._driver is not None
        self._driver.send(signal.SIGKILL)
        self._driver.wait(30)
        status = self._driver.exit_code
        if status != -signal.SIGKILL:
            raise ScenarioError(f"the driver was to be killed, and had ended with {status}: {self.last_words()}")
        self._end_rest()
        return f"process {self._driver.leader} ended with {status}"

    def kill_one(self, victim: str) -> str:
        """Kills a Python worker or the spout host, which is restarted automatically; returns the proof."""
        word = _WORDS[victim]

        def members() -> list[int]:
            return sorted(pid for pid, command in self._marked.find(self._generation).items() if word in command)

        self.wait(members, f"a {victim}")
        pid = self.rng.choice(members())
        os.kill(pid, signal.SIGKILL)
        self.wait(lambda: pid not in members(), f"the end of process {pid}", 10)
        return f"process {pid} is gone"

    def ended(self, timeout: float = 120) -> str:
        """Waits until the topology has ended by itself; returns its error."""
        assert self._driver is not None
        driver = self._driver
        self.wait(lambda: driver.pid is None, "the end of the topology", timeout, alive=False)
        self._end_rest()
        path = self.folder / "error"
        return path.read_text("utf-8") if path.exists() else self.last_words()

    def rows(self) -> int:
        """Returns how many rows the table of numbers has."""
        try:
            return int(DeltaTable(self.folder / "rows").count())
        except TableNotFoundError:
            return 0

    def until(self, share: float) -> int:
        """Waits until a share of the messages is in the table; returns their number."""
        wanted = int(self.messages * share)
        self.wait(lambda: self.rows() >= wanted, f"{wanted} rows")
        return self.rows()

    def next_share(self, number: int, times: int, least: float = 0.08, most: float = 0.8) -> float:
        """Returns at which share of the messages a fault is injected."""
        return least + (most - least) * (number + self.rng.random()) / times

    def complete(self, wanted: int) -> None:
        """Waits until this many rows are committed and no lag is left; then ends the driver."""
        self.wait(lambda: self.rows() >= wanted, f"all {wanted} rows")
        batch = max(int(path.name) for path in self._batches("offsets"))
        self.wait(lambda: any(int(path.name) >= batch for path in self._batches("commits")), f"commit {batch}")
        self.wait(lambda: _lag(self.server.bootstrap_servers) == 0, "a lag of 0")
        self.kill()

    def committed(self, batch: int) -> bool:
        """Returns whether Spark has committed a micro-batch."""
        return any(int(path.name) == batch for path in self._batches("commits"))

    def read_up_to(self) -> dict[int, int]:
        """Returns by partition the offset up to which Spark has read and committed."""
        last = max(int(path.name) for path in self._batches("commits"))
        [offsets] = [path for path in self._batches("offsets") if int(path.name) == last]
        found = json.loads(offsets.read_bytes().rstrip(b"\n").split(b"\n")[-1])[TOPIC]
        return {int(place): int(end) for place, end in found.items()}

    def _batches(self, kind: str) -> list[Path]:
        return [path for path in (self.folder / "checkpoint").rglob(f"{kind}/*") if path.name.isdigit()]

    def wait(self, condition: object, what: str, timeout: float = _STUCK_SECS, *, alive: bool = True) -> None:
        """Waits for a condition; a driver that ends before it is an error unless `alive` is False."""
        assert self._driver is not None
        driver = self._driver

        def found() -> bool:
            if condition():  # type: ignore[operator]
                return True
            if alive and driver.pid is None:
                raise ScenarioError(f"{what}: the driver ended before: {self.last_words()}")
            return False

        wait_for(found, f"{what}; {self.last_words()[-200:]}", timeout * self._patience, 0.25)

    def injected(self, what: str, proof: str) -> None:
        """Notes a fault."""
        self.injections.append(Injection(what, proof))

    def last_words(self) -> str:
        """Returns the end of the drivers' output."""
        error = self.folder / "error"
        log = self.folder / "driver.log"
        said = error.read_text("utf-8") if error.exists() else ""
        return said[:_LAST_WORDS] or (log.read_text("utf-8", "replace")[-_LAST_WORDS:] if log.exists() else "")

    def end_driver(self) -> None:
        """Ends the driver, whatever its condition."""
        if self._driver is not None:
            self._marked.signal(signal.SIGKILL)
            self._driver.end()

    def close(self) -> None:
        """Ends everything."""
        self.end_driver()
        self.server.kill()

    def _end_rest(self) -> None:
        """Waits until a driver's processes have ended by themselves."""
        wait_for(lambda: not self._marked.find(self._generation), "the end of the driver's processes", 60.0)


def _lag(servers: str) -> int:
    """Returns how many records the consumer group has not committed."""
    from kafka import KafkaConsumer, TopicPartition

    consumer = KafkaConsumer(bootstrap_servers=servers, group_id=GROUP)
    try:
        places = [TopicPartition(TOPIC, number) for number in range(PARTITIONS)]
        ends = consumer.end_offsets(places)
        return sum(ends[place] - (consumer.committed(place) or 0) for place in places)
    finally:
        consumer.close(autocommit=False)


def _fill(servers: str, messages: int) -> None:
    from kafka import KafkaProducer

    create(servers, {TOPIC: PARTITIONS})
    producer = KafkaProducer(bootstrap_servers=servers, linger_ms=20)
    for number in range(messages):
        producer.send(TOPIC, str(number).encode(), partition=number % PARTITIONS)
    producer.flush()
    producer.close()
