"""What comes of a run as a whole: which tests are over their budget.

What takes longer than `slowest_secs` of pyproject.toml is named, not failed: how long a test takes says something about
the machine, too.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator

import pytest

# Programs for the children of multilang components, no modules.
collect_ignore = ["storm_on_spark/multilang/libraries"]


def pytest_addoption(parser: pytest.Parser) -> None:
    """Declares the budget."""
    parser.addini("slowest_secs", "seconds that one test may take before it is named at the end", default="30")


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """Keeps what is compiled of tests, also where the environment forbids it: that is most of what collecting takes.

    What tests import later, from folders of their own, is not kept there.
    """
    before, sys.dont_write_bytecode = sys.dont_write_bytecode, False
    try:
        return (yield)
    finally:
        sys.dont_write_bytecode = before


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Names the tests over the budget, slowest first."""
    budget = float(config.getini("slowest_secs"))
    took: dict[str, float] = {}
    for reports in terminalreporter.stats.values():
        for report in reports:
            if isinstance(report, pytest.TestReport):
                took[report.nodeid] = took.get(report.nodeid, 0.0) + report.duration
    over = sorted(((secs, name) for name, secs in took.items() if secs > budget), reverse=True)
    if over:
        terminalreporter.section(f"over the budget of {budget:.0f} s (slowest_secs in pyproject.toml)")
        for secs, name in over:
            terminalreporter.line(f"{secs:6.1f} s  {name}")
