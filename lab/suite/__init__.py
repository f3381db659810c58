"""The common part of all suites of scenarios: `make faults`, `make failover`, and the tables of `make bench`.

scenario.py   a scenario, what comes of it, and how one ends
command.py    the command line: options, choice, progress, results
tables.py     a table on the terminal and in Markdown
pages.py      the generated part of a page
processes.py  processes that carry a mark, and waiting
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]
