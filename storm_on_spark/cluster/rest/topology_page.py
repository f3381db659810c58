"""Storm UI's pages of a topology and of a component.

A driver counts a component's tasks together and since its own start, so there is one window, `:all-time`, and one entry
of executor statistics per component.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import Any
from urllib.parse import quote

import msgspec

from storm_on_spark.api.config.secrets import hidden
from storm_on_spark.api.info import ComponentInfo, TopologyInfo
from storm_on_spark.api.streams.constants import is_system_id
from storm_on_spark.api.text.traces import location
from storm_on_spark.api.topology import ComponentKind
from storm_on_spark.cluster.records import ErrorRecord, StormBase
from storm_on_spark.cluster.rest.picture import Picture
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
)
from storm_on_spark.cluster.rest.settings import PageSettings
from storm_on_spark.cluster.rest.summaries import topology_fields, worker
from storm_on_spark.runtime.run.settings import TrackingSettings

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


def topology_page(picture: Picture, base: StormBase, errors: Errors) -> TopologyPage:
    """Returns `topology/:id`."""
    info = picture.info(base.topology_id)
    timeout = TrackingSettings.of(base.conf).timeout_secs
    assignment = picture.snapshot.assignments.get(base.topology_id)
    spouts: list[SpoutLine] = []
    bolts: list[BoltLine] = []
    for name, (kind, tasks, executors) in sorted(picture.components(base).items()):
        counts = _counts(info, name, kind, tasks)
        error = _last_error(next(iter(_errors(picture, base, errors.get(name, ())[-1:])), None))
        line = {"tasks": tasks, "executors": executors, **error}
        encoded = quote(name, safe="")
        if kind in _SPOUTS:
            complete = _complete(info)
            spouts.append(
                SpoutLine.of(counts, spout_id=name, encoded_spout_id=encoded, complete_latency=complete, **line)
            )
        else:
            line |= {"capacity": _capacity(counts, executors, info), **_latencies(counts)}
            bolts.append(BoltLine.of(counts, bolt_id=name, encoded_bolt_id=encoded, **line))
    return TopologyPage(
        **topology_fields(picture, base),
        msg_timeout=int(timeout),
        debug=PageSettings.of(base.conf).debug,
        configuration=hidden(base.conf),
        topology_stats=(_totals(info),),
        spout_stats=_of_spouts(info),
        spouts=tuple(spouts),
        bolts=tuple(bolts),
        workers=() if assignment is None else (worker(picture, base, assignment),),
        pending=0 if info is None else info.pending,
        complete_latency_ms=None if info is None else info.complete_latency_ms,
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
        **picture.freshness,
    )


def _log_link(picture: Picture, base: StormBase) -> str:
    snapshot = picture.snapshot
    where = snapshot.assignments.get(base.topology_id) or snapshot.workerbeats.get(base.topology_id)
    return "" if where is None else picture.log_link(base.topology_id, where.supervisor_id, where.port)


def component_page(picture: Picture, base: StormBase, name: str, errors: Errors) -> ComponentPage | None:
    """Returns `topology/:id/component/:component`; None if the topology has no such component."""
    found = picture.components(base).get(name)
    if found is None:
        return None
    kind, tasks, executors = found
    info = picture.info(base.topology_id)
    counts = _counts(info, name, kind, tasks)
    is_spout = kind in _SPOUTS
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
        debug=PageSettings.of(base.conf).debug,
        component_errors=_errors(picture, base, errors.get(name, ())),
        spout_summary=(SpoutWindow.of(counts, complete_latency=_complete(info)),) if is_spout else None,
        bolt_stats=None if is_spout else (BoltWindow.of(counts, **_latencies(counts)),),
        input_stats=() if is_spout else _inputs(picture, base, name, counts),
        output_stats=_outputs(picture, base, name, counts, info if is_spout else None),
        executor_stats=_executors(picture, base, name, counts, info),
        metrics=counts.metrics_dict(),
        **picture.freshness,
    )


def topology_errors(picture: Picture, base: StormBase, errors: Errors) -> TopologyErrors:
    """Returns `topology/:id/errors`."""
    return TopologyErrors(
        topology_id=base.topology_id,
        errors={name: _errors(picture, base, records) for name, records in sorted(errors.items()) if records},
        **picture.freshness,
    )


def _counts(info: TopologyInfo | None, name: str, kind: str, tasks: int) -> ComponentInfo:
    counted = None if info is None else info.components.get(name)
    return ComponentInfo(name, kind, tasks) if counted is None else counted


def _latency(milliseconds: float | None) -> str:
    return f"{milliseconds or 0.0:.3f}"


def _complete(info: TopologyInfo | None) -> str:
    return _latency((info.complete_latency_ms or {}).get("p50") if info is not None else None)


def _totals(info: TopologyInfo | None) -> SpoutWindow:
    """Returns Storm's totals: what all components emitted and transferred, beside acks and fails of spout tuples."""
    spouts = _of_spouts(info)
    if info is None or not info.components:
        return spouts
    return msgspec.structs.replace(
        spouts,
        emitted=sum(part.emitted for part in info.components.values()),
        transferred=sum(part.transferred for part in info.components.values()),
    )


def _of_spouts(info: TopologyInfo | None) -> SpoutWindow:
    if info is None:
        return SpoutWindow(emitted=0, transferred=0, complete_latency=_latency(None), acked=0, failed=0)
    return SpoutWindow.of(info, complete_latency=_complete(info))


def _latencies(counts: ComponentInfo) -> dict[str, Any]:
    """Returns the latencies of a bolt: a tuple is acked where it is executed, so both are the same."""
    latency = _latency(counts.execute_latency_ms)
    return {"execute_latency": latency, "process_latency": latency}


def _capacity(counts: ComponentInfo, executors: int, info: TopologyInfo | None) -> str:
    """Storm's: the share of the time that an executor spent executing."""
    if info is None or info.uptime_secs <= 0 or counts.execute_latency_ms is None:
        return _latency(None)
    return f"{counts.executed * counts.execute_latency_ms / (1e3 * info.uptime_secs * max(1, executors)):.3f}"


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


def _inputs(picture: Picture, base: StormBase, name: str, counts: ComponentInfo) -> tuple[InputStats, ...]:
    plan = picture.plan(base.topology_id)
    edges = () if plan is None else tuple(edge for edge in plan.edges if edge.target == name)
    alone = len(edges) == 1
    latency = _latency(counts.execute_latency_ms)
    return tuple(
        InputStats(
            component=edge.source,
            encoded_component_id=quote(edge.source, safe=""),
            stream=edge.stream,
            execute_latency=latency if alone else None,
            process_latency=latency if alone else None,
            executed=counts.executed if alone else None,
            acked=counts.acked if alone else None,
            failed=counts.failed if alone else None,
        )
        for edge in edges
    )


def _outputs(
    picture: Picture, base: StormBase, name: str, counts: ComponentInfo, spout: TopologyInfo | None
) -> tuple[OutputStats, ...]:
    plan = picture.plan(base.topology_id)
    heard = set() if plan is None else {edge.stream for edge in plan.edges if edge.source == name}
    streams = sorted(heard) or (["default"] if counts.emitted else [])
    alone = len(streams) == 1
    is_spout = counts.kind in _SPOUTS
    return tuple(
        OutputStats(
            stream=stream,
            emitted=counts.emitted if alone else None,
            transferred=counts.transferred if alone else None,
            complete_latency=_complete(spout) if is_spout else None,
            acked=counts.acked if alone and is_spout else None,
            failed=counts.failed if alone and is_spout else None,
        )
        for stream in streams
    )


def _executors(
    picture: Picture, base: StormBase, name: str, counts: ComponentInfo, info: TopologyInfo | None
) -> tuple[ExecutorStats, ...]:
    assignment = picture.snapshot.assignments.get(base.topology_id)
    if assignment is None:
        return ()
    plan = picture.plan(base.topology_id)
    tasks = () if plan is None or name not in plan.components else plan.components[name].tasks
    label = f"[{tasks[0]}-{tasks[-1]}]" if tasks else f"[1-{counts.tasks}]"
    place = worker(picture, base, assignment)
    if counts.kind in _SPOUTS:
        of_kind: dict[str, Any] = {"complete_latency": _complete(info), "executed": None}
    else:
        of_kind = {"capacity": _capacity(counts, 1, info), **_latencies(counts)}
    return (
        ExecutorStats.of(
            counts,
            id=label,
            encoded_id=quote(label, safe=""),
            host=assignment.host,
            port=assignment.port,
            uptime=place.uptime,
            uptime_seconds=place.uptime_seconds,
            worker_log_link=place.worker_log_link,
            **of_kind,
        ),
    )
