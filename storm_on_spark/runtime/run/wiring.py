"""Look-up tables over the plan for running tasks.

A plan is a list of edges; the hot path looks up the consumers of one stream of one task. `Wiring` has these tables and
is built once per process from the plan.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import cast
from zlib import crc32

from storm_on_spark.api.config import effective_conf
from storm_on_spark.api.config.settings import Settings, SomeSettings
from storm_on_spark.api.errors import InvalidTopologyError
from storm_on_spark.api.streams.fields import Fields
from storm_on_spark.api.streams.grouping import Grouping, KeyedGrouping
from storm_on_spark.plan.model import EdgeKind, PlacedPlan, PlannedComponent
from storm_on_spark.runtime.run.settings import BoltSettings


@dataclass(frozen=True)
class StreamInfo:
    """One declared stream."""

    number: int
    """Names the stream in chunk headers. It depends on nothing but component and stream id, since chunks in a spout
    log may be read after a restart with a topology that declares other streams too."""
    component: str
    stream: str
    fields: Fields
    direct: bool


@dataclass(frozen=True)
class Subscription:
    """One consumer of a stream."""

    target: str
    tasks: tuple[int, ...]
    grouping: Grouping
    kind: EdgeKind


class Wiring:
    """Lookup tables over a plan.

    Args:
        plan: the plan.
    """

    def __init__(self, plan: PlacedPlan) -> None:
        self.plan = plan
        #: All streams by number.
        self.streams: dict[int, StreamInfo] = {}
        self._by_name: dict[tuple[str, str], StreamInfo] = {}
        for component in sorted(plan.components):
            for stream, spec in sorted(plan.topology[component].streams.items()):
                info = StreamInfo(_number(component, stream), component, stream, spec.fields, spec.direct)
                twin = self.streams.setdefault(info.number, info)
                if twin is not info:
                    raise InvalidTopologyError(
                        f'stream "{stream}" of "{component}" and stream "{twin.stream}" of "{twin.component}" have the '
                        "same checksum, by which chunks name their stream; rename one of them",
                        component=component,
                        stream=stream,
                    )
                self._by_name[component, stream] = info
        self._subscriptions: dict[tuple[str, str], list[Subscription]] = {}
        for edge in plan.edges:
            target = plan.components[edge.target]
            self._subscriptions.setdefault((edge.source, edge.stream), []).append(
                Subscription(edge.target, target.tasks, edge.grouping, edge.kind)
            )
        self._readers = {
            (task, self._by_name[edge.source, edge.stream].number)
            for edge in plan.edges
            for task in plan.components[edge.target].tasks
        }
        self.component_of: dict[int, str] = {
            task: component.id for component in plan.components.values() for task in component.tasks
        }
        self._stages = {task: plan.components[component].stage for task, component in self.component_of.items()}
        self._stages.update(dict.fromkeys(plan.acker_tasks, plan.stages[-1].index))
        self._settings: dict[tuple[type[Settings], str | None], Settings] = {}
        self._confs: dict[str, dict[str, object]] = {}

    def component(self, task: int) -> PlannedComponent:
        """Returns the component that owns `task`."""
        return self.plan.components[self.component_of[task]]

    def stream(self, component: str, stream: str) -> StreamInfo | None:
        """Returns a declared stream, or None."""
        return self._by_name.get((component, stream))

    def streams_of(self, component: str) -> list[StreamInfo]:
        """Returns the streams that a component declares."""
        return [info for info in self.streams.values() if info.component == component]

    def subscriptions(self, component: str, stream: str) -> list[Subscription]:
        """Returns the consumers of a stream."""
        return self._subscriptions.get((component, stream), [])

    def grouped_by(self, component: str) -> dict[tuple[str, str], tuple[int, ...]]:
        """Returns the places of the fields by which a component's input is grouped, by source and stream."""
        places = {}
        for edge in self.plan.edges:
            stream = self._by_name[edge.source, edge.stream]
            if edge.target == component and isinstance(edge.grouping, KeyedGrouping):
                places[edge.source, edge.stream] = tuple(
                    stream.fields.field_index(name) for name in edge.grouping.fields
                )
        return places

    def reads(self, task: int, stream: int) -> bool:
        """Returns whether `task` subscribes to the stream with that number."""
        return (task, stream) in self._readers

    def conf(self, component: str) -> Mapping[str, object]:
        """Returns the configuration that a component sees: the topology's under its own."""
        if component not in self._confs:
            own = self.plan.topology[component].conf
            self._confs[component] = effective_conf(self.plan.conf, own)
        return self._confs[component]

    def settings(self, kind: type[SomeSettings], component: str | None = None) -> SomeSettings:
        """Returns the topology's settings of a kind, or those that a component sees."""
        found = self._settings.get((kind, component))
        if found is None:
            conf = self.plan.conf if component is None else self.conf(component)
            found = self._settings[kind, component] = kind.of(conf)
        return cast("SomeSettings", found)

    def stage_of_task(self, task: int) -> int | None:
        """Returns the index of the stage that executes `task`; None for a task that is not in the plan."""
        return self._stages.get(task)

    @cached_property
    def turn_periods(self) -> dict[int, int]:
        """The period of each task with `turn_secs`, in ms."""
        periods: dict[int, int] = {}
        for component in self.plan.components.values():
            if component.turn_secs is not None:
                periods.update(dict.fromkeys(component.tasks, 1000 * component.turn_secs))
        return periods

    @cached_property
    def tick_periods(self) -> dict[int, int]:
        """The period of each task that wants ticks, in ms."""
        periods: dict[int, int] = {}
        for component in self.plan.components.values():
            seconds = self.settings(BoltSettings, component.id).tick_secs
            if seconds is not None and not self.plan.topology[component.id].is_spout:
                periods.update(dict.fromkeys(component.tasks, 1000 * seconds))
        return periods

    @cached_property
    def timer_periods(self) -> dict[int, tuple[int, ...]]:
        """The periods of each task's timers, in ms; in the order of `PlannedComponent.timers`."""
        periods: dict[int, tuple[int, ...]] = {}
        for component in self.plan.components.values():
            if component.timers:
                periods.update(dict.fromkeys(component.tasks, tuple(period for _, period in component.timers)))
        return periods

    @cached_property
    def periods(self) -> frozenset[int]:
        """All periods in ms after which something is due: ticks, turns and timers."""
        timers = (period for periods in self.timer_periods.values() for period in periods)
        return frozenset((*self.tick_periods.values(), *self.turn_periods.values(), *timers))

    @property
    def system_key(self) -> int:
        """The key of rows that are meant for the sink: that of the first acker, or of any task without ackers."""
        plan = self.plan
        task = plan.acker_tasks[0] if plan.acker_tasks else max(plan.keys)
        return plan.keys[task]


def _number(component: str, stream: str) -> int:
    return crc32(f"{component}\0{stream}".encode())
