"""A site with prepared topologies: small and large, idle and busy, with names and errors that want to do harm."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

from storm_on_spark.api.errors import NotAliveError
from storm_on_spark.api.info import (
    WINDOWS,
    ComponentInfo,
    ComponentWindow,
    ErrorInfo,
    LatencyInfo,
    LoadInfo,
    StreamCounts,
    TaskCounts,
    TopologyInfo,
    WindowInfo,
)
from storm_on_spark.api.times import RoundTime
from storm_on_spark.runtime.reports.batch_times import BatchTimes
from storm_on_spark.runtime.samples.events import TupleEvent
from storm_on_spark.web.model import (
    ActionName,
    Change,
    ChangedLevel,
    ClusterView,
    Daemon,
    Link,
    LogFile,
    LogPart,
    Part,
    PlacedError,
    PlannedOperator,
    RefusedError,
    Samples,
    Shape,
    TopologyView,
)
from storm_on_spark.web.sites.levels import wanted_level
from storm_on_spark.web.sites.sampling import wanted_sample

NOW = 1_764_244_800.0
HARM = '"><script>window.harmed=1</script><img src=x onerror="window.harmed=1">'
LONG = "a-component-with-a-name-that-is-longer-than-any-box-" * 4


def error(component: str, message: str, **more: object) -> PlacedError:
    trace = 'Traceback (most recent call last):\n  File "/jobs/words.py", line 12, in execute\n    1 / 0\n'
    found = ErrorInfo(component, 3, message, NOW - 60, trace, "('storm', 0)", 1200, NOW - 3600)
    return PlacedError(found, "host-1:6700")


def window_of(name: str, components: Mapping[str, ComponentInfo], parts: list[Part]) -> WindowInfo:
    """A third of all counts in each window, evenly by task."""
    latency = LatencyInfo(6.9, 5.0, 12.5, 80.0)
    found = {}
    for each in parts:
        counted = components[each.id]
        counts = {"executed": counted.executed // 3, "emitted": counted.emitted // 3, "acked": counted.acked // 3}
        streams = (StreamCounts("default", **counts),)
        tasks = {task: TaskCounts(**counts, execute=latency, busy_secs=60.0, streams=streams) for task in each.tasks}
        found[each.id] = ComponentWindow(**counts, execute=latency, busy_secs=120.0, streams=streams, tasks=tasks)
    return WindowInfo(name, 600.0, found, latency)


def load(rounds: tuple[RoundTime, ...] = ()) -> LoadInfo:
    spent = {"queryPlanning": 15, "latestOffset": 9, "walCommit": 12, "commitOffsets": 8}
    reports = [
        {"batchId": at, "durationMs": {**spent, "addBatch": 80 + more, "triggerExecution": 140 + more}}
        for at in range(40)
        for more in [at % 7 * 20]
    ]
    return LoadInfo(batches=BatchTimes.of(reports).batches, rounds=rounds)


def real_time() -> TopologyView:
    """Executes rounds between micro-batches."""
    view = view_of(
        "in-real-time", [part("numbers", "spout", 1), part("double", "bolt", 3)], [], {"numbers": (800_000, None)}
    )
    assert view.info is not None
    rounds = tuple(
        RoundTime(
            NOW - 40 + at,
            1.0,
            900 + at,
            1800 + 40 * (at % 9),
            {
                "spouts emit": 120.0 + 9 * (at % 9),
                "spouts write": 60.0,
                "reads tuples": 41.5,
                "bolts and ackers": 230.0 + 30 * (at % 5),
                "logs rounds": 35.0,
                "tells spouts": 20.0,
                "saves state": 15.0 if at % 4 else 90.0,
                "waits": 500.0,
            },
        )
        for at in range(40)
    )
    return dataclasses.replace(view, info=dataclasses.replace(view.info, mode="real time", load=load(rounds)))


def view_of(
    name: str,
    parts: list[Part],
    links: list[Link],
    counts: Mapping[str, tuple[int, float | None]],
    *,
    status: str = "ACTIVE",
    uptime: float = 3600.0,
    errors: tuple[PlacedError, ...] = (),
    failed: int = 0,
    counted: bool = True,
) -> TopologyView:
    components = {
        part.id: ComponentInfo(
            part.id,
            part.kind,
            len(part.tasks),
            executed=0 if part.is_spout else counts.get(part.id, (0, None))[0],
            emitted=counts.get(part.id, (0, None))[0],
            transferred=counts.get(part.id, (0, None))[0],
            acked=counts.get(part.id, (0, None))[0],
            execute_latency_ms=counts.get(part.id, (0, None))[1],
        )
        for part in parts
    }
    emitted = sum(part.emitted for part in components.values() if part.kind == "spout")
    latency = {"p50": 80.0, "p95": 120.5, "p99": 2000.0} if emitted else None
    info = TopologyInfo(
        name, "ACTIVE", uptime, emitted, emitted, max(0, emitted - failed), failed, 17, latency, components
    )
    info = dataclasses.replace(
        info, windows={name: window_of(name, components, parts) for name in WINDOWS}, load=load()
    )
    stages = (
        (0, "source", tuple(p.id for p in parts if p.is_spout)),
        (1, "stateful", tuple(p.id for p in parts if not p.is_spout)),
    )
    return TopologyView(
        f"{name}-1-{int(NOW)}",
        name,
        status,
        uptime,
        info if counted else None,
        NOW,
        Shape(
            {part.id: part for part in parts},
            tuple(links),
            (
                PlannedOperator("data source: reads the spout logs", False, stages[:1]),
                PlannedOperator("transformWithState by task", True, stages[1:]),
                PlannedOperator("transformWithState by acker task", True, ((2, "acker", ()),)),
            ),
            4,
            1,
        ),
        {"topology.workers": 2, "topology.name": name, "my.password": "*****", "text": HARM},
        errors,
        owner="ada",
        driver="host-1:6700",
        supervisor="supervisor-1",
        replicas=("nimbus-1:6627", "nimbus-2:6627"),
        replicas_wanted=2,
    )


def part(name: str, kind: str, first: int, tasks: int = 2) -> Part:
    return Part(name, kind, tuple(range(first, first + tasks)), tasks, 0 if kind == "spout" else 1, "reads the log")


def word_count() -> TopologyView:
    """Split is quick, count is slow."""
    bolts = [part("split", "basic_bolt", 2), part("count", "bolt", 4), part("store", "bolt", 6)]
    parts = [part("lines", "spout", 1, 1), *bolts]
    links = [
        Link("lines", "default", "split", "shuffle", "same call"),
        Link("split", "default", "count", "fields(word)", "exchange"),
        Link("count", "default", "store", "global", "exchange"),
    ]
    counts = {"lines": (100_000, None), "split": (100_000, 0.05), "count": (1_000_000, 6.9), "store": (1_000_000, 0.9)}
    errors = (error("count", "ZeroDivisionError: division by zero"),)
    return view_of("word-count", parts, links, counts, errors=errors, failed=12)


def large() -> TopologyView:
    """Sixty components."""
    parts = [part(f"spout-{at}", "spout", 10 * at + 1) for at in range(1, 4)]
    parts += [part(f"bolt-{at:02}", "bolt", 100 + 10 * at) for at in range(57)]
    links = [Link(f"spout-{1 + at % 3}", "default", f"bolt-{at:02}", "shuffle") for at in range(12)]
    links += [Link(f"bolt-{at:02}", "default", f"bolt-{at + 12:02}", "fields(key)") for at in range(45)]
    links += [Link(f"bolt-{at:02}", "late", f"bolt-{at + 25:02}", "shuffle") for at in range(0, 30, 7)]
    links += [Link("bolt-50", "again", "bolt-03", "all")]
    counts = {each.id: (1_000_000 * (at + 1), None if each.is_spout else at * 0.06) for at, each in enumerate(parts)}
    return view_of("sixty-components", parts, links, counts)


def harmful() -> TopologyView:
    parts = [part(HARM, "spout", 1), part(LONG, "bolt", 3), part("javascript:alert(1)", "bolt", 5)]
    links = [Link(HARM, HARM, LONG, HARM, HARM), Link(LONG, "default", "javascript:alert(1)", "shuffle")]
    errors = (error(LONG, HARM), error("__acker", f"\u202e{HARM}"))
    return view_of("harm" + HARM, parts, links, {HARM: (1, None)}, errors=errors)


def single() -> TopologyView:
    return view_of("one", [part("only", "spout", 1, 1)], [], {}, uptime=1.0)


def silent() -> TopologyView:
    found = view_of("silent", [], [], {}, counted=False, uptime=3.0)
    return TopologyView(found.id, found.name, "ACTIVE", 3.0, waits="no free slot on 2 supervisors", owner="bob")


def way(
    root: str, begin: float, parts: list[tuple[str, str, float, float, str, str]], end: TupleEvent
) -> list[TupleEvent]:
    """The samples of a message whose tuples follow one from another.

    Args:
        root: the message.
        begin: when it was emitted.
        parts: of each tuple who emits it, who executes it, how long it waits and is executed, its values, its outcome.
        end: of the message, apart from its root.
    """
    found, now, run = [], begin, "spout"
    for at, (source, target, waited, took, values, outcome) in enumerate(parts):
        edge, message_id = f"{root}{at}", end.message_id if at == 0 else ""
        emit = TupleEvent(now, "emit", source, 1, "default", "", 2, (root,), edge, values, message_id, run=run)
        now, run = now + waited, f"{root}-{at}"
        done = TupleEvent(
            now, "execute", target, 2, "default", source, 1, (root,), edge, values, "", took, outcome, run
        )
        found += [emit, done]
        now += took
    return [*found, end._replace(time=now + 0.004, roots=(root,))]


def sampled() -> list[TupleEvent]:
    """A message that waits for a slow bolt, one that a bolt fails, and one with names that want to do harm."""
    end = TupleEvent(0.0, "end", "lines", 1, message_id="'line-17'", secs=0.75, outcome="acked")
    good = [
        ("lines", "split", 0.012, 0.0004, "('to be or not',)", "acked"),
        ("split", "count", 0.62, 0.0069, "('to',)", "acked"),
        ("count", "store", 0.08, 0.0009, "('to', 3)", "acked"),
    ]
    bad = [
        ("lines", "split", 0.012, 0.0004, f"('{HARM}',)", "acked"),
        ("split", "count", 0.4, 0.0069, "('poison',)", "raised"),
    ]
    harm = [(HARM, LONG, 0.5, 2.0, HARM, "open"), (LONG, "javascript:alert(1)", 0.0, 0.0, "\u202e" + HARM, "failed")]
    failed = end._replace(message_id="'line-18'", outcome="failed")
    return [
        *way("1a", NOW - 60, good, end),
        *way("1b", NOW - 30, bad, failed),
        *way("1c", NOW - 10, harm, failed._replace(component=HARM, message_id=HARM)),
        *way(
            "1d",
            NOW - 5,
            [(f"bolt-{at:02}", f"bolt-{at + 1:02}", 0.1, 0.05, "(1_000_000,)", "acked") for at in range(40)],
            end._replace(component="spout-1", message_id="7"),
        ),
    ]


class SampleSite:
    """Shows prepared topologies, and writes down what it is told to do."""

    title = "Sample"
    actions: tuple[ActionName, ...] = ("activate", "deactivate", "rebalance", "kill", "sample", "log-level")

    def __init__(self, *views: TopologyView, is_cluster: bool = True) -> None:
        self.is_cluster = is_cluster
        self.views = {
            view.id: view for view in views or (word_count(), large(), harmful(), single(), silent(), real_time())
        }
        self.rates: dict[str, float] = {}
        self.levels = {HARM: ChangedLevel(HARM, "DEBUG", NOW + 600)}
        self.events = sampled()
        self.done: list[tuple[str, str, str, str]] = []
        lines = (f"INFO line {at} of {HARM if at == 50 else 'the log'}" for at in range(200))
        self.log = "".join(f"2026-11-27 12:00:00 {line}\n" for line in lines)

    def now(self) -> float:
        return NOW

    def cluster(self) -> ClusterView | None:
        if not self.is_cluster:
            return None
        return ClusterView(
            "nimbus-1:6627",
            "nimbus-2:6627",
            (
                Daemon("nimbus-1:6627", "nimbus-1:6627", "Leader", 86_400.0, "0.9"),
                Daemon("nimbus-2:6627", "nimbus-2:6627", "Stands by", 60.0, "0.9", ("lacks the code of word-count",)),
                Daemon("nimbus-3:6627", "nimbus-3:6627", "Offline"),
            ),
            (
                Daemon("supervisor-1", "host-1", "Up", 3600.0, "0.9", (), 4, 2),
                Daemon("supervisor-2", HARM, "Up", 60.0, "0.9", (), 4, 0),
            ),
            (Daemon("pacemaker-1:6699", "pacemaker-1:6699", "Up", None, "", ("1,200 heartbeats",)),),
            Daemon("zookeeper", "zk-1:2181", "Connected"),
            conf={"storm.zookeeper.port": 2181, "nimbus.seeds": ["nimbus-1", "nimbus-2"]},
        )

    def topologies(self) -> list[TopologyView]:
        return sorted(self.views.values(), key=lambda view: view.name)

    def topology(self, topology_id: str) -> TopologyView:
        try:
            return self.views[topology_id]
        except KeyError:
            raise NotAliveError(f"there is no topology {topology_id[:200]!r}") from None

    def samples(self, topology_id: str) -> Samples:
        known = self.topology(topology_id).shape.parts
        own = [event for event in self.events if event.component in known]
        return Samples(self.rates, tuple(own))

    def act(self, topology_id: str, action: ActionName, options: Mapping[str, str], who: str) -> str:
        self.topology(topology_id)
        if options.get("wait") == "never":
            raise RefusedError("wait: expected seconds, not 'never'")
        if action == "sample":
            component, percent = wanted_sample(options)
            self.rates = {component or "*": percent}
        if action == "log-level":
            logger, level = wanted_level(options, NOW)
            self.levels.pop(logger, None)
            if level is not None:
                self.levels[logger] = ChangedLevel(logger, level.level, level.until)
        self.done.append((topology_id, action, options.get("wait", ""), who))
        return f"{action} of {topology_id}"

    def log_levels(self, topology_id: str) -> list[ChangedLevel]:
        return list(self.levels.values())

    def changes(self, topology_id: str = "") -> list[Change]:
        found = [Change(NOW - 60, "ada", "activate", "word-count-1"), Change(NOW - 7200, HARM, "rebalance", HARM)]
        return [Change(NOW, who, what, to) for to, what, _, who in reversed(self.done)] + found

    def logs(self, topology_id: str) -> list[LogFile]:
        mine = LogFile(f"{topology_id or 'word-count'}/6700/worker.log", "host-1", len(self.log), NOW)
        return [mine, LogFile("x/6701/worker.log", HARM, 0, NOW - 86_400)]

    def read_log(self, log: str, start: int, length: int) -> LogPart:
        if ".." in log or not log.endswith("worker.log"):
            raise NotAliveError(f"there is no log {log[:200]!r}")
        first = start if start >= 0 else max(0, len(self.log) + start)
        return LogPart(self.log[first : first + length], first, len(self.log))
