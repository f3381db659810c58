"""One slot of a supervisor: looks at the driver's processes and files, and does what the state machine says."""

from __future__ import annotations

import contextlib
import logging
import shutil
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from pathlib import Path
from typing import Any, Protocol

from storm_on_spark.api.config import Config
from storm_on_spark.cluster.driver.files import DriverSpec, LocalBeat, RunFolder
from storm_on_spark.cluster.errors import ClusterError, CodeError
from storm_on_spark.cluster.records import CodeManifest, StormBase
from storm_on_spark.cluster.security.user_token import TOKEN_PATH, token_path
from storm_on_spark.cluster.supervisor.code import CodeStore, Ready, overlaid
from storm_on_spark.cluster.supervisor.process import DRIVER, DriverProcess, find, launch
from storm_on_spark.cluster.supervisor.slots import (
    Clean,
    Fetch,
    Instruction,
    Kill,
    Launch,
    Phase,
    Report,
    Seen,
    Slot,
    Stop,
    Timeouts,
    Wanted,
    step,
)
from storm_on_spark.launch.settings import CheckpointSettings

log = logging.getLogger(__name__)


class Cluster(Protocol):
    """The part of the supervisor that a slot uses."""

    def topology(self, topology_id: str) -> tuple[StormBase, CodeManifest]:
        """Returns what is known of a topology.

        Raises:
            CodeError: nothing, or not all.
        """

    def run(self, work: Callable[[], Any]) -> Future[Any]:
        """Runs something slow, such as I/O over the network, on another thread."""

    def spare(self, conf: Mapping[str, Any], slot: Path) -> DriverProcess | None:
        """Gives a slot to a spare driver, if there is one for such a topology."""

    def report(self, topology_id: str, message: str, port: int) -> None:
        """Reports an error to the users of the topology."""

    def driver_gone(self, topology_id: str, pid: int) -> None:
        """Removes the node by which a dead driver owned its topology."""


class SlotHost:
    """One slot.

    Args:
        port: its number.
        folder: the slot's own folder.
        logs: where the drivers' logs go, as Storm's `workers-artifacts`.
        store: brings code.
        cluster: the supervisor.
        conf: its configuration.
        timeouts: of drivers.
        driver: module that runs as the driver.
    """

    def __init__(
        self,
        port: int,
        folder: Path,
        logs: Path,
        store: CodeStore,
        cluster: Cluster,
        conf: Mapping[str, Any],
        timeouts: Timeouts,
        driver: str = DRIVER,
    ) -> None:
        self.port = port
        self.slot = Slot()
        self._files = RunFolder(folder)
        self._logs = logs
        self._store = store
        self._cluster = cluster
        self._conf = conf
        self._timeouts = timeouts
        self._driver = driver
        self._process: DriverProcess | None = None
        self._fetching: tuple[Wanted, Future[Ready]] | None = None
        self._number = -1
        self._beat: LocalBeat | None = None
        self._beat_at: float | None = None
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)

    @property
    def pid(self) -> int | None:
        """The process id of the driver that was started or found last."""
        return None if self._process is None else self._process.pid

    def attach(self, now: float) -> None:
        """Finds the driver that an earlier supervisor started here.

        Raises:
            ClusterError: an unknown process holds the folder's lock.
        """
        found = find(self._files)
        file = self._files.process() if found is None else found[1]
        if file is None:
            return
        # Also of one that has ended: its last heartbeat may say that the topology is complete.
        self._process = found[0] if found is not None else DriverProcess(file.pid, file.started, gone=True)
        self.slot = Slot(Phase.RUNNING, Wanted(file.assignment, file.assignment_version), now)
        what = "runs" if found else "has ended"
        log.info("slot %d: driver %d of %s %s", self.port, file.pid, file.assignment.topology_id, what)

    def look(self, now: float, known: bool, wanted: Wanted | None) -> bool:
        """Looks at the slot and carries out the instructions of `step`.

        Returns:
            Whether there may be more to do at once: the slot has come to another phase.
        """
        seen = self._see(now, known, wanted)
        before = self.slot
        self.slot, instructions = step(before, seen, self._timeouts)
        if self.slot.phase is not before.phase:
            what = "" if self.slot.current is None else f" ({self.slot.current.topology_id})"
            log.info("slot %d: %s -> %s%s", self.port, before.phase.value, self.slot.phase.value, what)
        for instruction in instructions:
            self._do(instruction)
        return self.slot.phase is not before.phase

    def stop(self, hard: bool) -> bool:
        """Ends the driver, whatever it is to run; returns whether nothing is left of it."""
        if self._process is None or self._process.state() == "gone":
            return True
        self._process.kill() if hard else self._process.terminate()
        return False

    def _see(self, now: float, known: bool, wanted: Wanted | None) -> Seen:
        beat = self._files.beat() if self._process is not None else None
        if beat is not None and beat.number != self._number:
            self._number, self._beat, self._beat_at = beat.number, beat, now
        code, error = None, None
        if self._fetching is not None and self._fetching[1].done():
            failure = self._fetching[1].exception()
            if failure is None:
                code = self._fetching[0]
            else:
                error = str(failure) if isinstance(failure, ClusterError) else repr(failure)
        return Seen(
            now=now,
            known=known,
            wanted=wanted,
            code=code,
            code_error=error,
            process="gone" if self._process is None else self._process.state(),
            beat_at=self._beat_at,
            running=self._beat is not None and self._beat.step == "running",
            finished=self._beat is not None and self._beat.step == "ended" and self._beat.status == "COMPLETED",
        )

    def _do(self, instruction: Instruction) -> None:
        if isinstance(instruction, Fetch):
            wanted = instruction.wanted
            self._fetching = wanted, self._cluster.run(lambda: self._prepare(wanted))
        elif isinstance(instruction, Launch):
            self._launch(instruction.wanted)
        elif isinstance(instruction, Stop):
            assert self._process is not None
            log.info("slot %d: asking driver %d to end", self.port, self._process.pid)
            self._process.terminate()
        elif isinstance(instruction, Kill):
            assert self._process is not None
            log.warning("slot %d: killing what is left of driver %d", self.port, self._process.pid)
            self._process.kill()
        elif isinstance(instruction, Clean):
            self._clean(instruction.wanted)
        elif isinstance(instruction, Report):
            log.error("slot %d: %s: %s", self.port, instruction.wanted.topology_id, instruction.message)
            self._cluster.report(instruction.wanted.topology_id, instruction.message, self.port)

    def _prepare(self, wanted: Wanted) -> Ready:
        base, manifest = self._cluster.topology(wanted.topology_id)
        if wanted.assignment.launch < base.launch:
            # Of an earlier launch: late, or a copy.
            raise CodeError(
                f"the assignment of {wanted.topology_id} is for launch {wanted.assignment.launch}; "
                f"launch {base.launch} is wanted"
            )
        return self._store.prepare(manifest, self._files.code)

    def _launch(self, wanted: Wanted) -> None:
        assert self._fetching is not None
        ready = self._fetching[1].result()
        artifacts = self._logs / wanted.topology_id / str(self.port)
        output = artifacts / "worker.log"
        temporary = self._files.path / "tmp"
        self._process = None
        self._number, self._beat, self._beat_at = -1, None, None
        try:
            base, _ = self._cluster.topology(wanted.topology_id)
            self._files.clear()
            conf = overlaid(ready.unpacked.conf, base.conf)
            self._files.write(
                DriverSpec(
                    name=base.name,
                    assignment=wanted.assignment,
                    assignment_version=wanted.version,
                    target=ready.unpacked.target,
                    paths=(str(ready.unpacked.folder),),
                    packages=() if ready.packages is None else (str(ready.packages),),
                    conf=conf,
                    executors=base.executors,
                    checkpoint=_checkpoint(base.name, conf),
                    log=str(output),
                    cluster=dict(self._conf),
                )
            )
            temporary.mkdir(mode=0o700, exist_ok=True)
            environment = {"TMPDIR": str(temporary), "XDG_STATE_HOME": str(artifacts), TOKEN_PATH: str(token_path())}
            spare = self._cluster.spare(conf, self._files.path)
            self._process = spare or launch(self._files, output, environment, self._driver)
        except (OSError, ClusterError) as error:
            log.error("slot %d: %s can't be started: %s", self.port, wanted.topology_id, error)
            self._cluster.report(wanted.topology_id, f"the driver can't be started: {error}", self.port)
            return
        log.info("slot %d: started driver %d of %s", self.port, self._process.pid, wanted.topology_id)

    def _clean(self, wanted: Wanted) -> None:
        if self._process is not None:
            self._cluster.driver_gone(wanted.topology_id, self._process.pid)
        (self._files.path / "driver.json").unlink(missing_ok=True)  # it may hold secrets
        for folder in (self._files.code, self._files.path / "tmp"):
            with contextlib.suppress(FileNotFoundError):
                shutil.rmtree(folder)


def _checkpoint(name: str, conf: Mapping[str, Any]) -> str:
    """Returns where the topology's checkpoint is; Nimbus decides that when it is submitted."""
    chosen = CheckpointSettings.of(conf).folder
    if chosen:
        return chosen
    raise CodeError(f"{name} has no {Config.TOPOLOGY_CHECKPOINT_DIR}, which a Nimbus sets when it is submitted")
