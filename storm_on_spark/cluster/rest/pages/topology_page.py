"""Storm UI's pages of a topology and of a component.

Drivers report all windows with each heartbeat.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any
from urllib.parse import quote

import msgspec

from storm_on_spark.api.config.secrets import hidden
from storm_on_spark.api.info import (
    ALL_TIME,
    COUNTERS,
    PERCENTILES,
    ComponentWindow,
    LatencyInfo,
    StreamCounts,
    TaskCounts,
)
from storm_on_spark.api.streams.constants import is_system_id
from storm_on_spark.api.text.traces import location
from storm_on_spark.api.topology import ComponentKind
from storm_on_spark.cluster.http.views import SomeView
from storm_on_spark.cluster.log_config import effective_levels
from storm_on_spark.cluster.records import ErrorRecord, StormBase
from storm_on_spark.cluster.rest.pages.counted import (
    CAPACITY_WINDOW,
    Counted,
    executors_of,
    inputs,
    outputs,
    together,
    window_hint,
)
from storm_on_spark.cluster.rest.pages.summaries import topology_fields, worker
from storm_on_spark.cluster.rest.picture.settings import PageSettings
from storm_on_spark.cluster.rest.picture.snapshot import Picture
from storm_on_spark.cluster.rest.picture.warned import topology_warnings
from storm_on_spark.cluster.rest.schemas import (
    BoltLine,
    BoltWindow,
    ComponentError,
    ComponentPage,
    ExecutorStats,
    InputStats,
    OutputStats,
    SpoutLine,
    SpoutWindow,
    TopologyErrors,
    TopologyPage,
    WarningLine,
)
from storm_on_spark.runtime.run.settings import TrackingSettings
from storm_on_spark.runtime.samples.book import SAMPLES_LOG
from storm_on_spark.runtime.samples.switch import ALL, SAMPLING_PCT

Errors = Mapping[str, Sequence[ErrorRecord]]
"""Component -> its last errors, oldest first."""

_SPOUTS = frozenset(kind.value for kind in ComponentKind if kind.is_spout)


def beat_errors(picture: Picture, topology_id: str) -> dict[str, list[ErrorRecord]]:
    """Returns the errors in a driver's last beat: for when those in ZooKeeper can't be read."""
    info = picture.info(topology_id)
    beat = picture.snapshot.workerbeats.get(topology_id)
    if info is None or beat is None:
        return {}
    found: dict[str, list[ErrorRecord]] = {}
    parts = [error for part in info.components.values() for error in part.errors]
    for error in [*parts, *info.system_errors]:
        record = ErrorRecord(host=beat.host, port=beat.port, **asdict(error))
        found.setdefault(error.component, []).append(record)
    return found


def topology_page(
    picture: Picture, base: StormBase, errors: Errors, window: str = ALL_TIME, *, sys: bool = False
) -> TopologyPage:
    """Returns `topology/:id`.

    Args:
        picture: of the cluster.
        base: the topology.
        errors: its last ones.
        window: over which components count.
        sys: whether system components and system streams count.
    """
    info = picture.info(base.topology_id)
    counted = Counted(info, window, sys)
    timeout = TrackingSettings.of(base.conf).timeout_secs
    assignment = picture.snapshot.assignments.get(base.topology_id)
    spouts: list[SpoutLine] = []
    bolts: list[BoltLine] = []
    known = sorted(picture.components(base).items())
    system = [(name, _system(found)) for name, found in counted.system_components().items()]
    for name, (kind, tasks, executors) in [*known, *system]:
        counts = counted.component(name)
        error = _last_error(next(iter(_errors(picture, base, errors.get(name, ())[-1:])), None))
        line = {"tasks": tasks, "executors": executors, **error}
        encoded = quote(name, safe="")
        if kind in _SPOUTS:
            complete = latency_text(counts.complete)
            spouts.append(
                SpoutLine.of(counts, spout_id=name, encoded_spout_id=encoded, complete_latency=complete, **line)
            )
        else:
            line |= {"capacity": f"{counted.capacity(name, executors):.3f}", **_latencies(counts)}
            bolts.append(BoltLine.of(counts, bolt_id=name, encoded_bolt_id=encoded, **line))
    load = None if info is None else info.load
    return TopologyPage(
        **topology_fields(picture, base),
        msg_timeout=int(timeout),
        window=window,
        window_hint=window_hint(window),
        window_secs=counted.secs,
        debug=bool(base.debug) or PageSettings.of(base.conf).debug,
        sampling_pct=base.debug.get(ALL, SAMPLING_PCT),
        configuration=hidden(base.conf),
        topology_stats=tuple(_totals(counted, picture, base, name) for name in counted.windows),
        spout_stats=_of_spouts(counted, picture, base, window),
        spouts=tuple(spouts),
        bolts=tuple(bolts),
        workers=() if assignment is None else (worker(picture, base, assignment),),
        pending=0 if info is None else info.pending,
        complete_latency_ms=percentiles(counted.complete()),
        mode="" if info is None else info.mode,
        repetition=None if info is None or info.repetition is None else asdict(info.repetition),
        log_levels=effective_levels(picture.snapshot.logconfigs.get(base.topology_id), picture.now),
        failure=None if info is None else info.error,
        system_errors={
            name: _errors(picture, base, records)
            for name, records in sorted(errors.items())
            if records and is_system_id(name)
        },
        log_link=_log_link(picture, base),
        metrics={}
        if info is None
        else {name: part.metrics_dict() for name, part in info.components.items() if part.metrics},
        plan=picture.running_plan(base.topology_id),
        load=None if load is None else asdict(load),
        warnings=tuple(WarningLine.of(each) for each in topology_warnings(picture, base)),
        **picture.freshness,
    )


def _log_link(picture: Picture, base: StormBase, name: str = "worker.log") -> str:
    snapshot = picture.snapshot
    where = snapshot.assignments.get(base.topology_id) or snapshot.workerbeats.get(base.topology_id)
    return "" if where is None else picture.log_link(base.topology_id, where.supervisor_id, where.port, name)


def component_page(
    picture: Picture, base: StormBase, name: str, errors: Errors, window: str = ALL_TIME, *, sys: bool = False
) -> ComponentPage | None:
    """Returns `topology/:id/component/:component`; None if the topology has no such component."""
    info = picture.info(base.topology_id)
    # A request for a system component includes its streams.
    counted = Counted(info, window, sys or is_system_id(name))
    found = picture.components(base).get(name)
    system = counted.system_components().get(name)
    if system is not None:
        found = _system(system)
    if found is None:
        return None
    kind, tasks, executors = found
    is_spout = kind in _SPOUTS
    sampled = base.debug.get(name, base.debug.get(ALL, 0.0))
    registered = None if info is None else info.components.get(name)
    return ComponentPage(
        user=base.owner,
        id=name,
        encoded_id=quote(name, safe=""),
        name=base.name,
        executors=executors,
        tasks=tasks,
        topology_id=base.topology_id,
        encoded_topology_id=quote(base.topology_id, safe=""),
        topology_status=base.status,
        component_type="spout" if is_spout else "bolt",
        window=window,
        window_hint=window_hint(window),
        debug=bool(sampled) or PageSettings.of(base.conf).debug,
        sampling_pct=sampled or SAMPLING_PCT,
        event_log_link=_log_link(picture, base, SAMPLES_LOG) if base.debug else "",
        component_errors=_errors(picture, base, errors.get(name, ())),
        spout_summary=tuple(_spout_window(counted, name, each) for each in counted.windows) if is_spout else None,
        bolt_stats=None if is_spout else tuple(_bolt_window(counted, name, each) for each in counted.windows),
        input_stats=() if is_spout else _inputs(picture, base, name, counted),
        output_stats=_outputs(picture, base, name, counted, is_spout=is_spout),
        executor_stats=_executors(picture, base, name, found, counted),
        metrics={} if registered is None else registered.metrics_dict(),
        latencies={
            each: {
                what: percentiles(getattr(counted.component(name, each), what))
                for what in ("execute", "process", "complete")
            }
            for each in counted.windows
        },
        **picture.freshness,
    )


def topology_errors(picture: Picture, base: StormBase, errors: Errors) -> TopologyErrors:
    """Returns `topology/:id/errors`."""
    return TopologyErrors(
        topology_id=base.topology_id,
        errors={name: _errors(picture, base, records) for name, records in sorted(errors.items()) if records},
        **picture.freshness,
    )


def _system(found: ComponentWindow) -> tuple[str, int, int]:
    """Returns kind, tasks and executors of a system component."""
    return "bolt", max(1, len(found.tasks)), max(1, len(found.tasks))


def latency_text(latency: LatencyInfo | None) -> str:
    """Returns the mean of latencies as Storm UI writes it."""
    return f"{0.0 if latency is None else latency.mean:.3f}"


def percentiles(latency: LatencyInfo | None) -> dict[str, float] | None:
    """Returns p50, p95 and p99 in ms."""
    return None if latency is None else {name: getattr(latency, name) for name in PERCENTILES}


def _totals(counted: Counted, picture: Picture, base: StormBase, window: str) -> SpoutWindow:
    """Returns Storm's totals: what all components emitted and transferred, beside acks and fails of spout tuples."""
    parts = [counted.component(name, window) for name in picture.components(base)]
    return msgspec.structs.replace(
        _of_spouts(counted, picture, base, window),
        emitted=sum(part.emitted for part in parts),
        transferred=sum(part.transferred for part in parts),
    )


def _of_spouts(counted: Counted, picture: Picture, base: StormBase, window: str) -> SpoutWindow:
    spouts = [name for name, (kind, _, _) in picture.components(base).items() if kind in _SPOUTS]
    counts = together(counted.component(name, window) for name in spouts)
    return _windowed(SpoutWindow, counts, window, complete_latency=latency_text(counted.complete(window)))


def _spout_window(counted: Counted, name: str, window: str) -> SpoutWindow:
    counts = counted.component(name, window)
    return _windowed(SpoutWindow, counts, window, complete_latency=latency_text(counts.complete))


def _bolt_window(counted: Counted, name: str, window: str) -> BoltWindow:
    counts = counted.component(name, window)
    return _windowed(BoltWindow, counts, window, **_latencies(counts))


def _windowed(view: type[SomeView], counts: TaskCounts, window: str, **fields: Any) -> SomeView:
    return view.of(counts, window=window, window_pretty=window_hint(window), **fields)


def _latencies(counts: TaskCounts) -> dict[str, Any]:
    """Returns the latencies of a bolt."""
    return {"execute_latency": latency_text(counts.execute), "process_latency": latency_text(counts.process)}


def _last_error(error: ComponentError | None) -> dict[str, Any]:
    if error is None:
        return {}
    return {
        "last_error": error.error,
        "error_host": error.error_host,
        "error_port": error.error_port,
        "error_time": error.error_time,
        "error_lapsed_secs": error.error_lapsed_secs,
        "error_count": error.count,
        "error_first_time": error.first_time,
        "error_before_restart": error.before_restart,
        "error_input": error.input,
    }


def _errors(picture: Picture, base: StormBase, records: Iterable[ErrorRecord]) -> tuple[ComponentError, ...]:
    beat = picture.snapshot.workerbeats.get(base.topology_id)
    restarted = 0.0 if beat is None else beat.started_at
    return tuple(
        ComponentError.of(
            record,
            error=record.message,
            error_time=int(record.time),
            error_host=record.host,
            error_port=record.port,
            error_lapsed_secs=max(0, int(picture.now - record.time)),
            first_time=int(record.time if record.first_time is None else record.first_time),
            before_restart=record.time < restarted,
            **_place(record.trace),
        )
        for record in records
    )


def _place(trace: str) -> dict[str, Any]:
    file, line = location(trace) or ("", None)
    return {"file": file, "line": line}


def _inputs(picture: Picture, base: StormBase, name: str, counted: Counted) -> tuple[InputStats, ...]:
    plan = picture.plan(base.topology_id)
    edges = () if plan is None else tuple((edge.source, edge.stream) for edge in plan.edges if edge.target == name)
    counts = counted.component(name)
    streams = {(stream.source, stream.stream): stream for stream in inputs(counts)}
    if not streams and len(edges) == 1 and counts.executed:
        # A driver that reports no streams.
        mean = None if counts.execute is None else counts.execute.mean
        (source, stream) = edges[0]
        only = StreamCounts(stream, source, execute_ms=mean, process_ms=mean)
        streams = {edges[0]: replace(only, executed=counts.executed, acked=counts.acked, failed=counts.failed)}
    found = [streams.get(edge) or StreamCounts(edge[1], edge[0]) for edge in dict.fromkeys([*edges, *streams])]
    return tuple(
        InputStats.of(
            stream,
            component=stream.source,
            encoded_component_id=quote(stream.source, safe=""),
            execute_latency=_ms(stream.execute_ms),
            process_latency=_ms(stream.process_ms),
        )
        for stream in found
    )


def _ms(milliseconds: float | None) -> str:
    return f"{milliseconds or 0.0:.3f}"


def _outputs(
    picture: Picture, base: StormBase, name: str, counted: Counted, *, is_spout: bool
) -> tuple[OutputStats, ...]:
    plan = picture.plan(base.topology_id)
    heard = set() if plan is None else {edge.stream for edge in plan.edges if edge.source == name}
    counts = counted.component(name)
    streams = {stream.stream: stream for stream in outputs(counts)}
    if not streams and len(heard) < 2 and counts.emitted:
        (stream,) = heard or {"default"}
        only = StreamCounts(stream, complete_ms=None if counts.complete is None else counts.complete.mean)
        streams = {stream: replace(only, **{name: getattr(counts, name) for name in COUNTERS})}
    known = len(heard | streams.keys()) == 1
    found = [streams.get(stream) or StreamCounts(stream) for stream in sorted(heard | streams.keys())]
    return tuple(
        OutputStats(
            stream=stream.stream,
            emitted=stream.emitted,
            transferred=stream.transferred,
            complete_latency=_ms(stream.complete_ms if known else None) if is_spout else None,
            acked=stream.acked if is_spout and known else None,
            failed=stream.failed if is_spout and known else None,
        )
        for stream in found
    )


def _executors(
    picture: Picture, base: StormBase, name: str, found: tuple[str, int, int], counted: Counted
) -> tuple[ExecutorStats, ...]:
    assignment = picture.snapshot.assignments.get(base.topology_id)
    if assignment is None:
        return ()
    kind, count, executors = found
    counts = counted.component(name)
    plan = picture.plan(base.topology_id)
    planned = None if plan is None else plan.components.get(name)
    tasks = list(planned.tasks) if planned is not None else sorted(counts.tasks) or list(range(1, count + 1))
    known = bool(counts.tasks)
    place = worker(picture, base, assignment)
    lines = []
    for part in executors_of(tasks, executors) if known else [tuple(tasks)]:
        sums = together(counts.tasks[task] for task in part if task in counts.tasks) if known else counts
        label = f"[{part[0]}-{part[-1]}]"
        if kind in _SPOUTS:
            of_kind: dict[str, Any] = {"complete_latency": latency_text(sums.complete), "executed": None}
        else:
            of_kind = {"capacity": f"{_busy(counted, name, part, known=known):.3f}", **_latencies(sums)}
        lines.append(
            ExecutorStats.of(
                sums,
                id=label,
                encoded_id=quote(label, safe=""),
                host=assignment.host,
                port=assignment.port,
                uptime=place.uptime,
                uptime_seconds=place.uptime_seconds,
                worker_log_link=place.worker_log_link,
                **of_kind,
            )
        )
    return tuple(lines)


def _busy(counted: Counted, name: str, tasks: tuple[int, ...], *, known: bool) -> float:
    """Returns the capacity of one executor."""
    info = counted.window_info(CAPACITY_WINDOW)
    if info is None or not known or name not in info.components:
        return counted.capacity(name, 1)
    by_task = info.components[name].tasks
    return sum(by_task[task].busy_secs for task in tasks if task in by_task) / info.secs if info.secs else 0.0
