"""The exactly-once matrix: each kind of spout with each kind of state, through each fault, as the page's table says.

Crashes are real: a process is killed between two steps, and the next one continues from what is in files.
"""

from __future__ import annotations

import itertools
import re
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from storm_on_spark.trident.state import StateType

sys.path.insert(0, str(Path(__file__).parent))
import matrix_walk
from matrix_walk import AMID, BETWEEN, OTHER, RULE, TUPLES, UNHEARD, WHOLE

PAGE = Path(__file__).parents[4] / "docs" / "trident-state.md"

SPOUTS = ("non-transactional", "transactional", "opaque")
FAULTS = (WHOLE, OTHER, AMID, BETWEEN, UNHEARD)
STATES = (*(kind.value for kind in StateType), RULE)


def table() -> Iterator[tuple[str, str, str, bool]]:
    """Yields the cells of the page's table: spout, state, fault, whether counts are exact."""
    section = PAGE.read_text("utf-8").split("<!-- exactly-once matrix -->")[1].split("\n\n")[1]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in section.strip().splitlines()]
    header = rows[0][2:]
    for spout, state, *cells in rows[2:]:
        for fault, cell in zip(header, cells, strict=True):
            assert cell in ("exact", "**wrong**"), cell
            yield spout, state, fault, cell == "exact"


CELLS = list(table())


def test_the_table_has_every_cell() -> None:
    assert sorted((spout, state, fault) for spout, state, fault, _ in CELLS) == sorted(
        itertools.product(SPOUTS, STATES, FAULTS)
    )


@pytest.fixture(scope="module")
def walked(tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[str, ...], tuple[int, dict[str, int]]]:
    """How often the process of each cell was killed, and what the state has counted."""
    cells = [cell[:3] for cell in CELLS]
    results = matrix_walk.results_of(matrix_walk.__file__, tmp_path_factory.mktemp("matrix"), cells)
    return dict(zip(cells, results, strict=True))


@pytest.mark.parametrize(
    ("spout", "state", "fault", "exact"),
    [pytest.param(*cell, id=re.sub(r"\W+", "-", " ".join(cell[:3]))) for cell in CELLS],
)
def test_a_cell_of_the_matrix(walked: Any, spout: str, state: str, fault: str, exact: bool) -> None:
    kills, counts = walked[spout, state, fault]
    assert kills == fault.startswith("a crash")
    assert (counts == Counter(TUPLES)) is exact, counts


def test_storms_rule_follows_from_the_table() -> None:
    cells: dict[tuple[str, str], bool] = {}
    for spout, state, _, exact in CELLS:
        cells[spout, state] = cells.get((spout, state), True) and exact
    assert {pair for pair, exact in cells.items() if exact} == {
        ("transactional", "transactional"),
        ("transactional", "opaque"),
        ("transactional", RULE),
        ("opaque", "opaque"),
    }
