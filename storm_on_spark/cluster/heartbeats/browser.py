"""Looking at heartbeats where they are kept, for people."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from storm_on_spark.cluster.errors import PacemakerError, RecordError
from storm_on_spark.cluster.heartbeats.connection import Connection
from storm_on_spark.cluster.heartbeats.login import reader_login
from storm_on_spark.cluster.heartbeats.pulses import PulseReader
from storm_on_spark.cluster.heartbeats.settings import HeartbeatSettings, PacemakerSettings
from storm_on_spark.cluster.heartbeats.values import SUPERVISORS, SupervisorPulse, unpack
from storm_on_spark.cluster.pacemaker.login.identities import LoginSettings
from storm_on_spark.cluster.paths import WORKERBEATS
from storm_on_spark.cluster.records import WorkerBeat
from storm_on_spark.cluster.security.keyring import Keyring
from storm_on_spark.cluster.state.state import ClusterState
from storm_on_spark.cluster.zookeeper.session import ZooKeeperSession
from storm_on_spark.cluster.zookeeper.settings import ZooKeeperSettings
from storm_on_spark.runtime.processes.closing import Service


class Browser(Service):
    """Shows what is at a path such as `/workerbeats/word-count-1-1700000000`."""

    @abstractmethod
    def names(self, path: str) -> list[str]:
        """Returns the names below a path, sorted."""

    @abstractmethod
    def get(self, path: str) -> dict[str, Any] | None:
        """Returns the heartbeat at a path, in terms of JSON; None if there is none.

        Raises:
            RecordError: what is there is no heartbeat of this release.
        """


class PacemakerBrowser(Browser):
    """Asks all Pacemakers; one that answers is enough.

    Args:
        pacemakers: where they are.
        login: how to log in there.
    """

    def __init__(self, pacemakers: PacemakerSettings, login: LoginSettings) -> None:
        log_in = reader_login(login)
        self._readers = [PulseReader(Connection(name, pacemakers, log_in(name))) for name in pacemakers.servers]

    def start(self) -> None:
        """Does nothing: connections are made with the first question."""

    def close(self) -> None:
        """Hangs up."""
        for reader in self._readers:
            reader.close()

    def names(self, path: str) -> list[str]:
        """Returns the names below a path in any Pacemaker, sorted."""
        return sorted({name for reader in self._answering() for name in reader.names(path)})

    def get(self, path: str) -> dict[str, Any] | None:
        """Returns the newest heartbeat at a path; each has its time."""
        values = [value for reader in self._answering() if (value := reader.get(path)) is not None]
        if path.startswith(f"{SUPERVISORS}/"):
            pulses = [SupervisorPulse.from_bytes(value, path) for value in values]
            return msgspec.to_builtins(max(pulses, key=lambda pulse: pulse.time)) if pulses else None
        beats = [unpack(value, path) for value in values]
        return msgspec.to_builtins(max(beats, key=lambda beat: beat.time)) if beats else None

    def _answering(self) -> Iterator[PulseReader]:
        """Yields a reader for each server that answers; the question that follows may still fail, which counts too."""
        problems = []
        for reader in self._readers:
            try:
                reader.names("/")
            except PacemakerError as error:
                problems.append(str(error))
            else:
                yield reader
        if len(problems) == len(self._readers):
            raise PacemakerError("; ".join(problems))


class ZooKeeperBrowser(Browser):
    """Asks ZooKeeper.

    Args:
        settings: which ZooKeeper.
        keyring: verifies records.
    """

    def __init__(self, settings: ZooKeeperSettings, keyring: Keyring) -> None:
        self._session = ZooKeeperSession(settings, keyring=keyring)

    def start(self) -> None:
        """Connects."""
        self._session.start()

    def close(self) -> None:
        """Hangs up."""
        self._session.close()

    def names(self, path: str) -> list[str]:
        """Returns the names below a path, sorted."""
        return ClusterState(self._session).children(*_parts(path))

    def get(self, path: str) -> dict[str, Any] | None:
        """Returns the heartbeat at a path; None if there is none."""
        parts = _parts(path)
        found = ClusterState(self._session).get(WorkerBeat, *parts) if len(parts) > 1 else None
        return None if found is None else msgspec.to_builtins(found[0])


def browser(conf: Mapping[str, Any]) -> Browser:
    """Returns a browser of a cluster's heartbeats.

    Raises:
        ConfigError: the configuration makes no sense.
    """
    settings = HeartbeatSettings.from_conf(conf)
    if settings.pacemakers is not None:
        return PacemakerBrowser(settings.pacemakers, settings.login)
    return ZooKeeperBrowser(ZooKeeperSettings.from_conf(conf), Keyring.of(settings.security))


def _parts(path: str) -> tuple[str, ...]:
    parts = tuple(part for part in path.split("/") if part)
    if parts[:1] != (WORKERBEATS,):
        raise RecordError(f"heartbeats are below /{WORKERBEATS}, not at {path!r:.80}")
    return parts
