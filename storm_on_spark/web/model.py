"""What the pages show, wherever it comes from: a cluster, or a single run.

A `Site` gives views of what there is at the moment. Counters, latencies and errors of a topology are its
`TopologyInfo`, which every view of a run has in common.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal, Protocol

from storm_on_spark.api.errors import StormError
from storm_on_spark.api.info import ComponentInfo, ErrorInfo, TopologyInfo
from storm_on_spark.api.streams.constants import is_system_id
from storm_on_spark.runtime.samples.events import TupleEvent

ActionName = Literal["activate", "deactivate", "rebalance", "kill", "sample", "log-level"]


class RefusedError(StormError):
    """An action that is not offered here, or makes no sense."""


@dataclass(frozen=True)
class Part:
    """A component as it was compiled."""

    id: str
    kind: str
    """The value of its `ComponentKind`."""
    tasks: tuple[int, ...]
    executors: int
    stage: int | None = None
    why: str = ""
    """Why it is in that stage; empty where that is not known."""

    @property
    def is_spout(self) -> bool:
        """Whether it is one."""
        return self.kind.endswith("spout")


@dataclass(frozen=True)
class Link:
    """A subscription."""

    source: str
    stream: str
    target: str
    grouping: str
    becomes: str = ""
    """What it is in Spark; empty where that is not known."""


@dataclass(frozen=True)
class PlannedOperator:
    """An operator of the plan that runs."""

    becomes: str
    """What Spark executes it as."""
    exchange: bool
    stages: tuple[tuple[int, str, tuple[str, ...]], ...]
    """Number, kind and components of its stages."""


@dataclass(frozen=True)
class Shape:
    """The components of a topology, what is between them, and what they became."""

    parts: Mapping[str, Part] = field(default_factory=dict)
    links: tuple[Link, ...] = ()
    operators: tuple[PlannedOperator, ...] = ()
    partitions: int | None = None
    ackers: int = 0


@dataclass(frozen=True)
class PlacedError:
    """An error, and where it happened."""

    error: ErrorInfo
    where: str = ""
    """`host:port` of the driver; empty for a single run."""
    before_restart: bool = False


@dataclass(frozen=True)
class TopologyView:
    """A topology at one moment."""

    id: str
    name: str
    status: str
    uptime_secs: float
    info: TopologyInfo | None = None
    """None before its driver said anything."""
    looked_at: float = 0.0
    """When `info` was true, in seconds since the epoch."""
    shape: Shape = Shape()  # it never changes
    conf: Mapping[str, Any] = field(default_factory=dict)
    """Without secrets."""
    errors: tuple[PlacedError, ...] = ()
    """Oldest first."""
    owner: str = ""
    driver: str = ""
    """`host:port`; empty while none runs, and for a single run."""
    supervisor: str = ""
    """Id of the driver's supervisor."""
    waits: str = ""
    """Why it has no slot."""
    heartbeats_unknown: str = ""
    """Why nothing is known of its driver's heartbeats; empty if something is."""
    replicas: tuple[str, ...] = ()
    """Nimbuses that have its code."""
    replicas_wanted: int = 0

    def component(self, name: str) -> ComponentInfo | None:
        """Returns the counters of a component, zeroes before its first; None if there is no such component."""
        counted = None if self.info is None else self.info.components.get(name)
        if counted is not None:
            return counted
        part = self.shape.parts.get(name)
        return None if part is None else ComponentInfo(name, part.kind, len(part.tasks))

    @property
    def pointless(self) -> tuple[ActionName, ...]:
        """The actions that its page has no button for: they change nothing now, or are on other pages."""
        now: dict[str, tuple[ActionName, ...]] = {"ACTIVE": ("activate",), "INACTIVE": ("deactivate",)}
        return ("sample", "log-level", *now.get(self.status, ()))

    @property
    def components(self) -> list[ComponentInfo]:
        """The counters of all components: spouts first, then bolts, by name."""
        counted = () if self.info is None else self.info.components
        names = list(self.shape.parts or counted)
        found = [part for name in names if not is_system_id(name) and (part := self.component(name)) is not None]
        return sorted(found, key=lambda part: (not part.kind.endswith("spout"), part.id))

    @property
    def driver_status(self) -> str:
        """What its driver says; what is wanted of it while nothing is said, or if both are the same."""
        return self.status if self.info is None or self.status in ("KILLED", "REBALANCING") else self.info.status


@dataclass(frozen=True)
class Change:
    """What somebody changed."""

    time: float
    """Seconds since the epoch."""
    who: str
    what: str
    topology: str = ""
    """Its id; empty for what is the site's."""


@dataclass(frozen=True)
class LogFile:
    """A log that can be read."""

    id: str
    """Names it in links."""
    where: str
    """The host; empty for this one."""
    size: int
    changed_at: float
    name: str = ""
    """How people call it; by default as links do."""

    @property
    def title(self) -> str:
        """Its name, and where it is."""
        return (self.name or self.id) + (f" on {self.where}" if self.where else "")


@dataclass(frozen=True)
class LogPart:
    """A part of a log."""

    text: str
    start: int
    """The number of its first byte."""
    size: int
    """Of the whole log at that moment."""


@dataclass(frozen=True)
class ChangedLevel:
    """The level of a logger that was changed while a topology runs."""

    logger: str
    level: str
    until: float | None = None
    """Seconds since the epoch; None without a limit."""


@dataclass(frozen=True)
class Daemon:
    """A Nimbus, a supervisor, a Pacemaker or a ZooKeeper, and what is known of it."""

    id: str
    address: str
    status: str
    uptime_secs: float | None = None
    version: str = ""
    notes: tuple[str, ...] = ()
    slots: int = 0
    used: int = 0


@dataclass(frozen=True)
class ClusterView:
    """The daemons of a cluster."""

    leader: str
    """`host:port`; empty without one."""
    this: str
    """The Nimbus that answers."""
    nimbuses: tuple[Daemon, ...]
    supervisors: tuple[Daemon, ...]
    pacemakers: tuple[Daemon, ...]
    zookeeper: Daemon
    stale_since: float | None = None
    heartbeats_unknown: str = ""
    """Why nothing is known of heartbeats; empty if something is."""
    problems: tuple[str, ...] = ()
    conf: Mapping[str, Any] = field(default_factory=dict)
    """Of this Nimbus, without secrets."""


@dataclass(frozen=True)
class Samples:
    """Samples of a topology's tuples."""

    rates: Mapping[str, float] = field(default_factory=dict)
    """Which share is sampled, in per cent, by component; `*` stands for the others."""
    events: tuple[TupleEvent, ...] = ()
    """The last ones, oldest first."""


ALL_ACTIONS: Final[tuple[ActionName, ...]] = ("activate", "deactivate", "rebalance", "kill", "sample", "log-level")


class Subjects(Protocol):
    """What every kind of site has: a title, and subjects that actions change. Any thread may call it."""

    @property
    def title(self) -> str:
        """What the site is called."""

    @property
    def actions(self) -> Sequence[str]:
        """Those that are offered."""

    def act(self, subject: str, action: Any, options: Mapping[str, str], who: str) -> str:
        """Changes a subject.

        Args:
            subject: which.
            action: one of `actions`.
            options: as the form has them.
            who: the user.

        Returns:
            What was done, as a sentence.

        Raises:
            StormError: it was not done.
        """


class Site(Subjects, Protocol):
    """Topologies to see, and what can be changed."""

    @property
    def is_cluster(self) -> bool:
        """Whether there may be several topologies, and daemons."""

    @property
    def actions(self) -> Sequence[ActionName]:
        """Those that are offered."""

    def now(self) -> float:
        """Returns seconds since the epoch."""

    def cluster(self) -> ClusterView | None:
        """Returns the daemons; None for a single run."""

    def topologies(self) -> list[TopologyView]:
        """Returns all topologies, by name, without their errors."""

    def topology(self, topology_id: str) -> TopologyView:
        """Returns one.

        Raises:
            NotAliveError: there is none of that id.
        """

    def samples(self, topology_id: str) -> Samples:
        """Returns the last samples of a topology's tuples; none where they can't be read."""

    def act(self, subject: str, action: ActionName, options: Mapping[str, str], who: str) -> str:
        """Changes a topology.

        Args:
            subject: its id.
            action: what is to be done.
            options: as the form has them: `wait` in seconds; `component` and `percent` of what is to be sampled;
                `logger`, `level` and `secs` of a log level.
            who: the user.

        Returns:
            What was done, as a sentence.

        Raises:
            RefusedError: that is not offered, or an option makes no sense.
            ClusterError: the leader refuses it, or none is known.
        """

    def log_levels(self, topology_id: str) -> list[ChangedLevel]:
        """Returns the levels of a topology's loggers that were changed and still count, by logger."""

    def changes(self, topology_id: str = "") -> list[Change]:
        """Returns what was changed, newest first; of one topology, or of all."""

    def logs(self, topology_id: str) -> list[LogFile]:
        """Returns the logs of a topology; all for an empty id."""

    def read_log(self, log: str, start: int, length: int) -> LogPart:
        """Returns a part of a log.

        Args:
            log: its id.
            start: the first byte; negative counts from the end.
            length: most bytes.

        Raises:
            NotAliveError: there is no such log.
        """
