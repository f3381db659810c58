"""The tables of measurements, and the targets."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from lab.benchmarks.pacemaker.measure import Measured
from lab.suite.pages import put_between
from lab.suite.tables import Table

BEGIN: Final = "<!-- pacemaker-bench: begin -->"
END: Final = "<!-- pacemaker-bench: end -->"
TARGET: Final = 2_700
"""Supervisors."""
_CPU, _MIB, _P99 = 0.70, 150.0, 0.020

_COLUMNS = (
    *("server", "supervisors", "writes/s", "Mbit/s", "CPU of one core", "µs per write", "resident", "values"),
    *("p50", "p99", "generator's own p99", "Nimbus reads all in", "bears it"),
)

Target = tuple[str, bool, str]
"""A target, whether it was met, and the measurement."""


def line(found: Measured) -> str:
    """Returns one measurement on a line."""
    back = "" if found.back_secs is None else f", all workers at the last server after {found.back_secs:.1f} s"
    state = back if found.sustained else f", not sustained: {_why(found)}"
    return (
        f"{found.contender:9} {found.supervisors:5,} supervisors, {found.size:6,} bytes: "
        f"{found.written_per_sec:6,.0f} writes/s, CPU {found.cpu:4.0%}, {found.resident_mib:5,.0f} MiB, "
        f"p99 {_millis(found.p99)} (generator {_millis(found.lag_p99)}, {found.generator_cpu:.0%}){state}"
    )


def tables(found: Sequence[Measured]) -> str:
    """Returns the tables as Markdown."""
    lines: list[str] = []
    for size in sorted({each.size for each in found}):
        rows = [_row(each) for each in found if each.size == size]
        lines += [f"Heartbeats of {size:,} bytes:", "", *Table("", _COLUMNS, rows).markdown(), ""]
    borne = [(name, f"{size:,}", f"{most:,}", more) for name, size, most, more in maxima(found)]
    lines += [*Table("", ("server", "bytes", "most supervisors borne", "too many"), borne).markdown(), ""]
    for each in found:
        if each.back_secs is not None:
            lines += [
                f"Two of three Pacemakers died under {each.supervisors:,} supervisors with {each.size:,} bytes: all "
                f"workers wrote to the last one after {each.back_secs:.1f} s.",
                "",
            ]
    verdicts = [(what, "yes" if met else "**no**", how) for what, met, how in targets(found)]
    lines += Table("", ("target", "met", "measured"), verdicts).markdown()
    return "\n".join(lines) + "\n"


def _row(each: Measured) -> list[str]:
    return [
        *(each.contender, f"{each.supervisors:,}", f"{each.written_per_sec:,.0f}", f"{each.megabit_per_sec:,.0f}"),
        *(f"{each.cpu:.0%}", f"{each.micros_per_write:,.0f}"),
        *(f"{each.resident_mib:,.0f} MiB", f"{each.values_mib:,.0f} MiB"),
        *(_millis(secs) for secs in (each.p50, each.p99, each.lag_p99)),
        "-" if each.read_secs is None else f"{each.read_secs:.1f} s",
        "yes" if each.sustained else f"no: {_why(each)}",
    ]


def maxima(found: Sequence[Measured]) -> list[tuple[str, int, int, str]]:
    """Returns for each server and size the most supervisors sustained, and the fewest that were too many."""
    rows = []
    for size in sorted({each.size for each in found}):
        for name in dict.fromkeys(each.contender for each in found if each.size == size):
            failed = [each for each in found if (each.contender, each.size, each.sustained) == (name, size, False)]
            first = min(failed, key=lambda each: each.supervisors, default=None)
            more = "not found" if first is None else f"{first.supervisors:,}: {_why(first)}"
            rows.append((name, size, _most(found, name, size), more))
    return rows


def targets(found: Sequence[Measured]) -> list[Target]:
    """Returns the targets that were measured."""
    ours = [each for each in found if each.contender == "ours" and each.supervisors == TARGET]
    wanted: list[Target] = []
    for each in ours:
        what = f"{TARGET:,} supervisors, {each.size:,} bytes"
        extra = each.resident_mib - each.values_mib
        wanted += [
            (f"{what}: at most {_CPU:.0%} of a core", each.sustained and each.cpu <= _CPU, f"{each.cpu:.0%}"),
            (f"{what}: at most {_MIB:.0f} MiB beside the values", extra <= _MIB, f"{extra:.0f} MiB"),
            (f"{what}: p99 of a write at most {_millis(_P99)}", (each.p99 or 1.0) <= _P99, _millis(each.p99)),
        ]
    for size in sorted({each.size for each in found}):
        most = {name: _most(found, name, size) for name in ("ours", "Storm")}
        if all(most.values()):
            text = f"{most['ours']:,} and {most['Storm']:,} supervisors"
            wanted.append((f"{size:,} bytes: as much as Storm's Pacemaker", most["ours"] >= most["Storm"], text))
    return wanted


def write_docs(found: Sequence[Measured], page: Path) -> None:
    """Puts the tables into a page, between its marks.

    Raises:
        ValueError: the page has no such marks.
    """
    put_between(page, BEGIN, END, f"\n{tables(found)}\n")


def _most(found: Sequence[Measured], contender: str, size: int) -> int:
    borne = [each.supervisors for each in found if (each.contender, each.size) == (contender, size) and each.sustained]
    return max(borne, default=0)


def _why(found: Measured) -> str:
    return f"the generator can do no more ({found.why})" if found.of_generator else found.why or "not all written"


def _millis(secs: float | None) -> str:
    return "-" if secs is None else f"{1000 * secs:,.1f} ms"
