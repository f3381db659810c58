"""The tables: on the terminal, as JSON, and in the documentation with plots."""

from __future__ import annotations

import json
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, Literal

from rich.console import Console

from lab.benchmarks import cases
from lab.benchmarks.breakdown import ORDER
from lab.benchmarks.cases import CASES, FULL, IDLE
from lab.benchmarks.harness import Outcome, Pace
from lab.benchmarks.plots import Bar, bars, stacked
from lab.benchmarks.targets import Verdict, shown
from lab.suite.pages import put_between
from lab.suite.tables import Table, cores

Run = Literal["main", "realtime", "connectors"]

BEGIN, END = "<!-- benchmarks: begin -->", "<!-- benchmarks: end -->"
REALTIME_BEGIN, REALTIME_END = "<!-- real time: begin -->", "<!-- real time: end -->"

_BLOCKS: dict[Run, tuple[str, str, str, str]] = {
    "main": ("benchmarks.md", BEGIN, END, "make bench"),
    "realtime": ("real-time.md", REALTIME_BEGIN, REALTIME_END, "make bench-realtime"),
    "connectors": ("connectors.md", "<!-- connectors: begin -->", "<!-- connectors: end -->", "make bench-connectors"),
}
"""A run's page, its markers there, and its command."""

_TARGETS = ("what", "target", "measured", "spread", "")
_SPEED = ("case", "per second", "least", "most", "ratio", "CPU s per million", "checkpoint MB per million")
_LATENCY = ("case", "rate", "p50 ms", "p95 ms", "p99 ms", "CPU cores")
_USE = ("case", "first ack s", "driver MB", "JVM MB", "Python MB")
_BATCH = ("part", "ms")
_NOTES = (
    "Medians over the rounds; least and most are the rounds' extremes. A figure counts what the spout emits and hears "
    "the ack of: sentences, or values; rows for PySpark. The ratio is to the per-tuple word count with acks. CPU is "
    "that of all processes.",
    "Latency is from emit to `ack()`, in PySpark from a row's creation to the end of its micro-batch, in bytewax "
    "to the counting of a sentence's last word.",
    "First ack is from the start of the process. Memory is the most that the driver's Python process and the JVM had "
    "resident, and all other Python processes together at one time.",
)


def as_json(outcomes: Mapping[str, Outcome], verdicts: Sequence[Verdict], pace: Pace, seconds: float) -> str:
    """Returns all results."""
    document = {
        "cores": cores(),
        "pace": asdict(pace),
        "took_seconds": round(seconds),
        "targets": [
            {
                "what": verdict.target.what,
                "target": verdict.target.wanted,
                "median": verdict.median if verdict.values else None,
                "rounds": verdict.values,
                "met": verdict.met,
                "missing": verdict.missing,
            }
            for verdict in verdicts
        ],
        "cases": {name: outcome.to_dict() for name, outcome in outcomes.items()},
    }
    return json.dumps(document, indent=1)


def from_json(text: str) -> tuple[dict[str, Outcome], Pace, float]:
    """Returns the outcomes that `as_json` made a document of, the pace, and how long it took in seconds."""
    document = json.loads(text)
    outcomes = {name: Outcome(CASES[name], **each) for name, each in document["cases"].items() if name in CASES}
    return outcomes, Pace(**document["pace"]), document["took_seconds"]


def show(outcomes: Mapping[str, Outcome], verdicts: Sequence[Verdict], pace: Pace, console: Console) -> None:
    """Prints the tables, and the problems below them."""
    for table in _tables(outcomes, verdicts):
        table.show(console)
    console.print(f"{cores()} cores, {pace.rounds} round(s), {pace.seconds:g} s a phase.", highlight=False)
    for note in _NOTES:
        console.print(note, markup=False, highlight=False)
    for sentence in _wrong(outcomes):
        console.print(sentence, style="red", markup=False)


def write_docs(
    outcomes: Mapping[str, Outcome], verdicts: Sequence[Verdict], pace: Pace, folder: Path, which: Run = "main"
) -> None:
    """Puts the tables between the markers of a run's page, and the plots beside the page.

    Args:
        outcomes: the measurements.
        verdicts: on the targets.
        pace: how often and how long.
        folder: of the pages.
        which: the kind of run.

    Raises:
        ValueError: the page has no markers.
    """
    plots = list(_plots(outcomes))
    page, begin, end, command = _BLOCKS[which]
    if which == "connectors":
        plots = []
    elif which == "realtime":
        plots = [("real-time", title, drawing) for name, title, drawing in plots if name == "latency"]
    images = [f"![{title}]({name}.svg)" for name, title, _ in plots]
    put_between(folder / page, begin, end, markdown(outcomes, verdicts, pace, images, f"{command} BENCH_ARGS=--docs"))
    for name, _, drawing in plots:
        (folder / f"{name}.svg").write_text(drawing, "utf-8")


def markdown(
    outcomes: Mapping[str, Outcome],
    verdicts: Sequence[Verdict],
    pace: Pace,
    images: Sequence[str] = (),
    command: str = "make bench BENCH_ARGS=--docs",
) -> str:
    """Returns the tables in Markdown."""
    lines = [
        f"<!-- Written by `{command}`. Don't edit. -->",
        "",
        f"{cores()} cores, {_rounds(outcomes, pace)}, {pace.seconds:g} s a phase.",
        "",
    ]
    for table in _tables(outcomes, verdicts):
        lines += [f"### {table.title}", "", *table.markdown(), ""]
        if table.columns is _TARGETS:
            lines += [line for image in images for line in (image, "")]
    lines += [line for note in _NOTES for line in (note, "")]
    wrong = _wrong(outcomes)
    if wrong:
        lines += ["What is missing:", "", *(f"- {_in_short(sentence)[:300]}" for sentence in wrong), ""]
    return "\n".join(lines) + "\n"


def _rounds(outcomes: Mapping[str, Outcome], pace: Pace) -> str:
    """Returns the number of rounds; some cases may have had more than others."""
    # Cases that no target needs run in every other round.
    counts = {len(outcome.runs) for outcome in outcomes.values() if outcome.runs and not outcome.case.side}
    few, many = min(counts, default=pace.rounds), max(counts, default=pace.rounds)
    return f"{many} rounds" if few == many else f"{few} to {many} rounds of a case"


def _in_short(problem: str) -> str:
    """Returns the error without its traceback."""
    first, *more = problem.strip().splitlines()
    return " ".join(first.split()) if not more else f"{first.partition(': Traceback')[0]}: {more[-1].strip()}"


def _tables(outcomes: Mapping[str, Outcome], verdicts: Sequence[Verdict]) -> list[Table]:
    tables = [
        Table("Targets", _TARGETS, [_verdict(verdict) for verdict in verdicts]),
        Table("Throughput", _SPEED, _speeds(outcomes)),
        Table("Latency at fixed rates", _LATENCY, _latencies(outcomes)),
        Table("Start and memory", _USE, _uses(outcomes)),
        Table(
            "Parts of a micro-batch at 1,000/s", _BATCH, [[name, f"{ms:.1f}"] for name, ms in _parts(outcomes).items()]
        ),
    ]
    return [table for table in tables if table.rows]


def _verdict(verdict: Verdict) -> list[str]:
    target = verdict.target
    if not verdict.values:
        return [target.what, target.wanted, "", "", f"not measured: {verdict.missing}"]
    figure, *ends = (shown(value, target.unit) for value in (verdict.median, min(verdict.values), max(verdict.values)))
    return [target.what, target.wanted, figure, " to ".join(ends), "met" if verdict.met else "not met"]


def _speeds(outcomes: Mapping[str, Outcome]) -> list[list[str]]:
    reference = _median(outcomes.get(cases.PER_TUPLE), FULL.name, "roots_per_second")
    rows = []
    for name, outcome in outcomes.items():
        values = _values(outcome, FULL.name, "roots_per_second")
        if values:
            median = statistics.median(values)
            rows.append(
                [
                    name,
                    *(f"{value:,.0f}" for value in (median, min(values), max(values))),
                    f"{median / reference:.2f}" if reference else "",
                    _text(_median(outcome, FULL.name, "cpu_secs_per_million"), "{:.1f}"),
                    _text(_median(outcome, FULL.name, "checkpoint_bytes_per_million"), "{:,.1f}", 1e-6),
                ]
            )
    return rows


def _latencies(outcomes: Mapping[str, Outcome]) -> list[list[str]]:
    return [
        [
            name,
            phase.name,
            *(_milliseconds(_median(outcome, phase.name, "latency_ms", p)) for p in ("p50", "p95", "p99")),
            _text(_median(outcome, phase.name, "cores_used"), "{:.2f}" if phase is not IDLE else "{:.3f}"),
        ]
        for name, outcome in outcomes.items()
        for phase in outcome.case.phases
        if phase.rate is not None and _values(outcome, phase.name, "cores_used")
    ]


def _uses(outcomes: Mapping[str, Outcome]) -> list[list[str]]:
    def over_runs(outcome: Outcome, get: Callable[[dict[str, Any]], float | None]) -> float | None:
        found = [value for run in outcome.runs if run is not None and (value := get(run)) is not None]
        return statistics.median(found) if found else None

    rows = []
    for name, outcome in outcomes.items():
        first = over_runs(outcome, lambda run: run.get("first_ack_secs"))
        kinds = [
            over_runs(outcome, lambda run, kind=kind: run.get("memory_mb", {}).get(kind))  # type: ignore[misc]
            for kind in ("driver", "jvm", "python")
        ]
        if first is not None or any(kinds):
            rows.append([name, _text(first, "{:.1f}"), *(_text(kind, "{:,.0f}") for kind in kinds)])
    return rows


def _values(outcome: Outcome, *path: str) -> list[float]:
    """Returns a figure of a phase for each round that has it."""
    found = []
    for run in outcome.runs:
        value: Any = (run or {}).get("phases", {})
        for key in path:
            value = (value or {}).get(key)
        if value is not None:
            found.append(float(value))
    return found


def _median(outcome: Outcome | None, *path: str) -> float | None:
    values = _values(outcome, *path) if outcome is not None else []
    return statistics.median(values) if values else None


def _text(value: float | None, pattern: str, factor: float = 1.0) -> str:
    return "" if value is None else pattern.format(value * factor)


def _milliseconds(value: float | None) -> str:
    return _text(value, "{:,.2f}" if value is not None and value < 10 else "{:,.1f}")


def _wrong(outcomes: Mapping[str, Outcome]) -> list[str]:
    skipped = {outcome.skipped for outcome in outcomes.values() if outcome.skipped}
    sentences = []
    for reason in sorted(skipped):
        names = ", ".join(name for name, outcome in outcomes.items() if outcome.skipped == reason)
        sentences.append(f"Not run: {names}. {reason}")
    return sentences + [problem for outcome in outcomes.values() for problem in outcome.problems]


def _plots(outcomes: Mapping[str, Outcome]) -> list[tuple[str, str, str]]:
    """Returns name, title and SVG of each plot."""
    speeds = (
        cases.NATIVE,
        cases.NATIVE_UDF,
        cases.COLUMNAR_NO_ACKERS,
        cases.COLUMNAR,
        cases.PER_TUPLE_NO_ACKERS,
        cases.PER_TUPLE,
        cases.STORM,
        cases.STORM_50,
        cases.STORM_PYTHON,
    )
    latencies = (
        cases.STORM,
        cases.NATIVE_LATENCY,
        cases.NATIVE_UDF_LATENCY,
        cases.LATENCY,
        cases.COLUMNAR_LATENCY,
        cases.REALTIME,
        cases.bytewax_case(1, False),
        cases.bytewax_case(1, True),
    )
    at_1000 = cases.at(1000).name
    wanted = (
        ("throughput", "Word count", "sentences per second", speeds, (FULL.name, "roots_per_second")),
        ("latency", "Latency at 1,000 sentences per second", "p50 in ms", latencies, (at_1000, "latency_ms", "p50")),
    )
    plots = []
    for name, title, unit, chosen, path in wanted:
        rows = []
        for case in chosen:
            values = _values(outcomes[case], *path) if case in outcomes else []
            if values:
                label = case.removeprefix("latency, ")
                median = statistics.median(values)
                rows.append(Bar(label, median, min(values), max(values), CASES[case].contender))
        if rows:
            plots.append((name, title, bars(title, unit, rows, logarithmic=True)))
    parts = _parts(outcomes)
    if parts:
        title = "Where the time of one micro-batch goes"
        plots.append(("micro-batch", title, stacked(title, "ms", parts)))
    return plots


def _parts(outcomes: Mapping[str, Outcome]) -> dict[str, float]:
    """Returns the parts of a micro-batch of the word count at 1,000 sentences a second, in ms."""
    runs = outcomes[cases.LATENCY].runs if cases.LATENCY in outcomes else []
    found = [run["phases"].get(cases.at(1000).name, {}).get("batch_parts_ms") for run in runs if run is not None]
    all_parts = [parts for parts in found if parts]
    return {
        title: statistics.median(parts.get(title, 0.0) for parts in all_parts)
        for title in ORDER
        if all_parts and any(title in parts for parts in all_parts)
    }
