"""The contents of znodes: typed records, as JSON with a version.

Every reader of a record checks it: its size, its version, every field's type. A field that this version does not know
is refused like any other damage; a change of a record's fields is a new `VERSION`.

Records that make a daemon run code, delete something or connect to an address are `signed` if the cluster has a
secret: see `storm_on_spark.cluster.security.keyring`.
"""

from __future__ import annotations

from typing import Any, ClassVar, Literal, TypeVar

import msgspec

from storm_on_spark.api.text.wording import other_format
from storm_on_spark.cluster.errors import FormatError, RecordError
from storm_on_spark.cluster.plan_summary import PlanSummary

VERSION = 1
"""Stands in every record as `format`: `version` is a field of some."""
MAX_BYTES = 1 << 20
"""ZooKeeper's own limit of a znode (`jute.maxbuffer`)."""

Status = Literal["ACTIVE", "INACTIVE", "KILLED", "REBALANCING"]
"""Storm's statuses of a topology."""

Conf = dict[str, Any]


class Record(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Base of what is kept in a znode."""

    VERSION: ClassVar[int] = VERSION
    """The version of the record's fields; 0 for nodes of Spring XD, which have no version."""
    signed: ClassVar[bool] = False
    """Whether the record is valid only with a signature by the cluster's secret, if there is one."""


class NimbusSummary(Record, frozen=True):
    """A Nimbus that is up; ephemeral."""

    signed: ClassVar[bool] = True
    host: str
    port: int
    """The port of its REST interface."""
    started_at: float
    """Seconds since the epoch."""
    version: str = msgspec.field(name="release")
    """The release of Storm on Spark. `version` in the node is that of the record's format."""

    @property
    def address(self) -> str:
        """`host:port`, which is also what a Nimbus is called elsewhere."""
        return f"{self.host}:{self.port}"


class LeaderInfo(Record, frozen=True):
    """The leader. Leaders' writes are fenced by the node's ZooKeeper version."""

    signed: ClassVar[bool] = True
    address: str
    epoch: int
    """Grows with every leadership: the transaction id of the leader's node in the queue for the lock."""
    since: float


class ArtifactInfo(Record, frozen=True):
    """One file of a topology's code."""

    name: str
    size: int
    sha256: str
    """64 lower-case hexadecimal digits."""


class CodeManifest(Record, frozen=True):
    """The parts of a topology's code, and where they are."""

    signed: ClassVar[bool] = True
    topology_id: str
    artifacts: tuple[ArtifactInfo, ...]
    uploader: str
    """Address of the Nimbus that took it in."""
    uploaded_at: float
    distributor: str
    """Short name of the code distributor that keeps it."""
    metafile: str
    """What that distributor needs to find it again."""
    plan: PlanSummary | None = None
    """Its compiled plan, for readers that don't need the code."""


class Submission(Record, frozen=True):
    """A submission that is under way; the visible state while replicas are awaited."""

    signed: ClassVar[bool] = True
    key: str
    """Chosen by the client. A submission that is sent again, even to another leader, has the same key."""
    topology_id: str
    name: str
    owner: str
    conf: Conf
    initial_status: Literal["ACTIVE", "INACTIVE"]
    submitted_at: float
    step: Literal["storing", "replicating"]


class NameClaim(Record, frozen=True):
    """Which topology has a name: written with its submission, removed with the topology, each in one transaction."""

    topology_id: str


class Transition(Record, frozen=True):
    """The operation that follows the wait of a topology."""

    kind: Literal["kill", "rebalance"]
    due_at: float
    """Seconds since the epoch, by ZooKeeper's clock: leaders' own may differ. See `ClusterClock`."""
    previous: Status
    conf: Conf = {}
    """In a rebalance: configuration to change."""
    executors: dict[str, int] = {}
    """In a rebalance: component -> executors."""


class StormBase(Record, frozen=True):
    """A topology that was submitted."""

    signed: ClassVar[bool] = True
    topology_id: str
    name: str
    owner: str
    status: Status
    submitted_at: float
    launch: int
    """The launch of its driver that is wanted; a rebalance asks for the next one."""
    conf: Conf
    """The topology's whole configuration, without secrets."""
    executors: dict[str, int] = {}
    """Component -> executors, where a rebalance changed them."""
    submission_key: str = ""
    transition: Transition | None = None
    debug: dict[str, float] = {}
    """The share of tuples that is sampled, in per cent, by component; `*` stands for all others."""


class Assignment(Record, frozen=True):
    """The slot for a topology's driver. A driver may own its topology only while this node is unchanged."""

    signed: ClassVar[bool] = True
    topology_id: str
    supervisor_id: str
    host: str
    port: int
    """The slot."""
    launch: int
    epoch: int
    """The epoch of the leader that wrote it."""
    assigned_at: float


class SupervisorInfo(Record, frozen=True):
    """A supervisor that is up; ephemeral."""

    signed: ClassVar[bool] = True
    supervisor_id: str
    host: str
    slots: tuple[int, ...]
    started_at: float
    version: str = msgspec.field(name="release")
    """The release of Storm on Spark. `version` in the node is that of the record's format."""
    heartbeat_at: float
    logs: str = ""
    """Address `host:port` where its drivers' logs can be read; empty if nowhere."""


class Ownership(Record, frozen=True):
    """The driver that runs a topology; ephemeral. There is at most one."""

    topology_id: str
    supervisor_id: str
    host: str
    port: int
    pid: int
    launch: int
    epoch: int


class WorkerBeat(Record, frozen=True):
    """A driver's heartbeat, sent every few seconds."""

    topology_id: str
    supervisor_id: str
    host: str
    port: int
    pid: int
    launch: int
    time: float
    started_at: float
    info: dict[str, Any]
    """`TopologyInfo.to_dict()`."""
    plan: dict[str, Any] = {}
    """The operators that run: `chain_dict` of its plan. Empty until they do."""


class CheckpointInfo(Record, frozen=True):
    """The state of a topology: a driver that finds another one in its checkpoint must not start."""

    signed: ClassVar[bool] = True
    topology_id: str
    location: str
    """The checkpoint's place."""
    identity: str
    """`storm_id` of its manifest; empty as long as nothing has been committed."""
    launch: int
    """The launch of the driver that wrote this."""
    host: str
    """The host of that driver."""
    from_scratch: int = 0
    """The launch at which the topology begins without its state, if that was requested."""


class ChangeRecord(Record, frozen=True):
    """A change of a topology by a user."""

    signed: ClassVar[bool] = True
    topology_id: str
    what: str
    """`submit`, `activate`, `deactivate`, `rebalance` or `kill`, with its options."""
    who: str
    """The user, if the request named one; otherwise empty."""
    time: float
    """Seconds since the epoch."""


LevelName = Literal["ALL", "TRACE", "DEBUG", "INFO", "WARN", "ERROR", "FATAL", "OFF"]
"""Storm's levels of loggers."""


class LogLevel(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The level of one logger."""

    level: LevelName
    secs: int = 0
    """For how many seconds, as requested; 0 until it is reset."""
    until: float | None = None
    """Seconds since the epoch; None without a limit."""
    reset: LevelName | None = None
    """The level after that; None for the one that the logger had before."""


class LogConfig(Record, frozen=True):
    """The levels that were changed while a topology runs."""

    signed: ClassVar[bool] = True
    topology_id: str
    levels: dict[str, LogLevel]
    """Logger -> level; `ROOT` is the one that all others inherit from."""


class StoredCredentials(Record, frozen=True):
    """The credentials of a running topology, encrypted: only processes with the cluster's secret can read them."""

    signed: ClassVar[bool] = True
    topology_id: str
    key: str
    """Which token encrypted them."""
    sealed: str
    """A nonce and the output of AES-GCM, in base64: see `Keyring.encrypt`."""


class Drain(Record, frozen=True):
    """A drained supervisor: it gets no drivers, and its drivers are moved."""

    signed: ClassVar[bool] = True
    supervisor_id: str
    who: str
    time: float
    """Seconds since the epoch."""


class Unhealthy(Record, frozen=True):
    """A supervisor on a machine whose health checks fail; ephemeral."""

    signed: ClassVar[bool] = True
    supervisor_id: str
    reason: str
    time: float
    """Seconds since the epoch."""


class ErrorRecord(Record, frozen=True):
    """An error of a component, as Storm keeps it for the UI."""

    component: str
    task: int
    message: str
    time: float
    host: str
    port: int
    trace: str = ""
    """The traceback with the frames of the user's own code."""
    input: str = ""
    """The input that the component was processing."""
    count: int = 1
    """How many equal errors there were, of which this is the last."""
    first_time: float | None = None
    """The time of the first of them; None for `time`."""

    def after(self, known: ErrorRecord) -> ErrorRecord:
        """Returns this error and the equal ones before it as one."""
        return msgspec.structs.replace(
            self,
            count=known.count + self.count,
            first_time=known.time if known.first_time is None else known.first_time,
            trace=self.trace or known.trace,
            input=self.input or known.input,
        )


R = TypeVar("R", bound=Record)


def encode(record: Record) -> bytes:
    """Returns a record as JSON.

    Raises:
        RecordError: it is too large for a znode, or holds what JSON has no word for.

    Example:
        >>> encode(LeaderInfo(address="localhost:6627", epoch=7, since=0.0))
        b'{"format":1,"address":"localhost:6627","epoch":7,"since":0.0}'
    """
    try:
        version = {"format": record.VERSION} if record.VERSION else {}
        data = msgspec.json.encode({**version, **msgspec.to_builtins(record)})
    except (TypeError, msgspec.EncodeError) as error:
        raise RecordError(f"{type(record).__name__} can't be written as JSON: {error}") from error
    if len(data) > MAX_BYTES:
        raise RecordError(f"{type(record).__name__} takes {len(data):,} bytes; a znode holds {MAX_BYTES:,}")
    return data


def decode(type_: type[R], data: bytes, where: str) -> R:
    """Returns the record in `data`.

    Args:
        type_: which record is expected.
        data: JSON.
        where: path of the znode, or name of the file, for the error.

    Raises:
        FormatError: it is of a format that this release doesn't read.
        RecordError: it is something else.

    Example:
        >>> decode(LeaderInfo, b'{"format":1,"address":"localhost:6627","epoch":7,"since":0}', "/storm/leader-info")
        LeaderInfo(address='localhost:6627', epoch=7, since=0.0)
        >>> decode(LeaderInfo, b'{"format":2}', "/storm/leader-info")
        Traceback (most recent call last):
        ...
        storm_on_spark.cluster.errors.FormatError: /storm/leader-info: this LeaderInfo has format version 2; this \
release reads 1: use the release that wrote it
    """
    name = type_.__name__
    if len(data) > MAX_BYTES:
        raise RecordError(f"{where}: {len(data):,} bytes; a {name} has at most {MAX_BYTES:,}")
    try:
        if not type_.VERSION:
            return msgspec.json.decode(data, type=type_)
        fields = msgspec.json.decode(data, type=dict[str, Any])
        version = fields.pop("format", None)
        if version != type_.VERSION:
            kind = FormatError if isinstance(version, int) else RecordError
            raise kind(other_format(f"{where}: this {name}", version, type_.VERSION, "use the release that wrote it"))
        return msgspec.convert(fields, type_)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise RecordError(f"{where}: no {name}: {error}") from error
