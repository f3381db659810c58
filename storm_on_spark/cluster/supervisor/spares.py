"""Spare drivers: started before they are needed, so that a topology doesn't wait for Spark."""

from __future__ import annotations

import logging
import shutil
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from storm_on_spark.cluster.driver.files import RunFolder, SpareSpec
from storm_on_spark.cluster.errors import ClusterError
from storm_on_spark.cluster.security.user_token import TOKEN_PATH, token_path
from storm_on_spark.cluster.supervisor.process import DriverProcess, is_free, launch
from storm_on_spark.launch.conf_text import spark_conf

log = logging.getLogger(__name__)

_MODULE = "storm_on_spark.cluster.driver.spare"
_AGAIN_SECS = 60.0
"""Until the next start after a spare that died."""


@dataclass
class Spare:
    """A spare driver."""

    folder: RunFolder
    process: DriverProcess

    @property
    def ready(self) -> bool:
        """Whether it waits for a topology."""
        beat = self.folder.beat()
        return beat is not None and beat.message == "ready" and self.process.state() == "alive"


class Spares:
    """Keeps a number of spare drivers.

    Args:
        folder: for their files.
        logs: for their logs.
        count: how many; none for 0.
        conf: the cluster's configuration. A spare has its settings of Spark, so it serves topologies that have none of
            their own.
    """

    def __init__(self, folder: Path, logs: Path, count: int, conf: Mapping[str, Any]) -> None:
        self._folder = folder
        self._logs = logs
        self.count = count
        self._conf = dict(conf)
        self.warm: list[Spare] = []
        self._not_before = 0.0

    def keep(self, now: float, busy: bool) -> None:
        """Starts a spare if one is missing and no driver is being started.

        Args:
            now: seconds, of a monotonic clock.
            busy: whether a driver is being started.
        """
        for spare in [spare for spare in self.warm if spare.process.state() != "alive"]:
            log.warning("spare driver %d ended; see %s", spare.process.pid, self._logs / "spare.log")
            spare.process.kill()
            self.warm.remove(spare)
            self._not_before = now + _AGAIN_SECS
        if len(self.warm) >= self.count or busy or now < self._not_before:
            return
        self._sweep()
        folder = RunFolder(self._folder / uuid.uuid4().hex[:12])
        temporary = folder.path / "tmp"
        try:
            temporary.mkdir(mode=0o700, parents=True)
            folder.write(SpareSpec(cluster=self._conf))
            environment = {"TMPDIR": str(temporary), "XDG_STATE_HOME": str(self._logs), TOKEN_PATH: str(token_path())}
            process = launch(folder, self._logs / "spare.log", environment, _MODULE)
        except (OSError, ClusterError) as error:
            log.warning("no spare driver: %s", error)
            self._not_before = now + _AGAIN_SECS
            return
        self.warm.append(Spare(folder, process))

    def take(self, conf: Mapping[str, Any], slot: Path) -> DriverProcess | None:
        """Gives a slot to a spare.

        Args:
            conf: the configuration of the topology that it is to run.
            slot: the slot's folder, with its `DriverSpec`.

        Returns:
            The spare, a driver from now on; None if there is none that is ready, or none with these settings of Spark.
        """
        own = spark_conf(self._conf)
        if any(own.get(key) != value for key, value in spark_conf(conf).items()):
            return None
        for spare in self.warm:
            if spare.ready:
                self.warm.remove(spare)
                spare.folder.give(slot)
                return spare.process
        return None

    def close(self) -> None:
        """Ends them."""
        for spare in self.warm:
            while spare.process.state() != "gone":
                spare.process.kill()
        self.warm.clear()
        self._sweep()

    def _sweep(self) -> None:
        """Removes the folders of spares, and of drivers that were spares, which have ended."""
        if self._folder.is_dir():
            for path in self._folder.iterdir():
                if is_free(RunFolder(path)):
                    shutil.rmtree(path, ignore_errors=True)
