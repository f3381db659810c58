"""`make connector-faults`: injects faults into Kafka, Delta and the driver between them.

Exit codes: 0 nothing found, 1 an oracle found something, 2 wrong arguments.
"""

from __future__ import annotations

import json
import random
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console

from lab.connectors.oracles import Figures, check
from lab.connectors.run import Run
from lab.connectors.scenarios import SCENARIOS
from lab.suite import ROOT, command, tables
from lab.suite.pages import put_between, rows_between
from lab.suite.scenario import Result as AnyResult
from lab.suite.scenario import Scenario, ScenarioError, judging, passed, verdict
from lab.suite.tables import Table, cores, show_problems

_PAGE = ROOT / "docs" / "reliability.md"
_BEGIN, _END = "<!-- connector-faults: begin -->", "<!-- connector-faults: end -->"
_SHORT, _SHORT_MESSAGES = ("between",), 4_000
_COLUMNS = ("fault", "injected", "messages", "lost", "duplicates in Delta", "wrong keys", "duplicates in Kafka", "")


@dataclass
class Result(AnyResult):
    """The result of a scenario."""

    figures: Figures | None = None


def _play(scenario: Scenario[Run], messages: int, seed: str, times: int, folder: Path, patience: float) -> Result:
    result = Result(scenario.name, scenario.title)
    with judging(result, folder):
        run = Run(folder, messages, random.Random(f"{seed}/{scenario.name}"), patience)
        result.injections = run.injections
        try:
            scenario.play(run, times)
            run.complete(messages - len(run.gone))
            servers = run.server.bootstrap_servers if run.copies else None
            result.figures, result.problems = check(folder, messages, run.gone, servers, run.uncounted)
            if len(run.injections) < times:
                result.problems.append(f"the fault was injected {len(run.injections)} times, not {times}")
        except (ScenarioError, OSError) as error:
            result.problems.append(f"{type(error).__name__}: {error}")
        finally:
            run.close()
    return result


def main() -> int:
    """Plays the requested scenarios; returns the exit code."""
    parser = command.options_of("lab.connectors", __doc__ or "", SCENARIOS, times=3)
    parser.add_argument("--messages", type=int, default=100_000, help="in the topic")
    parser.add_argument("--seed", help="of an earlier run, for the same moments; random by default")
    options = parser.parse_args()
    if options.messages < 1000:
        parser.error(f"a run has 1000 messages or more (given {options.messages})")
    if options.list:
        return command.list_scenarios(SCENARIOS)
    chosen = command.choose(SCENARIOS, options, _SHORT, [scenario.name for scenario in SCENARIOS])
    messages, times = (_SHORT_MESSAGES, 1) if options.short else (options.messages, options.times)
    seed = options.seed or str(random.SystemRandom().randrange(10**6))
    progress = Console(stderr=True, highlight=False)
    progress.print(f"seed {seed}, {messages:,} messages, {len(chosen)} scenarios")
    results = []
    with command.new_folder("connector-faults") as base:
        for scenario in chosen:
            folder = base / scenario.name
            result = _play(scenario, messages, seed, times, folder, options.patience)
            results.append(result)
            command.tell(progress, result, tables.summary(result, _COLUMNS, _row(result)), folder)
    document = {
        "seed": seed,
        "messages": messages,
        "cores": cores(),
        "passed": passed(results),
        "scenarios": [result.to_dict() for result in results],
    }
    command.hand_out(options, json.dumps(document, indent=1), lambda console: _show(results, console))
    if options.docs and passed(results):
        _write_docs(results, messages)
    return 0 if passed(results) else 1


def _row(result: Result) -> list[str]:
    figures = result.figures
    names = ("messages", "lost", "duplicates", "wrong_keys", "copies")
    values = [None if figures is None else getattr(figures, name) for name in names]
    cells = ["" if value is None else f"{value:,}" for value in values]
    return [result.title, str(len(result.injections)), *cells, verdict([result])]


def _show(results: Sequence[Result], console: Console) -> None:
    Table("Faults of connectors", _COLUMNS, [_row(result) for result in results]).show(console)
    show_problems(results, console)


def _write_docs(results: Sequence[Result], messages: int) -> None:
    """Puts the table into the page; rows of other scenarios stay if they have the same number of messages."""
    note = f"{messages:,} messages in Kafka a run, {cores()} cores."
    text = _PAGE.read_text("utf-8")
    before = rows_between(text, _BEGIN, _END) if note in text else {}
    rows = before | {result.title: _row(result) for result in results}
    table = Table("", _COLUMNS, [rows[each.title] for each in SCENARIOS if each.title in rows])
    begin = "<!-- Written by `python -m lab.connectors --docs`. Don't edit. -->"
    put_between(_PAGE, _BEGIN, _END, "\n".join([begin, "", note, "", *table.markdown(), "", ""]))


if __name__ == "__main__":
    sys.exit(main())
