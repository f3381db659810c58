"""The cases: each is one contender with one workload, measured in one or more phases."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

MILLION = 1_000_000

Contender = Literal["ours", "native", "storm", "command", "kafka", "bytewax", "script"]
Group = Literal["main", "growth", "realtime", "connectors", "windows"]
Draw = Literal["zipf", "uniform"]


@dataclass(frozen=True)
class Phase:
    """A span of time in which a case is measured.

    Args:
        name: of the figures.
        rate: roots per second; None for full speed, 0 for none.
        keys: number of keys in this phase; None for that of the case.
        draw: how keys are chosen, if they are drawn.
    """

    name: str
    rate: float | None
    keys: int | None = None
    draw: Draw = "uniform"


FULL = Phase("full speed", None)
IDLE = Phase("idle", 0)


def at(rate: int) -> Phase:
    """Returns the phase at a rate."""
    return Phase(f"{rate:,}/s", rate)


@dataclass(frozen=True)
class Case:
    """One process that is measured.

    Args:
        name: unique.
        contender: the module that runs it.
        workload: the topology, by the contender's name for it.
        phases: one after the other.
        options: further options of the contender.
        profile: of this project's contender, for `topology.profile`.
        quick: whether `make bench-quick` includes it.
        side: whether no target needs it; then every second round leaves it out.
        group: `growth` is for how cost grows, `realtime` for the profile of that name; each is run only when it is
            asked for. So are `connectors`, for what reads Kafka, and `windows`.
    """

    name: str
    contender: Contender
    workload: str
    phases: tuple[Phase, ...]
    options: Mapping[str, Any] = field(default_factory=dict)
    profile: str = "throughput"
    quick: bool = False
    side: bool = False
    group: Group = "main"


HOT = Phase("1,000/s on 10 keys", 1000, keys=10)
"""Few keys change, whatever else is in the state."""

SEVEN_THOUSAND = Phase("7,000/s on 7,000 keys", 7000, keys=7000)
"""So many keys change between two checkpoints of `realtime`."""

ZIPF, UNIFORM = Phase("Zipf keys", None, draw="zipf"), Phase("uniform keys", None, draw="uniform")

LATENCIES = (at(1000), at(10), at(10_000))

PER_TUPLE, COLUMNAR = "per-tuple, acked", "columnar, acked"
COLUMNAR_BOLTS = "columnar bolts, per-tuple spout"
PER_TUPLE_NO_ACKERS, COLUMNAR_NO_ACKERS = "per-tuple, no ackers", "columnar, no ackers"
ONE_CORE = "per-tuple, acked, local[1]"
PINNED = "per-tuple, acked, local[1] on one core"
STORM, STORM_50, STORM_PYTHON = "Storm, Java bolts", "Storm, Java bolts, pending 50", "Storm, Python bolts"
NATIVE, NATIVE_UDF = "native PySpark", "native PySpark, Python UDF"
PYSTORM, MULTILANG = "pystorm bolts, in process", "pystorm bolts, over multilang"
LATENCY, COLUMNAR_LATENCY = "latency, per-tuple", "latency, columnar"
NATIVE_LATENCY, NATIVE_UDF_LATENCY = "latency, native PySpark", "latency, native PySpark, Python UDF"
CHAIN, CHAIN_FUSED, CHAIN_STORM = "chain of 3", "chain of 3, fused", "chain of 3, Storm"
FAN_OUT, JOIN, ROLLING = "fan-out x100", "multi-anchored join", "rolling top words"
COMMAND = "command to first ack"
REALTIME, REALTIME_PENDING = "real time", "real time, pending 500"
REALTIME_CHAIN, REALTIME_MACHINE = "real time, chain of 8", "real time, durability machine"
REALTIME_TWO = "real time, two processes"
REALTIME_SLOW, REALTIME_SLOW_TWO = "real time, bolts of 100 µs", "real time, bolts of 100 µs, two processes"
PATHWAY = "Pathway, Python UDF"


def keys_case(count: int, in_state: bool) -> str:
    """Returns the name of the case with this many keys."""
    return f"{count:,} keys{' in KeyValueState' if in_state else ''}"


def large_case(count: int, in_memory: bool) -> str:
    """Returns the name of the case whose only task has this many keys in its state, in memory as a whole or not."""
    return f"{count:,} keys of one task, {'all in memory' if in_memory else 'memory of the default'}"


def realtime_case(count: int, in_state: bool) -> str:
    """Returns the name of the case of real time with this many keys."""
    return f"real time, {keys_case(count, in_state)}"


def pending_case(count: int) -> str:
    """Returns the name of the case with this many pending roots."""
    return f"{count:,} roots pending" if count else "no roots pending"


_LARGE = {"topology.batch.max.tuples": MILLION}
"""Micro-batches of two seconds for columns too, as they are quick. Tuples are slower in larger ones."""


def _word_counts() -> list[Case]:
    words, columns = "word count", "word count, columnar"
    return [
        Case(PER_TUPLE, "ours", words, (FULL,), quick=True),
        Case(STORM, "storm", words, (FULL, *LATENCIES), {"ackers": 1, "pending": 5000}, quick=True),
        Case(COLUMNAR, "ours", columns, (FULL,), {"conf": _LARGE}, quick=True),
        Case(NATIVE, "native", "built-in functions", (FULL,), quick=True),
        Case(PER_TUPLE_NO_ACKERS, "ours", words, (FULL,), {"acked": False}, quick=True),
        Case(STORM_PYTHON, "storm", "word count, Python", (FULL, at(1000)), {"ackers": 1, "pending": 1000}),
        Case(PYSTORM, "ours", "word count, pystorm", (FULL,)),
        Case(MULTILANG, "ours", "word count, multilang", (FULL,), side=True),
        Case(COLUMNAR_NO_ACKERS, "ours", columns, (FULL,), {"acked": False, "conf": _LARGE}),
        Case(NATIVE_UDF, "native", "Python UDF", (FULL,)),
        Case(ONE_CORE, "ours", words, (FULL,), {"master": "local[1]"}),
        Case(PINNED, "ours", words, (FULL,), {"master": "local[1]", "pinned": True}),
        Case(STORM_50, "storm", words, (FULL, at(1000)), {"ackers": 1, "pending": 50}),
        Case(LATENCY, "ours", words, (*LATENCIES, IDLE), profile="latency", quick=True),
        Case(NATIVE_LATENCY, "native", "built-in functions", (at(1000),), quick=True),
        Case(COLUMNAR_BOLTS, "ours", "word count, columnar bolts", (FULL,), side=True),
        Case(COLUMNAR_LATENCY, "ours", columns, (at(1000),), profile="latency", side=True),
        Case(NATIVE_UDF_LATENCY, "native", "Python UDF", (at(1000),), side=True),
    ]


def _large(keys: int, *, memory_mb: int | None = None, group: Group = "main") -> list[Case]:
    """Returns the cases of a task whose state is larger than its memory, and of the same state entirely in memory."""
    memory = "topology.state.memory.mb"
    conf = {} if memory_mb is None else {memory: memory_mb}
    return [
        Case(
            large_case(keys, in_memory),
            "ours",
            "one task's keys",
            (ZIPF, UNIFORM),
            {"keys": keys, "each": 200_000, "restart": True, "conf": conf},
            group=group,
        )
        for in_memory, conf in ((False, conf), (True, {memory: 1 << 20}))
    ]


def _others() -> list[Case]:
    keys = [
        Case(
            keys_case(count, in_state),
            "ours",
            "keys in KeyValueState" if in_state else "keys",
            (FULL, HOT) if count != 10_000 else (FULL,),
            {"keys": count},
            side=count == 10_000,
        )
        for in_state in (False, True)
        for count in (10, 10_000, MILLION)
    ]
    return [
        Case(CHAIN, "ours", "chain", (FULL,)),
        Case(CHAIN_STORM, "storm", "chain", (FULL,), {"ackers": 1, "pending": 5000}),
        Case(CHAIN_FUSED, "ours", "chain", (FULL,), {"fused": True}, side=True),
        Case(FAN_OUT, "ours", "fan-out", (FULL,), side=True),
        Case(JOIN, "ours", "join", (FULL,), side=True),
        Case(ROLLING, "ours", "rolling top words", (FULL,), side=True),
        *keys,
        *_large(10 * MILLION),
        *(Case(pending_case(count), "ours", "pending", (FULL,), {"held": count}) for count in (0, MILLION)),
        Case(COMMAND, "command", "storm-spark run", (), quick=True),
    ]


def _growth() -> list[Case]:
    return [
        *(
            Case(f"chain of {levels}, latency", "ours", "chain", (at(1000),), {"levels": levels}, "latency")
            for levels in (1, 2, 4, 8)
        ),
        *(
            Case(f"word count, {tasks} tasks a bolt", "ours", "word count", (FULL, at(1000)), {"tasks": tasks})
            for tasks in (1, 4, 16, 64)
        ),
        Case(keys_case(100_000, False), "ours", "keys", (FULL, HOT), {"keys": 100_000}),
        Case(keys_case(100_000, True), "ours", "keys in KeyValueState", (FULL, HOT), {"keys": 100_000}),
        *(
            Case(pending_case(count), "ours", "pending", (FULL,), {"held": count})
            for count in (10_000, 100_000, 4 * MILLION)
        ),
        *_large(MILLION, memory_mb=19),
    ]


def _realtime() -> list[Case]:
    words = "word count"
    cases = [
        Case(REALTIME, "ours", words, (*LATENCIES, IDLE, FULL)),
        Case(REALTIME_PENDING, "ours", words, (FULL,), {"conf": {"topology.max.spout.pending": 500}}),
        Case(REALTIME_TWO, "ours", words, (at(1000), FULL), {"conf": {"topology.workers": 2}}),
        Case(REALTIME_SLOW, "ours", "slow", (FULL,), {"micros": 100}),
        Case(REALTIME_SLOW_TWO, "ours", "slow", (FULL,), {"micros": 100, "conf": {"topology.workers": 2}}),
        Case(REALTIME_CHAIN, "ours", "chain", (at(1000),), {"levels": 8}),
        Case(REALTIME_MACHINE, "ours", words, (at(1000),), {"conf": {"topology.durability": "machine"}}),
        *(
            Case(
                realtime_case(MILLION, in_state),
                "ours",
                "keys in KeyValueState" if in_state else "keys",
                (SEVEN_THOUSAND,),
                {"keys": MILLION},
            )
            for in_state in (False, True)
        ),
    ]
    cases += [
        Case(bytewax_case(processes, recovery), "bytewax", words, (*rates, FULL), _bytewax(processes, recovery))
        for processes, rates in ((1, LATENCIES), (2, (at(1000),)))
        for recovery in (False, True)
    ]
    cases.append(Case(PATHWAY, "script", "pathway", (FULL,), {"script": "word_count.py", "events": 200_000}))
    return [replace(case, profile="realtime", group="realtime") for case in cases]


def bytewax_case(processes: int, recovery: bool) -> str:
    """Returns the name of the word count by bytewax, with this many processes, with or without recovery."""
    return f"bytewax{', two processes' if processes == 2 else ''}{', recovery' if recovery else ''}"


def _bytewax(processes: int, recovery: bool) -> dict[str, Any]:
    return {"processes": processes, "recovery": recovery}


def kafka_case(workload: str, native: bool = False) -> str:
    """Returns the name of the case with this workload from Kafka."""
    return f"Kafka: {workload}{', native PySpark' if native else ''}"


PASS, KAFKA_TUPLES, KAFKA_COLUMNS = "pass-through", "word count", "word count, columnar"
ONLY_COUNTED = "word count, no table"
KAFKA_LATENCY, KAFKA_PAUSE = "latency at 1,000/s", "after a pause of 60 s"
KAFKA_STORM = "Kafka: word count, Storm"


def _connectors() -> list[Case]:
    def pair(name: str, workload: str, phase: Phase, **options: Any) -> list[Case]:
        profile = "latency" if phase is not FULL else "throughput"
        return [
            Case(kafka_case(name, native), "kafka", workload, (phase,), {**options, "native": native}, profile)
            for native in (True, False)
        ]

    cases = [
        *pair(PASS, PASS, FULL),
        *pair(KAFKA_LATENCY, PASS, at(1000)),
        *pair(KAFKA_PAUSE, PASS, at(5000), pause=True),
        *pair(KAFKA_TUPLES, KAFKA_TUPLES, FULL),
        Case(kafka_case(KAFKA_COLUMNS), "kafka", KAFKA_COLUMNS, (FULL,)),
        Case(kafka_case(ONLY_COUNTED), "kafka", ONLY_COUNTED, (FULL,)),
        Case(KAFKA_STORM, "storm", "kafka", (FULL,), {"ackers": 1, "pending": 5000}),
    ]
    return [replace(case, group="connectors") for case in cases]


WINDOW_KEYS = 100
"""Each is counted a hundred times in a window."""


def window_case(which: str) -> str:
    """Returns the name of the case that counts by key in windows, in this manner."""
    return f"windows: {which}"


def _windows() -> list[Case]:
    keys = {"keys": WINDOW_KEYS}
    ours = [
        Case(window_case(f"ours, {kind}"), "ours", f"windows, {kind}", (FULL,), {"conf": conf})
        for kind, conf in (("columnar", _LARGE), ("aggregations", {}), ("tuples", {}))
    ]
    # Storm acks a tuple when it leaves its window, so the limit of pending tuples must be several windows.
    storm = {"ackers": 1, "pending": 100_000, **keys}
    others = [
        Case(window_case("Storm"), "storm", "windows", (FULL,), storm),
        Case(window_case("native PySpark"), "native", "windows", (FULL,), keys),
        *(
            Case(window_case(name), "script", name, (FULL,), {"events": MILLION, **keys})
            for name in ("bytewax", "pathway")
        ),
    ]
    return [replace(case, group="windows") for case in (*ours, *others)]


REALTIME_BESIDE = (STORM, PER_TUPLE, LATENCY, NATIVE_LATENCY)
"""The cases with which those of real time are compared; they run in the same round."""

CASES: dict[str, Case] = {
    case.name: case
    for case in (
        *_word_counts(),
        *_others(),
        *(replace(case, group="growth") for case in _growth()),
        *_realtime(),
        *_connectors(),
        *_windows(),
    )
}
"""All cases, by name, in the order of a round: cases that are compared run close together."""
