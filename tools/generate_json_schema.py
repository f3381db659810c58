"""Writes storm_on_spark/cli/output.schema.json: what each command prints with --json. Another file if one is named.

The cluster's pages are described where the REST interface defines them; the other documents are described here.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import msgspec

from storm_on_spark.cluster.nimbus.repairs import Problem
from storm_on_spark.cluster.nimbus.scheduling.draining import DrainPage
from storm_on_spark.cluster.rest import schemas
from storm_on_spark.cluster.rest.pages.log_config import NamedLevel
from storm_on_spark.cluster.supervisor.health import Checked
from storm_on_spark.xd.admin.rest import schemas as streams

FILE = Path(__file__).parent.parent / "storm_on_spark" / "cli" / "output.schema.json"


class Document(msgspec.Struct, kw_only=True):
    """Base of the documents that are described here."""


class Latency(Document):
    """Milliseconds."""

    p50: float
    p95: float
    p99: float


class ComponentCounts(Document):
    """What one component did, all its tasks together."""

    executed: int
    emitted: int
    transferred: int
    acked: int
    failed: int
    execute_latency_ms: float | None
    metrics: dict[str, dict[str, Any]] = {}
    """What it registered, by name: the `type`, values of all tasks together, and `tasks`. Not there without any."""


class Run(Document):
    """How a run ended: `run --json`, and `--json` of a job under `python` and `spark-submit`."""

    topology: str | None
    emitted: int
    """Tuples of the spouts, as the other totals."""
    transferred: int
    acked: int
    failed: int
    pending: int
    seconds: float
    complete_latency_ms: Latency | None
    components: dict[str, ComponentCounts]
    error: str | None
    result: Any = None
    """What `report` of the topology's module returned; not there without one."""


class Valid(Document):
    """`validate`."""

    valid: bool
    problems: list[str]
    warnings: list[str]
    spouts: int = 0
    bolts: int = 0


class Compiled(Document):
    """`compile`."""

    topology: str
    folder: str | None
    """Of the artifact; null with `--check`."""
    files: list[str]
    bytes: int
    """Of all files."""
    command: str
    """The line for a standalone cluster."""
    packages: dict[str, str]
    """Python packages that travel with it, with their versions."""
    executors_need: list[str]
    """Packages that the Python of the executors must have."""
    left_out: list[str]
    warnings: list[str]
    error: None


class OneJar(Document):
    """An artifact of a Maven repository."""

    coordinates: str
    sha256: str
    path: str | None
    """Where it is; null if it has not been fetched."""


class OneJarSet(Document):
    """Jars that belong together."""

    name: str
    cached: bool
    without: str
    """What is missing without them."""
    jars: list[OneJar]


class Jars(Document):
    """`jars`."""

    sets: list[OneJarSet]
    error: str | None


class ModuleOption(Document):
    """An option of a module."""

    name: str
    type: str
    """`text`, `integer`, `number`, `boolean` or `expression`."""
    default: str | None
    """None for an option that has to be given."""
    help: str
    choices: list[str]


class StreamModule(Document):
    """A module that streams are made of."""

    type: str
    """`source`, `processor` or `sink`."""
    name: str
    help: str
    definition: str | None
    """Of a composed module."""
    options: list[ModuleOption]


class Modules(Document):
    """`module list`, `info`, `compose` and `upload`."""

    modules: list[StreamModule]


class CounterNames(Document):
    """`counter list`."""

    kind: str
    """`counter`, `field-value-counter` or `aggregate-counter`."""
    counters: list[str]


class CounterValues(Document):
    """`counter display`."""

    kind: str
    name: str
    values: dict[str, Any]
    """`value`; each value with its count; or `minute`, `hour`, `day`, `month` and `year` with their sums by start."""


class StreamList(Document):
    """`stream list`."""

    streams: list[streams.DefinitionView]


class JobList(Document):
    """`job list`."""

    jobs: list[streams.DefinitionView]


class JobStatus(Document):
    """`job status`."""

    job: streams.DefinitionView
    executions: list[streams.ExecutionView]
    """The latest first."""


class Executions(Document):
    """`job execution list`, and `job execution all stop`."""

    executions: list[streams.ExecutionView]


class OfAdmin(Document):
    """`undeploy` and `destroy` of streams and jobs."""

    name: str | None
    """None for all."""
    operation: str


class Containers(Document):
    """`runtime containers`."""

    containers: list[streams.ContainerView]


class RuntimeModules(Document):
    """`runtime modules`."""

    modules: list[streams.RuntimeModuleView]


class MigrateFinding(Document):
    """A row of `migrate`."""

    file: str
    line: int
    what: str
    verdict: str
    """`runs`, `differs` or `no`."""
    why: str


class MigrateNative(Document):
    """What becomes of a component by `migrate --write`."""

    file: str
    line: int
    what: str
    target: str
    """The file of the native class; empty if there is none."""
    why: str


class Migrate(Document):
    """`migrate`."""

    folder: str
    findings: list[MigrateFinding]
    runs: int
    differs: int
    no: int
    native: list[MigrateNative]
    written: bool


class StageEntry(schemas.RunningStage):
    """A stage of the plan."""


class OperatorEntry(schemas.RunningOperator):
    """An operator of the plan: what Spark executes as one."""


class ComponentEntry(Document):
    """A component of the plan."""

    kind: str
    tasks: list[int]
    executors: int
    stage: int
    fused: bool
    why: str
    stateless: bool
    reason: str
    state: str | None


class EdgeEntry(Document):
    """A subscription in the plan."""

    source: str
    stream: str
    target: str
    grouping: str
    kind: str
    becomes: str


class Plan(Document):
    """`explain`."""

    operators: list[OperatorEntry]
    stages: list[StageEntry]
    exchanges: int
    components: dict[str, ComponentEntry]
    edges: list[EdgeEntry]
    acker_tasks: list[int]
    partitions: int
    placement: dict[str, int]
    keys: dict[str, int]


class Key(Document):
    """A configuration key, one of the list that `config` prints."""

    key: str
    default: Any
    type: str
    level: str
    meaning: str
    why: str
    component: bool
    scope: str
    value: Any = None
    """Only where the configuration that was given sets it."""


class Project(Document):
    """`new`."""

    folder: str
    topology: str
    files: list[str]


class Example(Document):
    """An example."""

    name: str
    about: str


class Examples(Document):
    """`new --list-examples`."""

    examples: list[Example]


class Submitted(Document):
    """`submit`."""

    topology: str
    id: str
    stage: str
    seconds: dict[str, float]
    left_out: list[str]
    error: str | None


class Operation(Document):
    """`activate` and `deactivate`."""

    topology: str
    operation: str


class Killed(Operation):
    """`kill`."""

    wait_secs: float | None


class NodeHealth(Document):
    """`node-health-check`."""

    healthy: bool
    checks: tuple[Checked, ...]


class AdminProblems(Document):
    """`admin check`, and `admin repair`, which says whether anything was changed."""

    problems: list[Problem]
    repaired: bool | msgspec.UnsetType = msgspec.UNSET


class ChangedLevels(Document):
    """`set-log-level`."""

    topology: str
    named_logger_levels: dict[str, NamedLevel] = msgspec.field(name="namedLoggerLevels")
    """The loggers whose levels are changed, with Storm UI's names."""


class PushedCredentials(Document):
    """`upload-credentials`."""

    topology: str
    credentials: int
    """How many the topology has now; they are shown nowhere."""


class Rebalanced(Operation):
    """`rebalance`."""

    wait_secs: float | None
    workers: int | None
    executors: dict[str, int]
    conf: dict[str, Any]


class Log(Document):
    """`logs`."""

    topology: str
    lines: list[str]


class LogLine(Document):
    """One line of `logs --follow`."""

    line: str


class Cluster(schemas.ClusterSummary, kw_only=True, rename="camel"):
    """`cluster`."""

    supervisor_list: list[schemas.SupervisorStatus]


class HeartbeatNames(Document):
    """`heartbeats list`."""

    path: str
    names: list[str]


class Heartbeat(Document):
    """`heartbeats get`."""

    path: str
    heartbeat: dict[str, Any] | None
    """As its writer said it; null if there is none."""


class Nimbus(Document):
    """`nimbus`, when it is up."""

    nimbus: str
    token_file: str | None
    """The token that it asks for; null with `--open`."""
    pid: int


class Pacemaker(Document):
    """`pacemaker`, when it is up."""

    address: str
    pid: int


class Drpc(Document):
    """`drpc`, when it is up; addresses are `host:port`."""

    thrift: str
    invocations: str
    http: str
    token_file: str | None
    pid: int


class DrpcResult(Document):
    """The answer to one request."""

    function: str
    arguments: str
    result: str


class DrpcResults(Document):
    """`drpc-client`."""

    results: list[DrpcResult]


class Supervisor(Document):
    """`supervisor`, when it is up."""

    supervisor: str
    host: str
    slots: list[int]
    pid: int


class XdAdmin(Document):
    """`xd-admin`, when it is up."""

    admin: str
    """URL of its REST interface."""
    token_file: str | None
    """The token that it asks for; null with `--open`."""
    pid: int


class XdContainer(Document):
    """`xd-container`, when it is up."""

    container: str
    """Its id."""
    pid: int


class XdSingleNode(Document):
    """`xd-singlenode`, when it is up."""

    zookeeper: str
    """`host:port`."""
    admin: str
    """URL of its REST interface."""
    token_file: str | None
    """The token that it asks for; null with `--open`."""
    pid: int


class Kafka(Document):
    """`dev-kafka`, when it is up, or has done what `--running` asks for."""

    kafka: str
    """`host:port`."""
    pid: int | None
    """Of the broker; null with `--running`."""
    topics: dict[str, int]
    """The topics that were asked for, with their partitions."""
    loaded: dict[str, int]
    """Lines that were sent, by topic."""


class ZooKeeper(Document):
    """`dev-zookeeper`, when it is up."""

    zookeeper: str
    pid: int


class Ui(Document):
    """`storm-spark ui`."""

    link: str
    """It logs in one browser, once."""


class Dev(Document):
    """`dev`, when it is up."""

    pid: int
    ready_secs: float
    nimbuses: list[str]
    leader: str | None
    zookeeper: str
    token_file: str
    folder: str
    processes: dict[str, int | None]
    spark_master: str | None
    """With `--spark-workers`: the address for `spark-submit --master`."""
    spark_conf_file: str | None
    """With the secret of that Spark, for `spark-submit --properties-file` and `--conf`."""
    zookeeper_pid: int | None


class Failed(Document):
    """What a command that fails prints, but `run` and `validate`, whose own documents say so."""

    error: str


COMMANDS: dict[str, tuple[Any, ...]] = {
    "run": (Run,),
    "compile": (Compiled, Failed),
    "explain": (Plan, Failed),
    "flux": (Run, Plan, Valid, Submitted, Failed),
    "stream": (Run, Valid, streams.DefinitionView, streams.DeploymentView, StreamList, OfAdmin, Failed),
    "job": (
        streams.DefinitionView,
        streams.DeploymentView,
        JobList,
        JobStatus,
        Executions,
        OfAdmin,
        streams.ExecutionView,
        Failed,
    ),
    "runtime": (Containers, RuntimeModules, Failed),
    "module": (Modules, Failed),
    "counter": (CounterNames, CounterValues, Failed),
    "validate": (Valid,),
    "jars": (Jars, Failed),
    "config": (list[Key], Failed),
    "new": (Project, Examples, Failed),
    "migrate": (Migrate, Failed),
    "submit": (Submitted, Failed),
    "list": (schemas.TopologySummaries, Failed),
    "status": (schemas.TopologyPage, Failed),
    "logs": (Log, LogLine, Failed),
    "errors": (schemas.TopologyErrors, Failed),
    "lag": (dict[str, schemas.SpoutLag], Failed),
    "activate": (Operation, Failed),
    "deactivate": (Operation, Failed),
    "set-log-level": (ChangedLevels, Failed),
    "upload-credentials": (PushedCredentials, Failed),
    "rebalance": (Rebalanced, Failed),
    "kill": (Killed, Failed),
    "cluster": (Cluster, Failed),
    "drain": (DrainPage, Failed),
    "admin": (AdminProblems, Failed),
    "node-health-check": (NodeHealth, Failed),
    "ui": (Ui, Failed),
    "nimbuses": (schemas.NimbusSummaries, Failed),
    "heartbeats": (HeartbeatNames, Heartbeat, Failed),
    "dev": (Dev, Failed),
    "nimbus": (Nimbus, Failed),
    "drpc-client": (DrpcResults, Failed),
    "pacemaker": (Pacemaker, Failed),
    "drpc": (Drpc, Failed),
    "supervisor": (Supervisor, Failed),
    "xd-admin": (XdAdmin, Failed),
    "xd-container": (XdContainer, Failed),
    "xd-singlenode": (XdSingleNode, Failed),
    "dev-zookeeper": (ZooKeeper, Failed),
    "dev-kafka": (Kafka, Failed),
}
"""Command -> the documents that it may print."""


def text() -> str:
    """Returns the schema."""
    kinds = list(dict.fromkeys(kind for documents in COMMANDS.values() for kind in documents))
    found, components = msgspec.json.schema_components(kinds, ref_template="#/$defs/{name}")
    described = dict(zip(kinds, found, strict=True))
    commands = {
        command: described[documents[0]] if len(documents) == 1 else {"anyOf": [described[kind] for kind in documents]}
        for command, documents in COMMANDS.items()
    }
    document = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "What storm-spark prints with --json",
        "description": "commands has the schema of each command's document. Documents may get more keys.",
        "commands": commands,
        "$defs": dict(sorted(components.items())),
    }
    return json.dumps(document, indent=1) + "\n"


if __name__ == "__main__":
    (Path(sys.argv[1]) if sys.argv[1:] else FILE).write_text(text(), encoding="utf-8")
