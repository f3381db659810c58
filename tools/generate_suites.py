"""Writes the table of other projects' suites into docs/migration.md, from others_programs/suites.yaml of the tests."""

from __future__ import annotations

import sys
from itertools import groupby
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "migration.md"
SUITES = ROOT / "tests" / "integration" / "others_programs" / "suites.yaml"
BEGIN, END = "<!-- suites: written by tools/generate_suites.py -->", "<!-- end of suites -->"


def table(suites: dict[str, Any]) -> str:
    """Returns the table of the suites, and the list of what fails."""
    rows = ["| suite | passed | failed |", "|---|---|---|"]
    lists = []
    for name, suite in suites.items():
        title = f"{name} {suite['release']}"
        rows.append(f"| {title} | {suite['passed']} | {len(suite['failures'])} |")
        for reason, tests in groupby(suite["failures"], suite["failures"].get):
            names = ", ".join(f"`{test.removeprefix('test.')}`" for test in tests)
            lists.append(f"- {title}, {names}: {reason}.")
    return "\n".join([*rows, "", "What fails, and why; a file that can't be imported counts once:", "", *lists])


def main(page: Path) -> None:
    text = PAGE.read_text("utf-8")
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    suites = yaml.safe_load(SUITES.read_text("utf-8"))
    page.write_text(f"{before}{BEGIN}\n\n{table(suites)}\n\n{END}{after}", "utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else PAGE)
