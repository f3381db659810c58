"""The nodes in ZooKeeper below `/xd`; `*` marks ephemeral ones. Every value is a JSON map.

admins                                             Leadership    its version fences every write of a leader
admins/n-<sequence>*                               AdminNode     the queue for leadership: the lowest number leads
containers/<container>*                            ContainerNode
streams/<stream>                                   Definition
jobs/<job>                                         Definition
modules/<type>.<name>                              Module        that was composed or uploaded; made with the first
taps/<stream>                                      TapNode       what a deployed stream taps
deployments/streams/<stream>                       Deployment
deployments/streams/<stream>/status*               StatusNode
deployments/streams/<stream>/modules/<type>.<module>.<n>.<container>*    ModuleNode
deployments/jobs/<job>                             Deployment    with status and modules, as a stream's
deployments/modules/requested/request-<sequence>   Order         what users asked for, in the order of receipt
deployments/modules/requested/<stream>.<type>.<module>.<n>               ModuleNode
deployments/modules/allocated/<container>          empty map
deployments/modules/allocated/<container>/<stream>.<type>.<module>.<n>   ModuleNode
.../<stream>.<type>.<module>.<n>/status*           StatusNode
.../<stream>.<type>.<module>.<n>/metadata*         Metadata
changes/c-<number>                                 ChangeNode    who changed what, the last few hundred

The nodes of launched jobs are in `storm_on_spark.xd.tree.jobs`.
"""

from __future__ import annotations

from typing import ClassVar, Final, Literal, NamedTuple, get_args

import msgspec

from storm_on_spark.cluster.paths import Layout
from storm_on_spark.cluster.records import Record

ROOT: Final = "/xd"
ADMINS: Final = f"{ROOT}/admins"
CONTAINERS: Final = f"{ROOT}/containers"
STREAMS: Final = f"{ROOT}/streams"
JOBS: Final = f"{ROOT}/jobs"
TAPS: Final = f"{ROOT}/taps"
MODULES: Final = f"{ROOT}/modules"
CHANGES: Final = f"{ROOT}/changes"
STREAM_DEPLOYMENTS: Final = f"{ROOT}/deployments/streams"
JOB_DEPLOYMENTS: Final = f"{ROOT}/deployments/jobs"
REQUESTED: Final = f"{ROOT}/deployments/modules/requested"
ALLOCATED: Final = f"{ROOT}/deployments/modules/allocated"
Kind = Literal["stream", "job"]
"""The kinds of definitions."""
KINDS: Final[tuple[Kind, ...]] = get_args(Kind)
DEFINITIONS: Final[dict[Kind, str]] = {"stream": STREAMS, "job": JOBS}
DEPLOYMENTS: Final[dict[Kind, str]] = {"stream": STREAM_DEPLOYMENTS, "job": JOB_DEPLOYMENTS}
REQUEST: Final = "request-"
"""Prefix of the names of orders; names of modules have dots."""

EXECUTIONS: Final = f"{ROOT}/executions"

FOLDERS: Final = (
    CONTAINERS,
    STREAMS,
    JOBS,
    TAPS,
    f"{ROOT}/deployments",
    STREAM_DEPLOYMENTS,
    JOB_DEPLOYMENTS,
    f"{ROOT}/deployments/modules",
    REQUESTED,
    ALLOCATED,
    CHANGES,
)
"""Nodes that always exist; the first admin or container makes them."""
EMPTY: Final = b"{}"
LAYOUT: Final = Layout(
    {"admins": b"", **{path.removeprefix(f"{ROOT}/"): EMPTY for path in FOLDERS}}, lock="admins", info="admins"
)


class Node(Record, frozen=True, kw_only=True, rename="camel", omit_defaults=True, forbid_unknown_fields=False):
    """Base of the values; fields that a later release adds are ignored.

    >>> from storm_on_spark.cluster.records import encode
    >>> encode(Definition(definition="time | log"))
    b'{"definition":"time | log"}'
    """

    VERSION: ClassVar[int] = 0
    signed: ClassVar[bool] = True


class AdminNode(Node, frozen=True, kw_only=True):
    """A running admin."""

    address: str
    """`host:port` of its REST interface."""


class Leadership(Node, frozen=True, kw_only=True):
    """The leader of the admins."""

    leader: str
    epoch: int


class MessageRate(Node, frozen=True, kw_only=True, omit_defaults=False):
    """Messages per second of a module's instance."""

    input: float = 0.0
    output: float = 0.0


class ContainerMetrics(Node, frozen=True, kw_only=True, omit_defaults=False):
    """A container's measurements of itself; written at most every ten seconds, if they have changed."""

    started: int = 0
    """Milliseconds since 1970."""
    modules: int = 0
    """Running modules, including fused ones."""
    messages_in: int = 0
    """Messages that modules on the bus took since the container was started; fused modules are not counted."""
    messages_out: int = 0
    """Messages that these modules emitted."""
    rates: dict[str, MessageRate] = {}  # noqa: RUF012 # msgspec copies it
    """The rates of the busiest modules, such as `ticktock.source.time.1`; at most 20."""
    memory: int = 0
    """Bytes of the process in memory, without Spark's JVM; 0 where it is unknown."""
    cores: float = 0.0
    """Seconds of processor time per second."""


class ContainerNode(Node, frozen=True, kw_only=True, omit_defaults=False):
    """A running container."""

    host: str
    ip: str
    pid: int
    groups: tuple[str, ...] = ()
    attributes: dict[str, str] = {}  # noqa: RUF012 # msgspec copies it
    metrics: ContainerMetrics = ContainerMetrics()


class Definition(Node, frozen=True, kw_only=True):
    """The text of a stream or a job."""

    definition: str


class Deployment(Node, frozen=True, kw_only=True):
    """The request that a stream runs, and how."""

    generation: int
    """Grows with every deployment in this cluster."""
    properties: dict[str, str] = {}  # noqa: RUF012 # msgspec copies it
    fused: bool = False
    going: bool = False
    """Whether it is being undeployed."""
    execution: int = 0
    """The latest execution of a job; 0 for none."""


class StatusNode(Node, frozen=True, kw_only=True):
    """The state of a stream, or of one instance of a module."""

    state: str
    error: str = ""


class Module(Node, frozen=True, kw_only=True):
    """A module that was composed or uploaded; see `modules.local_registry`."""

    version: Literal[1]
    kind: Literal["composed", "uploaded"]
    definition: str | msgspec.UnsetType = msgspec.UNSET
    sha256: str | msgspec.UnsetType = msgspec.UNSET


class ChangeNode(Node, frozen=True, kw_only=True):
    """The record of a change."""

    version: int = 1
    time: float
    """Seconds since 1970."""
    who: str
    """The user, as far as the request said; empty if it didn't."""
    what: str
    """Such as `deploy stream`."""
    name: str
    """Of the stream, the job, the module or the counter; empty for all."""


class TapNode(Node, frozen=True, kw_only=True):
    """A tap of a deployed stream."""

    definition: str


class ModuleNode(Node, frozen=True, kw_only=True, omit_defaults=False):
    """An instance of a module, as its container gets it."""

    count: int
    """The count in the manifest; 0 for one instance in every matching container."""
    sequence: int
    instances: int
    """The number of instances."""
    generation: int
    """Grows when their number changes."""
    fused: bool = False


class Metadata(Node, frozen=True, kw_only=True, omit_defaults=False):
    """Options and properties of a running instance."""

    options: dict[str, str]
    properties: dict[str, str]


class Order(Node, frozen=True, kw_only=True):
    """The request of a user."""

    action: Literal["deploy", "undeploy", "launch", "stop", "restart"]
    stream: str
    """The name of the stream or job."""
    properties: dict[str, str] = {}  # noqa: RUF012 # msgspec copies it
    """Properties of the deployment, or parameters of the launch."""
    fused: bool = False
    kind: Kind = "stream"
    execution: int = 0
    """The execution to be stopped or restarted."""


class ModuleName(NamedTuple):
    """`<stream>.<type>.<module>.<n>`.

    >>> ModuleName.parse("ticktock.source.time.1")
    ModuleName(stream='ticktock', type='source', label='time', sequence=1)
    """

    stream: str
    type: str
    label: str
    sequence: int

    @classmethod
    def parse(cls, text: str) -> ModuleName | None:
        """Returns the parts of a name; None if it is not the name of an instance."""
        parts = text.split(".")
        if len(parts) != 4 or not parts[3].isdecimal():
            return None
        return cls(parts[0], parts[1], parts[2], int(parts[3]))

    @property
    def kind(self) -> Kind:
        """Whether it belongs to a stream or a job."""
        return "job" if self.type == "job" else "stream"

    @property
    def own(self) -> str:
        """Without the stream."""
        return f"{self.type}.{self.label}.{self.sequence}"

    def __str__(self) -> str:
        return f"{self.stream}.{self.own}"
