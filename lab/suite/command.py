"""The command line of a suite: options, choice, progress, results."""

from __future__ import annotations

import argparse
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from rich.console import Console

from lab.suite.scenario import Result, Scenario

S = TypeVar("S", bound=Scenario[Any])


def options_of(package: str, purpose: str, scenarios: Sequence[Scenario[Any]], times: int) -> argparse.ArgumentParser:
    """Returns a parser of the options that every suite has.

    Args:
        package: which `python -m` runs.
        purpose: what it does; the first line counts.
        scenarios: all there are.
        times: how often a fault is injected by default.
    """
    names = [scenario.name for scenario in scenarios]
    parser = argparse.ArgumentParser(prog=f"python -m {package}", description=purpose.splitlines()[0])
    parser.add_argument("--list", action="store_true", help="print the scenarios and end")
    parser.add_argument("--only", action="append", choices=names, metavar="NAME", help="this one; may be repeated")
    parser.add_argument("--times", type=int, default=times, help="how often a fault is injected, if more than once")
    parser.add_argument("--patience", type=float, default=1.0, help="factor on the times allowed, for a busy machine")
    parser.add_argument("--short", action="store_true", help="the form that `make test` runs: each fault once")
    parser.add_argument("--json", action="store_true", help="print the results as JSON")
    parser.add_argument("--docs", action="store_true", help="write the tables into docs/")
    return parser


def list_scenarios(scenarios: Sequence[Scenario[Any]]) -> int:
    """Prints them; returns the exit code."""
    width = max(len(scenario.name) for scenario in scenarios)
    sys.stdout.writelines(f"{scenario.name:{width}}  {scenario.title}\n" for scenario in scenarios)
    return 0


def choose(
    scenarios: Sequence[S], options: argparse.Namespace, short: Collection[str], usual: Collection[str]
) -> list[S]:
    """Returns the scenarios to play: those of `--only`, of the short form, or the usual ones."""
    wanted = options.only or (short if options.short else usual)
    return [scenario for scenario in scenarios if scenario.name in wanted]


def exit_on_sigterm() -> None:
    """Makes SIGTERM an exception from now on, so that an aborted run leaves no processes and files either."""
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))


@contextmanager
def new_folder(suite: str) -> Iterator[Path]:
    """Makes a folder for the scenarios' files; at the end it is removed if it is empty."""
    exit_on_sigterm()
    folder = Path(tempfile.mkdtemp(prefix=f"{suite}-"))
    yield folder
    if not any(folder.iterdir()):
        folder.rmdir()


def tell(progress: Console, result: Result, summary: str, folder: Path) -> None:
    """Prints the result of a scenario.

    Args:
        progress: where.
        result: of the scenario.
        summary: one line about it.
        folder: where it has left its files, if it failed.
    """
    progress.print(f"{time.strftime('%H:%M:%S')} {summary}", markup=False)
    for fault in result.faults:
        progress.print(f"    {fault}", markup=False)
    for problem in result.problems:
        progress.print(f"    {problem}", style="red", markup=False)
    if result.problems:
        progress.print(f"    what the run left is in {folder}", markup=False)


def hand_out(options: argparse.Namespace, document: str, show: Callable[[Console], None]) -> None:
    """Prints the results on standard output: the document, JSON, for `--json`; otherwise what `show` prints."""
    if options.json:
        sys.stdout.write(document + "\n")
    else:
        show(Console())
