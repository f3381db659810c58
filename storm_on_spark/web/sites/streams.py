"""The streams of an admin, their modules, and the containers that these run in. Every admin shows the same."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final, Literal, Protocol, get_args

from storm_on_spark.api.config.secrets import hidden, scrubbed
from storm_on_spark.api.errors import NotAliveError
from storm_on_spark.web.model import Change
from storm_on_spark.web.sites.jobs import JobExecutions, Jobs, JobView
from storm_on_spark.web.sites.once import Once
from storm_on_spark.web.sites.orders import Orders
from storm_on_spark.web.sites.properties import properties_of
from storm_on_spark.xd.admin.picture import parsed_as
from storm_on_spark.xd.admin.rest.app import Parts
from storm_on_spark.xd.admin.rest.lifecycle import Lifecycle
from storm_on_spark.xd.admin.rest.schemas import ContainerView, RuntimeModuleView
from storm_on_spark.xd.dsl import DslError, Stream
from storm_on_spark.xd.tree.nodes import Kind, ModuleName

StreamAction = Literal["deploy", "undeploy", "destroy"]
STREAM_ACTIONS: Final[tuple[StreamAction, ...]] = get_args(StreamAction)

_MOST_RATES: Final = 20
"""A container reports the rates of this many modules, the busiest ones."""
_DONE: Final = {"deploy": "deployed", "undeploy": "undeployed", "destroy": "destroyed"}


class Known(Protocol):
    """What an admin's copy of the tree says."""

    def definitions(self, kind: Kind) -> Mapping[str, str]:
        """Returns name -> text of every stream or job."""

    def leader(self) -> str:
        """Returns `host:port` of the admin that leads; empty without one."""


@dataclass(frozen=True)
class Instance:
    """An instance of a module, in its container."""

    name: str
    """Such as `ticktock.source.time.1`."""
    stream: str
    label: str
    type: str
    number: int
    container: str
    host: str
    state: str
    error: str
    """Why it failed; empty if it did not."""
    options: Mapping[str, str]
    """Without secrets."""
    properties: Mapping[str, str]
    """Of the deployment."""
    taken: float | None
    """Messages a second; None where that is not known."""
    emitted: float | None


@dataclass(frozen=True)
class Step:
    """A module of a stream, with all its instances; or a channel or tap at its end."""

    label: str
    type: str
    """`source`, `processor` or `sink`; `channel` or `tap`."""
    instances: tuple[Instance, ...] = ()

    @property
    def taken(self) -> float | None:
        """Messages a second that its instances take; None where that is not known."""
        return _sum(each.taken for each in self.instances)

    @property
    def emitted(self) -> float | None:
        """Messages a second that they emit."""
        return _sum(each.emitted for each in self.instances)


@dataclass(frozen=True)
class StreamView:
    """A stream at one moment."""

    name: str
    definition: str
    """Without secrets."""
    state: str
    properties: Mapping[str, str]
    """Of its deployment, without secrets."""
    steps: tuple[Step, ...]
    """In the order of the flow."""
    fused: str = ""
    """How it runs, where the whole stream is one topology; else empty."""
    tapped_by: tuple[str, ...] = ()

    @property
    def instances(self) -> tuple[Instance, ...]:
        """Those of all its modules."""
        return tuple(each for step in self.steps for each in step.instances)

    @property
    def running(self) -> int:
        """How many instances run."""
        return sum(each.state == "deployed" for each in self.instances)

    @property
    def enters(self) -> float | None:
        """Messages a second at its beginning."""
        first = next((step for step in self.steps if step.instances), None)
        return None if first is None else first.emitted if first.type == "source" else first.taken

    @property
    def leaves(self) -> float | None:
        """Messages a second at its end."""
        last = next((step for step in reversed(self.steps) if step.instances), None)
        return None if last is None else last.taken if last.type == "sink" else last.emitted

    @property
    def possible(self) -> tuple[StreamAction, ...]:
        """The actions that make sense now."""
        return ("deploy" if self.state == "undeployed" else "undeploy", "destroy")

    @property
    def errors(self) -> tuple[Instance, ...]:
        """The instances that failed with an error."""
        return tuple(each for each in self.instances if each.error)


@dataclass(frozen=True)
class AdminView:
    """The admins and containers at one moment."""

    leader: str
    """`host:port`; empty without one."""
    this: str
    """The admin that answers."""
    containers: tuple[ContainerView, ...]
    away_since: float | None = None
    """Since when ZooKeeper can't be reached, in seconds since 1970; None while it can be."""


class StreamsSite:
    """The streams of an admin.

    Args:
        parts: what its REST interface uses.
        known: its copy of the tree, which is there while ZooKeeper is away.
        address: of the admin.
        connected: returns whether ZooKeeper can be reached.
        actions: those that are offered.
        clock: monotonic seconds.
        now: seconds since 1970.
    """

    title = "Streams"

    def __init__(
        self,
        parts: Parts,
        known: Known,
        address: str = "",
        connected: Callable[[], bool] = lambda: True,
        actions: Sequence[StreamAction] = STREAM_ACTIONS,
        clock: Callable[[], float] = time.monotonic,
        now: Callable[[], float] = time.time,
    ) -> None:
        self._parts = parts
        self._known = known
        self._address = address
        self._connected = connected
        self._once = Once(clock)
        self.now = now
        self.actions = tuple(actions)
        self._away_since: float | None = None
        self._orders = Orders(parts.changes, connected, self._once.forget)
        jobs_known = partial(known.definitions, "job")
        enabled = bool(self.actions)
        self.job_acts = Jobs(parts.jobs, parts.job_runtime, jobs_known, self._orders, enabled=enabled)
        self.executions = JobExecutions(parts.job_runtime, self._orders, enabled=enabled)
        self._lifecycle = Lifecycle("stream", parts.definitions, parts.runtime, lambda name, text: None)

    def admin(self) -> AdminView:
        """Returns the admins and containers."""
        return self._once.of("admin", self._admin)

    def streams(self) -> dict[str, StreamView]:
        """Returns all streams, by name."""
        return self._once.of("streams", self._streams)

    def stream(self, name: str) -> StreamView:
        """Returns one.

        Raises:
            NotAliveError: there is none of that name.
        """
        try:
            return self.streams()[name]
        except KeyError:
            raise NotAliveError(f"there is no stream {name[:200]!r}") from None

    def jobs(self) -> dict[str, JobView]:
        """Returns all jobs, by name."""
        return self._once.of("jobs", self.job_acts.all)

    def job(self, name: str) -> JobView:
        """Returns one.

        Raises:
            NotAliveError: there is none of that name.
        """
        try:
            return self.jobs()[name]
        except KeyError:
            raise NotAliveError(f"there is no job {name[:200]!r}") from None

    def instances(self) -> dict[str, list[Instance]]:
        """Returns the instances of modules of streams and jobs, by container."""
        return self._once.of("instances", self._instances)

    def changes(self) -> list[Change]:
        """Returns who changed what, newest first."""
        found = self._once.of("changes", self._parts.changes.all)
        return [Change(each.time, each.who, each.what, each.name) for each in found]

    def act(self, subject: str, action: StreamAction, options: Mapping[str, str], who: str) -> str:
        """Changes a stream, and writes down who did.

        Args:
            subject: its name.
            action: what is to be done.
            options: `properties`, one a line, and `fused`, of a deployment.
            who: the user.

        Raises:
            RefusedError: the properties make no sense.
            NotAliveError: there is no such stream.
            ClusterError: it is refused, or there is no leader; see `storm_on_spark.xd.admin.core`.
        """
        properties = properties_of(options.get("properties", "")) if action == "deploy" else {}
        fused = action == "deploy" and options.get("fused") == "yes"
        if subject not in self._known.definitions("stream"):
            raise NotAliveError(f"there is no stream {subject[:200]!r}")

        def order() -> str:
            if action == "deploy":
                return self._parts.runtime.deploy(subject, properties, fused).state
            if action == "undeploy":
                self._parts.runtime.undeploy(subject)
            else:
                self._lifecycle.destroy(subject)
            return _DONE[action]

        what = f"{action} stream" + (" as one topology" if fused else "")
        state = self._orders.carry_out(who, what, subject, order)
        return f"Stream {subject} is {state}."

    # How.

    def _admin(self) -> AdminView:
        containers = tuple(sorted(self._parts.runtime.containers(), key=lambda each: (each.host, each.container_id)))
        if self._connected():
            self._away_since = None
        elif self._away_since is None:
            self._away_since = self.now()
        return AdminView(self._known.leader(), self._address, containers, self._away_since)

    def _instances(self) -> dict[str, list[Instance]]:
        containers = {each.container_id: each for each in self.admin().containers}
        found: dict[str, list[Instance]] = {name: [] for name in containers}
        for view in self._parts.runtime.modules():
            name = ModuleName.parse(view.name)
            if name is not None:
                found.setdefault(view.container_id, []).append(_instance(view, name, containers.get(view.container_id)))
        return found

    def _streams(self) -> dict[str, StreamView]:
        by_stream: dict[str, list[Instance]] = {}
        for instances in self.instances().values():
            for each in instances:
                if each.type != "job":
                    by_stream.setdefault(each.stream, []).append(each)
        deployed = self._parts.runtime.deployments()
        taps: dict[str, list[str]] = {}
        parsed: dict[str, tuple[Stream, Mapping[str, str]] | None] = {}
        definitions = dict(sorted(self._known.definitions("stream").items()))
        for name, text in definitions.items():
            parsed[name] = found = _parsed(name, text)
            source = None if found is None else found[0].source
            if source is not None and source.kind == "stream":
                taps.setdefault(source.name, []).append(name)
        streams = {}
        for name, text in definitions.items():
            own, deployment = by_stream.get(name, []), deployed.get(name)
            streams[name] = StreamView(
                name,
                scrubbed(text),
                "undeployed" if deployment is None else deployment.state,
                {} if deployment is None else hidden(deployment.properties),
                _steps(parsed[name], own),
                next((each.properties["fused"] for each in own if "fused" in each.properties), ""),
                tuple(taps.get(name, ())),
            )
        return streams


def _parsed(name: str, text: str) -> tuple[Stream, Mapping[str, str]] | None:
    """Returns a stream and the types of its modules; None for a text that can't be read."""
    try:
        whole, types = parsed_as("stream", name, text)
    except DslError:
        return None
    return (whole, types) if isinstance(whole, Stream) else None


def _steps(parsed: tuple[Stream, Mapping[str, str]] | None, own: Sequence[Instance]) -> tuple[Step, ...]:
    """Returns the modules of a stream in their order, and the channels at its ends."""
    by_label: dict[str, list[Instance]] = {}
    for each in sorted(own, key=lambda each: (each.number, each.container)):
        by_label.setdefault(each.label, []).append(each)
    if parsed is None:
        return tuple(Step(label, found[0].type, tuple(found)) for label, found in sorted(by_label.items()))
    stream, types = parsed
    steps = [Step(label, type_, tuple(by_label.get(label, ()))) for label, type_ in types.items()]
    if stream.source is not None:
        source = stream.source
        label = getattr(source, "label", None)
        is_tap = source.kind in ("stream", "job") or hasattr(source, "label")
        words = f"{source.kind}:{source.name}" + (f".{label}" if label else "")
        steps.insert(0, Step(words, "tap" if is_tap else "channel"))
    if stream.sink is not None:
        steps.append(Step(f"{stream.sink.kind}:{stream.sink.name}", "channel"))
    return tuple(steps)


def _instance(view: RuntimeModuleView, name: ModuleName, container: ContainerView | None) -> Instance:
    rates = {} if container is None else container.metrics.rates
    rate = rates.get(view.name)
    # Fused modules are not counted, and of many modules only the busiest are told.
    silent = rate is None and ("fused" in view.deployment_properties or len(rates) >= _MOST_RATES)
    return Instance(
        view.name,
        name.stream,
        name.label,
        name.type,
        name.sequence,
        view.container_id,
        "" if container is None else container.host,
        view.state,
        scrubbed(view.error),
        hidden(view.options),
        hidden(view.deployment_properties),
        None if silent else 0.0 if rate is None else rate.input,
        None if silent else 0.0 if rate is None else rate.output,
    )


def _sum(values: object) -> float | None:
    known = [value for value in values if value is not None]  # type: ignore[attr-defined]
    return sum(known) if known else None
