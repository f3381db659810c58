"""Pass: checks Storm's rules for a whole topology."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from storm_on_spark.api.building.checks import label
from storm_on_spark.api.custom_grouping import CustomGrouping
from storm_on_spark.api.errors import InvalidTopologyError
from storm_on_spark.api.streams.constants import SYSTEM_PREFIX, is_system_id
from storm_on_spark.api.streams.grouping import GROUPINGS, DirectGrouping, Grouping, KeyedGrouping
from storm_on_spark.api.streams.stream import GlobalStreamId
from storm_on_spark.api.text.wording import did_you_mean, kind_of, quoted
from storm_on_spark.api.topology import ComponentSpec, Topology
from storm_on_spark.plan.logical import LogicalGraph
from storm_on_spark.plan.model import only_spark
from storm_on_spark.plan.passes.graph import distances, find_cycle, successors
from storm_on_spark.plan.settings import LiveSettings
from storm_on_spark.plan.timers import timers_of

_GROUPINGS = (*GROUPINGS, CustomGrouping)


@dataclass(frozen=True)
class _Problem:
    text: str
    component: str | None = None
    stream: str | None = None


def validate(graph: LogicalGraph) -> LogicalGraph:
    """Returns the graph unchanged if its topology is valid.

    What concerns one component alone was checked when it was added to the builder; this pass checks how they
    fit together.

    Raises:
        InvalidTopologyError: the topology breaks a rule. The message has one line for each that it breaks.
    """
    problems = [*_problems(graph.topology), *_live_problems(graph), *_timer_problems(graph)]
    if problems:
        first = problems[0]
        text = "\n".join(problem.text for problem in problems)
        raise InvalidTopologyError(text, component=first.component, stream=first.stream)
    return graph


def _live_problems(graph: LogicalGraph) -> Iterator[_Problem]:
    if LiveSettings.of(graph.conf).asked:
        for spec in graph.topology.spouts.values():
            if (reason := only_spark(spec)) is not None:
                why = f" ({reason})" if reason else ""
                yield _Problem(
                    f"{label(spec.id, is_spout=True)}: Spark brings its rows in micro-batches{why}, which do no work "
                    "with the profile realtime; choose the profile latency, or a spout in Python",
                    spec.id,
                )


def _timer_problems(graph: LogicalGraph) -> Iterator[_Problem]:
    for spec in graph.topology.components.values():
        try:
            timers_of(spec, graph.conf)
        except InvalidTopologyError as error:
            yield _Problem(str(error), spec.id)


def _problems(topology: Topology) -> Iterator[_Problem]:
    if not topology.spouts:
        yield _Problem("the topology has no spout, so nothing would ever happen; add one with set_spout")
    for spec in topology.components.values():
        yield from _component_problems(spec, topology)
    if topology.spouts:
        yield from _unfed_cycles(topology)


def _component_problems(spec: ComponentSpec, topology: Topology) -> Iterator[_Problem]:
    where = label(spec.id, spec.is_spout)
    if is_system_id(spec.id):
        yield _Problem(f'{where}: ids that start with "{SYSTEM_PREFIX}" are reserved for the system', spec.id)
    if spec.is_spout and spec.inputs:
        sources = quoted(source for source, _ in spec.inputs)
        yield _Problem(f"{where}: subscribes to {sources}, but a spout has no inputs", spec.id)
        return
    if not spec.is_spout and not spec.inputs:
        yield _Problem(
            f'{where}: has no inputs; subscribe it, as in set_bolt("{spec.id}", ...).shuffle_grouping(...)',
            spec.id,
        )
    declared = getattr(spec.component, "stateless", None)
    if declared not in (True, False, None):
        yield _Problem(f"{where}: stateless must be True, False or None, not {kind_of(declared)}", spec.id)
    turn = getattr(spec.component, "turn_secs", None)
    if turn is not None and (not isinstance(turn, int) or isinstance(turn, bool) or turn < 1):
        yield _Problem(f"{where}: turn_secs must be a whole number of seconds or None, not {kind_of(turn)}", spec.id)
    for source, grouping in spec.inputs:
        for text in _input_problems(source, grouping, topology):
            yield _Problem(f"{where}: {text}", spec.id, source.stream)


def _input_problems(source: GlobalStreamId, grouping: Grouping, topology: Topology) -> Iterator[str]:
    what = f"the {grouping.describe()} grouping"
    if source.component not in topology:
        others = list(topology.components)
        hint = did_you_mean(source.component, others)
        yield f'{what} names an unknown component "{source.component}"; there are: {quoted(others)}.{hint}'
        return
    streams = topology[source.component].streams
    if source.stream not in streams:
        yield f"{what} names {_unknown_stream(source, streams)}"
        return
    if not isinstance(grouping, _GROUPINGS):
        names = ", ".join(known.__name__ for known in _GROUPINGS)
        yield f"{type(grouping).__qualname__} is not a known grouping; there are: {names}"
    where = f'stream "{source.stream}" of "{source.component}"'
    spec = streams[source.stream]
    if isinstance(grouping, KeyedGrouping):
        for name in grouping.fields:
            if name not in spec.fields:
                hint = did_you_mean(name, spec.fields)
                has = quoted(spec.fields)
                yield f'{what} names a field "{name}" that {where} doesn\'t have; it has: {has}.{hint}'
    if isinstance(grouping, DirectGrouping) and not spec.direct:
        yield f"{what} needs a direct stream, but {where} is none; declare it with direct=True"
    if spec.direct and not isinstance(grouping, DirectGrouping):
        yield f"{what} can't be used on {where}, which is direct; use direct_grouping"


def _unknown_stream(source: GlobalStreamId, streams: Iterable[str]) -> str:
    valid = list(streams)
    if not valid:
        return f'stream "{source.stream}" of "{source.component}", which declares no streams at all'
    hint = did_you_mean(source.stream, valid)
    has = quoted(valid)
    return f'a stream "{source.stream}" that "{source.component}" doesn\'t have; it has: {has}.{hint}'


def _unfed_cycles(topology: Topology) -> Iterator[_Problem]:
    """Yields a problem for every cycle that no spout leads to.

    A bolt without inputs, or with an unknown one, counts as fed: that problem is reported elsewhere.
    """
    arcs = [
        (source.component, spec.id)
        for spec in topology.components.values()
        for source, _ in spec.inputs
        if source.component in topology
    ]
    following = successors(topology.components, arcs)
    fed = set(topology.spouts) | {
        spec.id
        for spec in topology.components.values()
        if not spec.inputs or any(source.component not in topology for source, _ in spec.inputs)
    }
    unfed = set(topology.components).difference(distances(fed, following))
    while cycle := find_cycle(unfed, following):
        path = " -> ".join(f'"{component}"' for component in (*cycle, cycle[0]))
        yield _Problem(
            f'bolt "{cycle[0]}": the cycle {path} is fed by no spout, so no tuple would ever enter it; '
            "subscribe one of its bolts to a spout or to a bolt that a spout feeds",
            cycle[0],
        )
        unfed.difference_update(distances(cycle, following))
