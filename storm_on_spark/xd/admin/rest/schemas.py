"""Bodies of the REST interface of an admin. Names in JSON are in camel case, as Spring XD has them."""

from __future__ import annotations

from typing import Annotated, Final, Generic, Literal, TypeVar

import msgspec
from msgspec import Meta

from storm_on_spark.cluster.http.views import View
from storm_on_spark.xd.admin.placement import State
from storm_on_spark.xd.dsl import MAXIMUM_LENGTH
from storm_on_spark.xd.modules.python_files import MAXIMUM_BYTES
from storm_on_spark.xd.tree.jobs import Status

MAXIMUM_NAME: Final = 255
"""Characters of the name of a stream, a job or a module."""
MAXIMUM_PROPERTIES: Final = 1_000
"""Properties of one deployment."""
DEFAULT_PAGE_SIZE: Final = 20
MAXIMUM_PAGE_SIZE: Final = 1_000

# `$` of Python also matches before a last line break, and `\Z` means nothing to readers of the OpenAPI description.
Name = Annotated[str, Meta(pattern=r"^[A-Za-z_][A-Za-z0-9_-]*$(?!\n)", max_length=MAXIMUM_NAME)]
Definition = Annotated[str, Meta(min_length=1, max_length=MAXIMUM_LENGTH)]
Properties = Annotated[dict[str, str], Meta(max_length=MAXIMUM_PROPERTIES)]
Parameters = Annotated[
    dict[Annotated[str, Meta(min_length=1, max_length=200)], Annotated[str, Meta(max_length=4_096)]],
    Meta(max_length=100),
]
Resolution = Literal["minute", "hour", "day", "month", "year"]
StepStatus = Literal["WAITING", "SKIPPED", Status]


class Body(msgspec.Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """Base of what requests send: a field with another name is refused."""


T = TypeVar("T")


class PageMetadata(View, frozen=True, kw_only=True):
    """The place of a page in a list."""

    size: int
    """Most entries of a page."""
    total_elements: int
    total_pages: int
    number: int
    """The number of this page, from 0."""


class PageOf(View, Generic[T], frozen=True, kw_only=True):
    """A page of a list, as Spring has it."""

    content: tuple[T, ...]
    page: PageMetadata


class ComposeModule(Body, frozen=True, kw_only=True):
    """Makes a part of a stream into a module."""

    name: Name
    definition: Definition


class UploadModule(Body, frozen=True, kw_only=True):
    """Adds the module of a Python file. The file is executed, by the admin and by containers."""

    file: Annotated[str, Meta(min_length=1, max_length=MAXIMUM_NAME)]
    """The file's name, for messages."""
    source: Annotated[str, Meta(max_length=MAXIMUM_BYTES)]
    """The file's text."""
    sha256: Annotated[str, Meta(pattern="^[0-9a-f]{64}$")]
    """The SHA-256 of the text in UTF-8."""


class CreateDefinition(Body, frozen=True, kw_only=True):
    """Creates a stream or a job.

    Example:
        >>> msgspec.json.decode(b'{"name": "ticktock", "definition": "time | log"}', type=CreateDefinition).deploy
        False
    """

    name: Name
    definition: Definition
    deploy: bool = False
    """Whether it is deployed at once, without properties."""


class Deploy(Body, frozen=True, kw_only=True):
    """Deploys a stream or a job; the body may be left out."""

    properties: Properties = {}
    """The manifest, such as `module.log.count` -> `2`; the admin checks names and values."""
    fused: bool = False
    """Whether the whole stream becomes one topology."""


class Validate(Body, frozen=True, kw_only=True):
    """Checks a definition without creating it."""

    kind: Literal["stream", "job"] = "stream"
    name: Name | None = None
    definition: Definition


class DefinitionView(View, frozen=True, kw_only=True):
    """A stream or a job."""

    name: str
    definition: str
    status: State


class DeploymentView(View, frozen=True, kw_only=True):
    """The deployment of a stream or a job."""

    name: str
    state: State
    properties: dict[str, str]
    modules: tuple[str, ...]
    """The instances: `<type>.<module>.<sequence number>.<container id>` for each."""


class OptionView(View, frozen=True, kw_only=True):
    """An option of a module."""

    name: str
    type: str
    default_value: str | None
    """The default as text; null for an option that has to be given."""
    description: str
    choices: tuple[str, ...] = ()


class ModuleView(View, frozen=True, kw_only=True):
    """A module of the registry."""

    type: str
    name: str
    composed: bool = False
    description: str


class ModuleDetail(ModuleView, frozen=True, kw_only=True):
    """A module with its options."""

    options: tuple[OptionView, ...]


class RateView(View, frozen=True, kw_only=True):
    """Messages per second of a module's instance."""

    input: float
    output: float


class MetricsView(View, frozen=True, kw_only=True):
    """A container's measurements of itself, written at most every ten seconds."""

    started: int
    """Milliseconds since 1970."""
    modules: int
    """Running modules, including fused ones."""
    messages_in: int
    """Messages that modules on the bus took since the container was started; fused modules are not counted."""
    messages_out: int
    """Messages that these modules emitted."""
    rates: dict[str, RateView]
    """The rates of the busiest modules, such as `ticktock.source.time.1`; at most 20."""
    memory: int
    """Bytes of the process in memory, without Spark's JVM; 0 where it is unknown."""
    cores: float
    """Seconds of processor time per second."""


class ContainerView(View, frozen=True, kw_only=True):
    """A running container."""

    container_id: str
    host: str
    ip: str
    pid: int
    groups: tuple[str, ...]
    attributes: dict[str, str]
    """The attributes that the user gave the container."""
    deployed_modules: int
    metrics: MetricsView


class RuntimeModuleView(View, frozen=True, kw_only=True):
    """One instance of a module, in its container."""

    name: str
    """`<stream>.<type>.<module>.<sequence number>`, such as `ticktock.source.time.1`."""
    container_id: str
    options: dict[str, str]
    """All options, including defaults."""
    deployment_properties: dict[str, str]
    """Properties of the deployment, with `count` and `sequence`."""
    state: State
    error: str = ""
    """Why it failed; empty if it did not."""


class Problem(View, frozen=True, kw_only=True):
    """An error of a definition."""

    code: str
    """Stable, such as `XD112E`."""
    position: int
    """The position in the definition, in characters from 0."""
    message: str


class Validation(View, frozen=True, kw_only=True):
    """Whether a definition can be created; `problem` is null if it can."""

    valid: bool
    problem: Problem | None = None


class Completions(View, frozen=True, kw_only=True):
    """Whole lines to which the beginning of a definition can be completed."""

    proposals: tuple[str, ...]


class Version(View, frozen=True, kw_only=True):
    """The release of an admin."""

    product: str
    version: str


class StepView(View, frozen=True, kw_only=True):
    """A step of an execution."""

    name: str
    """The step's label."""
    status: StepStatus
    """WAITING before it starts; SKIPPED if the execution completed without it."""
    execution_id: int | None = None
    """The execution in which the step ran; another one if the step was completed before a restart."""
    container_id: str | None = None
    start_time: float | None = None
    """Seconds since 1970; null before it starts."""
    end_time: float | None = None
    exit_code: int | None = None
    """Negative for the signal that ended its process."""
    exit_status: str | None = None
    """What transitions go by: the text that the step returned, or else COMPLETED or FAILED; null before it ends."""
    error: str = ""
    log: str = ""
    """The file with the step's output, in the folder that containers share."""


class ExecutionView(View, frozen=True, kw_only=True):
    """An execution of a job."""

    execution_id: int
    name: str
    """The job's name."""
    definition: str
    """The definition with which it was launched."""
    parameters: dict[str, str]
    status: Status
    create_time: float
    """Seconds since 1970."""
    start_time: float | None
    """The start of the first step; null before that."""
    end_time: float | None
    restarts: int | None = None
    """The execution that it continues with."""
    restarted_by: int | None = None
    """The execution that continues with it."""
    deployed: bool
    """Whether the job is deployed now."""
    deleted: bool
    """Whether the job is destroyed."""
    steps: tuple[StepView, ...] = ()
    """The steps in the order of the definition."""


class CounterName(View, frozen=True, kw_only=True):
    """A counter in a list."""

    name: str


class CounterView(View, frozen=True, kw_only=True):
    """A counter, as it was written last: the sum over all sinks that name it."""

    name: str
    value: int


class FieldValueCounterView(View, frozen=True, kw_only=True):
    """How many messages had each value."""

    name: str
    field_value_counts: dict[str, int]


class AggregateCounterView(View, frozen=True, kw_only=True):
    """Sums by time."""

    name: str
    resolution: Resolution
    counts: dict[str, float]
    """Begin of each minute, hour, day, month or year, in UTC -> sum."""


class LaunchJob(Body, frozen=True, kw_only=True):
    """Launches a deployed job."""

    name: Name
    parameters: Parameters = {}


def page_of(entries: tuple[T, ...], number: int, size: int) -> PageOf[T]:
    """Returns a page of a whole list; one after the end is empty.

    Args:
        entries: the whole list, in order.
        number: of the page, from 0.
        size: entries of a page.

    Raises:
        ValueError: no page has such a number or size.

    Example:
        >>> found = page_of(("a", "b", "c"), number=1, size=2)
        >>> found.content, found.page.total_pages
        (('c',), 2)
    """
    if number < 0:
        raise ValueError(f"Expected a page from 0 on, got {number}")
    if not 1 <= size <= MAXIMUM_PAGE_SIZE:
        raise ValueError(f"Expected a size of 1 to {MAXIMUM_PAGE_SIZE}, got {size}")
    metadata = PageMetadata(size=size, total_elements=len(entries), total_pages=-(-len(entries) // size), number=number)
    return PageOf(content=entries[number * size : (number + 1) * size], page=metadata)
