"""The targets: which figures are compared within one round, and the limits."""

from __future__ import annotations

import operator
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

from lab.benchmarks import cases
from lab.benchmarks.cases import (
    FULL,
    HOT,
    IDLE,
    MILLION,
    SEVEN_THOUSAND,
    UNIFORM,
    ZIPF,
    Phase,
    at,
    keys_case,
    large_case,
    pending_case,
)
from lab.benchmarks.harness import Outcome


class MissingError(Exception):
    """A case was not run or failed; the message is a sentence."""


class Round:
    """What was measured in one round.

    Args:
        outcomes: of all rounds, by case.
        number: of the round.
    """

    def __init__(self, outcomes: Mapping[str, Outcome], number: int) -> None:
        self._outcomes = outcomes
        self._number = number

    def __call__(self, case: str, *path: str) -> float:
        """Returns a figure.

        Args:
            case: its name.
            path: where it is in what the case returned.

        Raises:
            MissingError: there is none.
        """
        outcome = self._outcomes.get(case)
        if outcome is None:
            raise MissingError(f'"{case}" was not run')
        if outcome.skipped is not None:
            raise MissingError(outcome.skipped)
        run = outcome.runs[self._number] if self._number < len(outcome.runs) else None
        if run is None:
            raise MissingError(f'"{case}" failed')
        try:
            value: Any = reduce(operator.getitem, path, run)
        except (KeyError, TypeError):
            value = None
        if value is None:
            raise MissingError(f'"{case}" did not measure {", ".join(path)}')
        return float(value)

    def speed(self, case: str) -> float:
        """Returns roots per second at full speed."""
        return self(case, "phases", FULL.name, "roots_per_second")

    def latency(self, case: str, percentile: str) -> float:
        """Returns the complete latency at 1,000 roots per second in ms."""
        return self(case, "phases", at(1000).name, "latency_ms", percentile)


@dataclass(frozen=True)
class Target:
    """One row of the table.

    Args:
        what: the measured quantity.
        wanted: the limit of the figure, such as `≥ 80 %` or `≤ 24 bytes`.
        figure: finds it in a round; raises `MissingError`.
    """

    what: str
    wanted: str
    figure: Callable[[Round], float]

    @property
    def unit(self) -> str:
        """Of the figure."""
        return self.wanted.rpartition(" ")[2]

    def is_met(self, figure: float) -> bool:
        """Whether a figure is as wanted."""
        sign, limit, unit = self.wanted.split(" ")
        compare = operator.ge if sign == "≥" else operator.le
        return bool(compare(figure * 100 if unit == "%" else figure, float(limit)))


@dataclass(frozen=True)
class Verdict:
    """What was measured for a target."""

    target: Target
    values: tuple[float, ...]
    """One for each round that has it."""
    missing: str | None = None
    """Why there is none."""

    @property
    def median(self) -> float:
        """The figure."""
        return statistics.median(self.values)

    @property
    def met(self) -> bool | None:
        """Whether the target is met; None without a figure."""
        return self.target.is_met(self.median) if self.values else None


def judge(outcomes: Mapping[str, Outcome], rounds: int, soak: Mapping[str, Any] | None) -> list[Verdict]:
    """Returns a verdict on each target.

    Args:
        outcomes: what was measured.
        rounds: how often.
        soak: what `make soak` left; None if it was not run.
    """
    return [*_judged(TARGETS, outcomes, rounds), *_of_soak(soak)]


def judge_realtime(outcomes: Mapping[str, Outcome], rounds: int) -> list[Verdict]:
    """Returns a verdict on each target of real time; arguments as for `judge`."""
    return _judged(REALTIME_TARGETS, outcomes, rounds)


def _judged(targets: Sequence[Target], outcomes: Mapping[str, Outcome], rounds: int) -> list[Verdict]:
    found = []
    for target in targets:
        values, missing = [], ""
        for number in range(rounds):
            try:
                values.append(target.figure(Round(outcomes, number)))
            except MissingError as error:
                missing = str(error)
        found.append(Verdict(target, tuple(values), None if values else missing))
    return found


def _of_soak(soak: Mapping[str, Any] | None) -> Sequence[Verdict]:
    found = []
    for what, name, limit in SOAK_LIMITS:
        hours = f"soak of {soak['hours']:.1f} h" if soak else "soak"
        target = Target(f"{hours}: {what}, last quarter over second", f"≤ {limit:g} x", lambda _: 0.0)
        if soak is None:
            found.append(Verdict(target, (), "`make soak` was not run here"))
        else:
            found.append(Verdict(target, (soak["ratios"][name],)))
    return found


SOAK_LIMITS = (
    ("memory", "memory_mb", 1.1),
    ("time of a micro-batch", "batch_ms", 1.15),
    ("checkpoint's size", "checkpoint_mb", 1.25),
    ("open files and sockets", "open_files", 1.1),
)
"""The figures of `soak` that must stay flat: title, name, and the allowed growth."""


def shown(value: float, unit: str) -> str:
    """Returns a figure for readers."""
    if unit == "%":
        value *= 100
    return f"{value:.{2 if unit in ('ms', 'x') else 1}f} {unit}"


def _speeds(case: str, other: str) -> Callable[[Round], float]:
    return lambda of: of.speed(case) / of.speed(other)


def _cost(with_acks: str, without: str) -> Callable[[Round], float]:
    return lambda of: 1 - of.speed(with_acks) / of.speed(without)


def _batch_growth(in_state: bool) -> Callable[[Round], float]:
    def figure(of: Round) -> float:
        large, small = (
            of(keys_case(count, in_state), "phases", HOT.name, "latency_ms", "p50") for count in (MILLION, 10)
        )
        return large / small

    return figure


def _paged(phase: Phase) -> Callable[[Round], float]:
    def figure(of: Round) -> float:
        paged, whole = (
            of(large_case(10 * MILLION, in_memory), "phases", phase.name, "roots_per_second")
            for in_memory in (False, True)
        )
        return paged / whole

    return figure


def _read_at_start(of: Round) -> float:
    case = large_case(10 * MILLION, False)
    return of(case, "start_reads", "bytes") / of(case, "start_reads", "of")


TARGETS: tuple[Target, ...] = (
    Target("word count, per-tuple, acked, over Storm's Java bolts", "≥ 1.2 x", _speeds(cases.PER_TUPLE, cases.STORM)),
    Target(
        "word count, per-tuple, acked, over Storm's Python bolts",
        "≥ 40 x",
        _speeds(cases.PER_TUPLE, cases.STORM_PYTHON),
    ),
    Target(
        "word count, bolts of pystorm in process, over the same over Storm's multilang",
        "≥ 40 x",
        _speeds(cases.PYSTORM, cases.STORM_PYTHON),
    ),
    Target("word count, columnar, acked, over Storm's Java bolts", "≥ 8 x", _speeds(cases.COLUMNAR, cases.STORM)),
    Target("word count, columnar, acked, of native PySpark", "≥ 20 %", _speeds(cases.COLUMNAR, cases.NATIVE)),
    Target("cost of acking, per-tuple", "≤ 25 %", _cost(cases.PER_TUPLE, cases.PER_TUPLE_NO_ACKERS)),
    Target("cost of acking, columnar", "≤ 30 %", _cost(cases.COLUMNAR, cases.COLUMNAR_NO_ACKERS)),
    Target(
        "complete latency p50 at 1,000/s over native stateful PySpark",
        "≤ 2 x",
        lambda of: of.latency(cases.LATENCY, "p50") / of.latency(cases.NATIVE_LATENCY, "p50"),
    ),
    Target(
        "complete latency at 1,000/s, p99 over p50",
        "≤ 3 x",
        lambda of: of.latency(cases.LATENCY, "p99") / of.latency(cases.LATENCY, "p50"),
    ),
    Target("local[2] over local[1]", "≥ 1.7 x", _speeds(cases.PER_TUPLE, cases.ONE_CORE)),
    Target("the same, local[1] with all processes on one core", "≥ 1.7 x", _speeds(cases.PER_TUPLE, cases.PINNED)),
    Target(
        "1 million keys against 10, attributes: throughput",
        "≥ 60 %",
        _speeds(keys_case(MILLION, False), keys_case(10, False)),
    ),
    Target(
        "1 million keys against 10, KeyValueState: throughput",
        "≥ 60 %",
        _speeds(keys_case(MILLION, True), keys_case(10, True)),
    ),
    Target("the same, attributes, with 10 keys that change: latency p50", "≤ 1.2 x", _batch_growth(False)),
    Target("the same, KeyValueState, with 10 keys that change: latency p50", "≤ 1.2 x", _batch_growth(True)),
    Target(
        "10 million keys of one task, KeyValueState: memory of the worker",
        "≤ 500 MB",
        lambda of: of(large_case(10 * MILLION, False), "worker_mb"),
    ),
    Target("the same against all in memory, Zipf: throughput", "≥ 80 %", _paged(ZIPF)),
    Target("the same against all in memory, uniform: throughput", "≥ 30 %", _paged(UNIFORM)),
    Target("the same: read at a start, of the state's bytes", "≤ 10 %", _read_at_start),
    Target(
        "1 million pending roots: state of each",
        "≤ 24 bytes",
        lambda of: of(pending_case(MILLION), "pending_bytes_each"),
    ),
    Target(
        "1 million pending roots against none: throughput", "≥ 70 %", _speeds(pending_case(MILLION), pending_case(0))
    ),
    Target("idle topology, of one core", "≤ 3 %", lambda of: of(cases.LATENCY, "phases", IDLE.name, "cores_used")),
    Target("command to first ack", "≤ 9 s", lambda of: of(cases.COMMAND, "first_ack_secs")),
)
"""Apart from those of the soak."""


def _ms(what: str, case: str, phase: Phase, p50: float | None, p99: float | None) -> list[Target]:
    """Returns the targets of a case's latency; None for one that it doesn't have."""

    def figure(percentile: str) -> Callable[[Round], float]:
        return lambda of: of(case, "phases", phase.name, "latency_ms", percentile)

    limits = (("p50", p50), ("p99", p99))
    return [Target(f"{what}: {p}", f"≤ {ms:g} ms", figure(p)) for p, ms in limits if ms is not None]


def _written(case: str) -> Callable[[Round], float]:
    return lambda of: of(case, "phases", at(1000).name, "checkpoint_bytes_per_million")


def _latency_over(percentile: str, rate: int) -> Callable[[Round], float]:
    path = "phases", at(rate).name, "latency_ms", percentile
    return lambda of: of(cases.REALTIME, *path) / of(cases.STORM, *path)


def _cores(case: str, phase: Phase) -> Callable[[Round], float]:
    return lambda of: of(case, "phases", phase.name, "cores_used")


REALTIME_TARGETS: tuple[Target, ...] = (
    *(
        Target(f"word count at {rate:,}/s, acked: p50 over Storm's Java bolts", "≤ 1 x", _latency_over("p50", rate))
        for rate in (10, 1000, 10_000)
    ),
    Target("the same at 1,000/s: p99 over Storm's", "≤ 3 x", _latency_over("p99", 1000)),
    Target(
        "the same: processor time of all processes over Storm's",
        "≤ 1 x",
        lambda of: _cores(cases.REALTIME, at(1000))(of) / _cores(cases.STORM, at(1000))(of),
    ),
    Target(
        "the same: processor time a message (it was 1,005 µs)",
        "≤ 201 µs",
        lambda of: 1000 * _cores(cases.REALTIME, at(1000))(of),
    ),
    *_ms("word count at 1,000/s, acked", cases.REALTIME, at(1000), 1, 10),
    *_ms("the same at 10/s", cases.REALTIME, at(10), 1, 10),
    *_ms("the same at 10,000/s", cases.REALTIME, at(10_000), 2, 20),
    *_ms("the same in two live processes, at 1,000/s", cases.REALTIME_TWO, at(1000), 2, 15),
    *_ms("chain of 8 levels at 1,000/s", cases.REALTIME_CHAIN, at(1000), 3, None),
    *_ms("1 million keys as attributes, 7,000/s", cases.realtime_case(MILLION, False), SEVEN_THOUSAND, None, 25),
    *_ms("1 million keys in KeyValueState, 7,000/s", cases.realtime_case(MILLION, True), SEVEN_THOUSAND, None, 25),
    *_ms('durability "machine" at 1,000/s', cases.REALTIME_MACHINE, at(1000), 3, 25),
    *_ms("full speed with 500 pending", cases.REALTIME_PENDING, FULL, None, 25),
    Target("full speed over Storm's Java bolts", "≥ 2 x", _speeds(cases.REALTIME, cases.STORM)),
    Target("full speed over Pathway's with a Python UDF", "≥ 1 x", _speeds(cases.REALTIME, cases.PATHWAY)),
    Target("full speed, of the throughput profile's", "≥ 95 %", _speeds(cases.REALTIME, cases.PER_TUPLE)),
    Target(
        "bolts of 100 µs: two live processes over one", "≥ 1.8 x", _speeds(cases.REALTIME_SLOW_TWO, cases.REALTIME_SLOW)
    ),
    Target(
        "command to first ack over Storm's",
        "≤ 1 x",
        lambda of: of(cases.REALTIME, "first_ack_secs") / of(cases.STORM, "first_ack_secs"),
    ),
    Target("idle, of one core", "≤ 1 %", _cores(cases.REALTIME, IDLE)),
    Target(
        "bytes written a message at 1,000/s, over the latency profile's",
        "≤ 1.5 x",
        lambda of: _written(cases.REALTIME)(of) / _written(cases.LATENCY)(of),
    ),
)
"""Of the profile `realtime`, which is measured by itself: `--realtime`."""


def _beside_native(name: str, *path: str) -> Callable[[Round], float]:
    return lambda of: of(cases.kafka_case(name), *path) / of(cases.kafka_case(name, native=True), *path)


_KAFKA_SPEED = ("phases", FULL.name, "roots_per_second")

CONNECTOR_TARGETS: tuple[Target, ...] = (
    Target(
        "Kafka to Delta, pass-through, acked, of native PySpark", "≥ 60 %", _beside_native(cases.PASS, *_KAFKA_SPEED)
    ),
    *(
        Target(
            f"record's making to Delta's commit at 1,000/s, {p}, over native PySpark",
            "≤ 1.3 x",
            _beside_native(cases.KAFKA_LATENCY, "phases", at(1000).name, "latency_ms", p),
        )
        for p in ("p50", "p99")
    ),
    Target(
        "Kafka to word count, per-tuple, acked, over Storm with storm-kafka-client",
        "≥ 1.2 x",
        lambda of: of.speed(cases.kafka_case(cases.ONLY_COUNTED)) / of.speed(cases.KAFKA_STORM),
    ),
    Target(
        "catching up with 60 s of 5,000/s, over native PySpark",
        "≤ 1.3 x",
        _beside_native(cases.KAFKA_PAUSE, "catching_up_secs"),
    ),
)
"""Of what reads Kafka, which is measured by itself: `--connectors`."""


def judge_connectors(outcomes: Mapping[str, Outcome], rounds: int) -> list[Verdict]:
    """Returns a verdict on each target of what reads Kafka; arguments as for `judge`."""
    return _judged(CONNECTOR_TARGETS, outcomes, rounds)
