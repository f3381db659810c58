"""The folder that a supervisor and its driver share.

driver.json     DriverSpec     what to run; written by the supervisor before it starts the driver
process.json    ProcessFile    the driver's process; the driver writes it before anything else
beat.json       LocalBeat      the driver's heartbeat
lock                           held by the driver as long as it lives, from before its first instruction
code/                          the topology's code, verified and unpacked
log-levels.json                logger -> level, where levels were changed while the topology runs
credentials.json               credentials that were pushed to the topology, as long as its driver runs
spare.json      SpareSpec      of a spare driver's own folder
taken                          there: path of the slot's folder that the spare is to run

Everything is for its owner only: a configuration may hold secrets.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from storm_on_spark.cluster.errors import RecordError
from storm_on_spark.cluster.records import MAX_BYTES, Assignment, R, Record, decode, encode


class DriverSpec(Record, frozen=True):
    """The topology that a driver is to run."""

    name: str
    """The topology's."""
    assignment: Assignment
    assignment_version: int
    """The version of the assignment's node: the permission that the driver was started with."""
    target: str
    """What `load` loads the topology by."""
    paths: tuple[str, ...]
    """Folders for the front of the module search path."""
    packages: tuple[str, ...]
    """Folders for its end: what the topology's requirements brought."""
    conf: dict[str, Any]
    """The topology's configuration."""
    executors: dict[str, int]
    """Component -> executors, where they were changed."""
    checkpoint: str
    log: str
    """File that what the driver prints goes to; it keeps it from growing without bound."""
    cluster: dict[str, Any]
    """The cluster's configuration: where ZooKeeper is, and how often heartbeats are due."""


class ProcessFile(Record, frozen=True):
    """The process that runs in the folder."""

    pid: int
    """Also of its session."""
    started: str
    """`started_at` of that process."""
    kernel: str
    """`this_kernel` of it."""
    assignment: Assignment
    assignment_version: int


class LocalBeat(Record, frozen=True):
    """A driver's heartbeat for its supervisor."""

    number: int
    """Grows with each heartbeat: progress of this number, not a clock, shows that the driver lives."""
    step: Literal["starting", "running", "ended"]
    status: str
    """The status of the topology, as in `TopologyInfo`; empty while it starts."""
    message: str = ""
    """Its state, or why it ended."""


class SpareSpec(Record, frozen=True):
    """The arguments of a spare driver."""

    cluster: dict[str, Any]
    """The cluster's configuration."""


_NAMES: dict[type[Record], str] = {
    DriverSpec: "driver.json",
    ProcessFile: "process.json",
    LocalBeat: "beat.json",
    SpareSpec: "spare.json",
}


@dataclass(frozen=True)
class RunFolder:
    """Reads and writes the files.

    Args:
        path: the folder.
    """

    path: Path

    @property
    def code(self) -> Path:
        """Where the code is unpacked."""
        return self.path / "code"

    @property
    def lock(self) -> Path:
        """The file that the driver holds a lock on."""
        return self.path / "lock"

    @property
    def log_levels(self) -> Path:
        """The file by which all processes of the topology learn of changed log levels."""
        return self.path / "log-levels.json"

    @property
    def credentials(self) -> Path:
        """The file by which all processes of the topology learn of its credentials."""
        return self.path / "credentials.json"

    def spec(self) -> DriverSpec:
        """Returns what to run.

        Raises:
            RecordError: there is none, or it is damaged.
        """
        found = self._read(DriverSpec, "driver.json")
        if found is None:
            raise RecordError(f"{self.path} has no driver.json; a supervisor writes it")
        return found

    def process(self) -> ProcessFile | None:
        """Returns the process that runs here, or ran last; None if none has yet.

        Raises:
            RecordError: the file is damaged.
        """
        return self._read(ProcessFile, "process.json")

    def beat(self) -> LocalBeat | None:
        """Returns the last heartbeat; None before the first, or if it can't be read."""
        try:
            return self._read(LocalBeat, "beat.json")
        except RecordError:
            return None

    def spare(self) -> SpareSpec:
        """Returns what a spare driver is started with.

        Raises:
            RecordError: this is not a folder of one.
        """
        found = self._read(SpareSpec, "spare.json")
        if found is None:
            raise RecordError(f"{self.path} has no spare.json; a supervisor writes it")
        return found

    def give(self, slot: Path) -> None:
        """Tells the spare driver of this folder to run what is in the folder of a slot."""
        self._replace("taken", os.fsencode(slot))

    def taken(self) -> Path | None:
        """Returns which slot's folder was given to the spare driver of this one; None if none was."""
        try:
            return Path(os.fsdecode((self.path / "taken").read_bytes()))
        except FileNotFoundError:
            return None

    def write(self, record: DriverSpec | ProcessFile | LocalBeat | SpareSpec) -> None:
        """Writes one of the files atomically."""
        self._replace(_NAMES[type(record)], encode(record))

    def _replace(self, name: str, content: bytes) -> None:
        temporary = self.path / f".{name}.tmp"
        with os.fdopen(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
            file.write(content)
        temporary.replace(self.path / name)

    def clear(self) -> None:
        """Removes what is of one run, so that nothing of it is taken for the next one's."""
        for name in ("beat.json", "process.json", "driver.json", "log-levels.json", "credentials.json"):
            (self.path / name).unlink(missing_ok=True)

    def _read(self, type_: type[R], name: str) -> R | None:
        path = self.path / name
        try:
            with path.open("rb") as file:
                content = file.read(MAX_BYTES + 1)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise RecordError(f"{path} can't be read: {error.strerror}") from error
        return decode(type_, content, str(path))
