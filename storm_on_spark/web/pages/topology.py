"""Pages of a topology and of its components."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from storm_on_spark.api.errors import NotAliveError
from storm_on_spark.api.info import ALL_TIME, WINDOWS, LoadInfo, TopologyInfo
from storm_on_spark.api.times import RoundTime
from storm_on_spark.cluster.rest.picture.limits import limits_of
from storm_on_spark.runtime.reports.batch_times import BatchTimes
from storm_on_spark.runtime.reports.early_warnings import EarlyWarning, Facts, early_warnings, with_load
from storm_on_spark.web.model import TopologyView
from storm_on_spark.web.pages.question import Question
from storm_on_spark.web.pictures.times import bars_of_batches, bars_of_rounds, curve, timeline
from storm_on_spark.web.pictures.topology import load_class, load_word, topology_graph
from storm_on_spark.web.rates import Pace
from storm_on_spark.web.rendering import path

WINDOW_WORDS: Final = {"": "since its start", "600": "10 min", "10800": "3 h", "86400": "1 day", ALL_TIME: "all time"}
"""Windows over which pages count, in words."""


def topology(question: Question) -> dict[str, Any]:
    """A topology: its graph, its components, its plan, its time."""
    view = question.site.topology(question.path["id"])
    pace = question.rates.look(view)
    window, counted = in_window(question, view)
    links = {name: path("topology", view.id, "component", name) for name in view.shape.parts}
    load = LoadInfo() if view.info is None or view.info.load is None else view.info.load
    return {
        "view": view,
        "pace": pace,
        "window": window,
        "windows": WINDOW_WORDS if view.info is not None and view.info.windows else {},
        "counted": counted,
        "warnings": warnings_of(question, view, pace),
        "rows": rows_of(view, pace, counted),
        "graph": topology_graph(view.shape, pace, links),
        "acks": curve(pace.history, "acks a second"),
        "times": BatchTimes(tuple(load.batches)),
        "timeline": timeline(bars_of_batches(load.batches), "Time of the last micro-batches, in parts"),
        "rounds": load.rounds,
        "round_parts": _a_second(load.rounds),
        "rounds_timeline": timeline(bars_of_rounds(load.rounds), "Work in real time, second by second, in parts"),
    }


def _a_second(rounds: Sequence[RoundTime]) -> list[tuple[str, float, float | None]]:
    """Returns for each part of rounds its milliseconds a second, and its microseconds a round."""
    secs, count = sum(each.secs for each in rounds), sum(each.rounds for each in rounds)
    names = {name: None for each in rounds for name in each.parts}
    spent = {name: sum(each.parts.get(name, 0.0) for each in rounds) for name in names}
    return [(name, ms / max(1e-9, secs), 1e3 * ms / count if count else None) for name, ms in spent.items()]


def component(question: Question) -> dict[str, Any]:
    """A component: what it got and gave, its tasks, its errors."""
    view = question.site.topology(question.path["id"])
    name = question.path["component"]
    found = view.component(name)
    if found is None:
        known = ", ".join(part.id for part in view.components[:50]) or "none yet"
        raise NotAliveError(f"topology {view.id} has no component {name[:200]!r}; it has: {known}")
    pace = question.rates.look(view)
    window, counted = in_window(question, view)
    found = found if counted is None else counted.components.get(name, found)
    whole = None if view.info is None else view.info.windows.get(window or ALL_TIME)
    return {
        "view": view,
        "window": window,
        "windows": WINDOW_WORDS if view.info is not None and view.info.windows else {},
        "exact": None if whole is None else whole.components.get(name),
        "secs": 0.0 if whole is None else whole.secs,
        "part": found,
        "planned": view.shape.parts.get(name),
        "row": next(row for row in rows_of(view, pace, counted) if row["id"] == name),
        "inputs": [link for link in view.shape.links if link.target == name],
        "outputs": [link for link in view.shape.links if link.source == name],
        "errors": [placed for placed in reversed(view.errors) if placed.error.component == name],
    }


def in_window(question: Question, view: TopologyView) -> tuple[str, TopologyInfo | None]:
    """Returns the window that a page was asked for, and the counters in it; an empty name for those since the start.

    Raises:
        NotAliveError: there is no such window.
    """
    window = question.query.get("window", "")
    if not window or view.info is None:
        return "", view.info
    if window not in WINDOWS:
        raise NotAliveError(f"{window[:80]!r} is not a window; the windows are {', '.join(WINDOWS)}")
    return window, view.info.over(window)


def rows_of(view: TopologyView, pace: Pace, counted: TopologyInfo | None) -> list[dict[str, Any]]:
    """Returns the lines of the table of components."""
    counts = {} if counted is None else counted.components
    return [
        {
            "id": part.id,
            "link": path("topology", view.id, "component", part.id),
            "kind": part.kind,
            "is_spout": part.kind.endswith("spout"),
            "tasks": part.tasks,
            "rate": pace.components.get(part.id, 0.0),
            "counts": counts.get(part.id, part),
            "capacity": pace.capacity.get(part.id),
            "load": load_class(pace.capacity.get(part.id)),
            "load_word": load_word(pace.capacity.get(part.id)),
            "latency": pace.latency_ms.get(part.id),
            "errors": sum(placed.error.count for placed in view.errors if placed.error.component == part.id),
        }
        for part in view.components
    ]


def task(question: Question) -> dict[str, Any]:
    """A task: where it is, its metrics, its errors."""
    shown = component(question)
    number, planned = question.path["task"], shown["planned"]
    if planned is None or number not in map(str, planned.tasks):
        raise NotAliveError(f"{question.path['component'][:200]!r} has no task {number[:20]!r}")
    at = int(number)
    metrics = [
        (name, metric.type, metric.tasks.get(at, metric.tasks.get(number)))
        for name, metric in sorted(shown["part"].metrics.items())
    ]
    return {
        **shown,
        # A task is counted in windows alone; all time is the longest.
        "window": shown["window"] or ALL_TIME,
        "windows": {name: words for name, words in shown["windows"].items() if name},
        "task": at,
        "index": planned.tasks.index(at),
        "metrics": [each for each in metrics if each[2] is not None],
        "errors": [placed for placed in shown["errors"] if placed.error.task == at],
    }


def errors(question: Question) -> dict[str, Any]:
    """All errors of a topology; equal ones are one."""
    view = question.site.topology(question.path["id"])
    return {"view": view, "errors": list(reversed(view.errors)), "count": sum(each.error.count for each in view.errors)}


def configuration(question: Question) -> dict[str, Any]:
    """The configuration of a topology."""
    view = question.site.topology(question.path["id"])
    return {"view": view, "conf": sorted(view.conf.items())}


def changes(question: Question) -> dict[str, Any]:
    """Who changed a topology, and when."""
    view = question.site.topology(question.path["id"])
    return {"view": view, "changes": question.site.changes(view.id), "names": {view.id: view.name}}


def warnings_of(question: Question, view: TopologyView, pace: Pace) -> list[EarlyWarning]:
    """Returns the early warnings about a topology."""
    limits = limits_of(f"page of {view.id}", view.conf)
    spouts = sum(len(part.tasks) for part in view.shape.parts.values() if part.is_spout)
    is_cluster = bool(view.replicas_wanted)
    facts = Facts(
        view.info,
        pace.before,
        pace.seconds,
        pace.capacity,
        limits.message_timeout_secs,
        None if limits.max_pending is None else limits.max_pending * spouts,
        replicas=len(view.replicas) if is_cluster else None,
        replicas_wanted=view.replicas_wanted,
        heartbeats_unknown=view.heartbeats_unknown,
        beat_age_secs=question.site.now() - view.looked_at if is_cluster and view.looked_at else None,
        waits=view.waits,
    )
    return early_warnings(with_load(facts, {name: part.tasks for name, part in view.shape.parts.items()}))
