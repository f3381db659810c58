"""Storm UI's metrics by stream, and the data of its topology's graph: `metrics`, `visualization`, `visualization-init`.

Keys of a graph begin with a colon, as in Storm, whose pages look for them so.
"""

from __future__ import annotations

import re
from typing import Any, Final
from urllib.parse import quote

from storm_on_spark.api.streams.constants import is_system_id
from storm_on_spark.api.topology import ComponentKind
from storm_on_spark.cluster.records import StormBase
from storm_on_spark.cluster.rest.pages.counted import Counted, executors_of, inputs, outputs, window_hint
from storm_on_spark.cluster.rest.pages.summaries import worker
from storm_on_spark.cluster.rest.picture.snapshot import Picture

_SPOUTS: Final = frozenset(kind.value for kind in ComponentKind if kind.is_spout)
_UNSAFE: Final = re.compile(r"[^A-Za-z_\-:.]")
_BOXES: Final = 4
"""Streams in a row of `visualization-init`."""


def metrics_page(picture: Picture, base: StormBase, window: str, *, sys: bool) -> dict[str, Any]:
    """Returns `topology/:id/metrics`: the counters of each component by stream."""
    counted = Counted(picture.info(base.topology_id), window, sys)
    spouts, bolts = [], []
    for name, kind in _components(picture, base, counted).items():
        found = counted.component(name)
        sent = outputs(found)
        line: dict[str, Any] = {
            "id": name,
            "emitted": [{"stream_id": each.stream, "value": each.emitted} for each in sent],
            "transferred": [{"stream_id": each.stream, "value": each.transferred} for each in sent],
        }
        if kind in _SPOUTS:
            for key, field in (("acked", "acked"), ("failed", "failed")):
                line[key] = [{"stream_id": each.stream, "value": getattr(each, field)} for each in sent]
            line["complete_ms_avg"] = [{"stream_id": each.stream, "value": _ms(each.complete_ms)} for each in sent]
            spouts.append(line)
            continue
        for key, field in (("acked", "acked"), ("failed", "failed"), ("executed", "executed")):
            line[key] = [
                {"component_id": each.source, "stream_id": each.stream, "value": getattr(each, field)}
                for each in inputs(found)
            ]
        for key, field in (("process_ms_avg", "process_ms"), ("executed_ms_avg", "execute_ms")):
            line[key] = [
                {"component_id": each.source, "stream_id": each.stream, "value": _ms(getattr(each, field))}
                for each in inputs(found)
            ]
        bolts.append(line)
    return {"window": window, "window-hint": window_hint(window), "spouts": spouts, "bolts": bolts}


def visualization(picture: Picture, base: StormBase, window: str, *, sys: bool) -> dict[str, Any]:
    """Returns `topology/:id/visualization`: by component, what is drawn of it and of the streams that lead to it."""
    info = picture.info(base.topology_id)
    counted = Counted(info, window, sys)
    plan = picture.plan(base.topology_id)
    assignment = picture.snapshot.assignments.get(base.topology_id)
    place = None if assignment is None else worker(picture, base, assignment)
    known = picture.components(base)
    found: dict[str, Any] = {}
    for name, kind in _components(picture, base, counted).items():
        counts = counted.component(name)
        is_spout = kind in _SPOUTS
        _, _, executors = known.get(name, (kind, 1, 1))
        latency = {each.stream: each.complete_ms for each in outputs(counts)}
        if not is_spout:
            latency = {f"{each.source}:{each.stream}": each.process_ms for each in inputs(counts)}
        numbers = (
            sorted(counts.tasks) if plan is None or name not in plan.components else list(plan.components[name].tasks)
        )
        found[name] = {
            ":type": "spout" if is_spout else "bolt",
            ":capacity": 0 if is_spout else counted.capacity(name, executors),
            ":latency": {key: value for key, value in latency.items() if value is not None},
            ":transferred": {each.stream: each.transferred for each in outputs(counts)},
            ":stats": [
                {
                    ":host": place.host,
                    ":port": place.port,
                    ":uptime_secs": place.uptime_seconds,
                    ":transferred": _transferred(counted, name, part),
                }
                for part in executors_of(numbers, executors)
            ]
            if place is not None
            else [],
            ":link": f"/component.html?id={quote(name, safe='')}&topology_id={quote(base.topology_id, safe='')}",
            ":inputs": [
                {
                    ":component": edge.source,
                    ":stream": edge.stream,
                    ":sani-stream": sanitized(edge.stream),
                    ":grouping": edge.grouping,
                }
                for edge in (() if plan is None else plan.edges)
                if edge.target == name
            ],
        }
    return found


def visualization_init(picture: Picture, base: StormBase, window: str, *, sys: bool) -> dict[str, Any]:
    """Returns `topology/:id/visualization-init`: the streams that can be shown or hidden, in rows of four."""
    found = visualization(picture, base, window, sys=sys)
    streams = dict.fromkeys(each[":stream"] for component in found.values() for each in component[":inputs"])
    boxes = [
        {":stream": stream, ":sani-stream": sanitized(stream), ":checked": not is_system_id(stream)}
        for stream in streams
    ]
    rows = [{":row": boxes[at : at + _BOXES]} for at in range(0, len(boxes), _BOXES)]
    return {"visualizationTable": rows}


def sanitized(stream: str) -> str:
    """Returns a stream's name as Storm UI makes an HTML id of it.

    Example:
        >>> sanitized("words of 2"), sanitized("2nd")
        ('words_of__', '_s_nd')
    """
    return _UNSAFE.sub("_", stream if re.match("[A-Za-z]", stream) else rf"\s{stream}")


def _transferred(counted: Counted, name: str, tasks: tuple[int, ...]) -> dict[str, dict[str, int]]:
    """Returns by window and stream what the tasks of an executor transferred."""
    found: dict[str, dict[str, int]] = {}
    for window in counted.windows:
        by_task = counted.component(name, window).tasks
        sums = found.setdefault(window, {})
        for task in tasks:
            for each in outputs(by_task[task]) if task in by_task else ():
                stream = sanitized(each.stream)
                sums[stream] = sums.get(stream, 0) + each.transferred
    return found


def _components(picture: Picture, base: StormBase, counted: Counted) -> dict[str, str]:
    """Returns the kind of each component, system components last."""
    known = {name: kind for name, (kind, _, _) in sorted(picture.components(base).items())}
    return {**known, **dict.fromkeys(counted.system_components(), "bolt")}


def _ms(milliseconds: float | None) -> str:
    return f"{milliseconds or 0.0:.3f}"
