"""The exactly-once matrix: each kind of spout with each kind of state, through each fault, as the page's table says."""

from __future__ import annotations

import itertools
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from storm_on_spark.trident.state import FunctionUpdater, IBackingMap, OpaqueMap, StateType
from storm_on_spark.trident.state.external import ExternalMapState, TextStore
from storm_on_spark.trident.state.interfaces import Key

PAGE = Path(__file__).parents[4] / "docs" / "trident-state.md"

SPOUTS = ("non-transactional", "transactional", "opaque")
RULE = "opaque, by Storm's rule alone"
FAULTS = (
    "the batch comes again whole",
    "the batch comes again with other tuples",
    "a crash amid the state's commit",
    "a crash between the state's commit and the batch's",
    "a crash before the source hears of the commit",
)
STATES = (*(kind.value for kind in StateType), RULE)
TUPLES = list("abcabdacbaab")
SIZE = 3


class Crash(Exception):
    """The process ends here."""


class Torn(TextStore, IBackingMap[Any]):
    """A store without transactions; it can crash when half of the keys are written."""

    title = "a store"

    def __init__(self) -> None:
        self.stored: dict[Any, Any] = {}
        self.crashes = False

    def read(self, keys: Sequence[str]) -> Mapping[str, str]:
        return {key: self.stored[key] for key in keys if key in self.stored}

    def write(self, entries: Mapping[Any, Any]) -> None:
        written = list(entries.items())
        if self.crashes:
            self.crashes = False
            self.stored.update(written[: (len(written) + 1) // 2])
            raise Crash
        self.stored.update(written)

    def is_away(self, error: Exception) -> bool:
        return False

    def close(self) -> None: ...

    def multi_get(self, keys: Sequence[Key]) -> list[Any]:
        return [self.stored.get(tuple(key)) for key in keys]

    def multi_put(self, keys: Sequence[Key], values: Sequence[Any]) -> None:
        self.write(dict(zip(map(tuple, keys), values, strict=True)))


class Transactional:
    """Knows of each batch where it begins and ends, from its first attempt on."""

    def __init__(self, other: bool) -> None:
        self.known: dict[int, tuple[int, int]] = {}

    def batch(self, txid: int, attempt: int) -> list[str]:
        start = self.known[txid - 1][1] if txid > 1 else 0
        first, end = self.known.setdefault(txid, (start, start + SIZE))
        return TUPLES[first:end]

    def failed(self) -> None: ...

    def committed(self, heard: bool) -> None: ...


class Opaque:
    """Knows where the last batch that was committed ended."""

    def __init__(self, other: bool) -> None:
        self.other = other
        self.position = self.end = 0

    def batch(self, txid: int, attempt: int) -> list[str]:
        size = SIZE - 1 if attempt and self.other else SIZE
        self.end = min(self.position + size, len(TUPLES))
        return TUPLES[self.position : self.end]

    def failed(self) -> None: ...

    def committed(self, heard: bool) -> None:
        self.position = self.end


class NonTransactional:
    """A queue: what was not acknowledged is put back, in front or behind."""

    def __init__(self, other: bool) -> None:
        self.other = other
        self.queue = list(TUPLES)
        self.pending: list[str] = []

    def batch(self, txid: int, attempt: int) -> list[str]:
        self.pending, self.queue = self.queue[:SIZE], self.queue[SIZE:]
        return self.pending

    def failed(self) -> None:
        self.queue = [*self.queue, *self.pending] if self.other else [*self.pending, *self.queue]

    def committed(self, heard: bool) -> None:
        if not heard:
            self.queue += self.pending


def made(kind: str, store: Torn) -> Any:
    """Returns a state over a store, as a new process makes it."""
    return OpaqueMap.build(store) if kind == RULE else ExternalMapState(store, StateType(kind), "run", "0/1")


def counted(spout_kind: str, kind: str, fault: str) -> dict[str, int]:
    """Processes all tuples, with the fault in batch 2; returns the counts in the state."""
    kinds: dict[str, Any] = dict(zip(SPOUTS, (NonTransactional, Transactional, Opaque), strict=True))
    spout = kinds[spout_kind](fault == "the batch comes again with other tuples")
    store = Torn()
    state = made(kind, store)
    happened = False
    for txid in itertools.count(1):
        for attempt in itertools.count():
            tuples = spout.batch(txid, attempt)
            faulty = txid == 2 and attempt == 0
            store.crashes = faulty and fault == "a crash amid the state's commit"
            try:
                state.begin_commit(txid)
                counts = Counter(tuples)
                updaters = [FunctionUpdater(lambda old, more=more: (old or 0) + more) for more in counts.values()]
                if counts:
                    state.multi_update([[word] for word in counts], updaters)
                state.commit(txid)
                if faulty and fault != "a crash before the source hears of the commit":
                    raise Crash
            except Crash:
                happened = True
                spout.failed()
                if fault.startswith("a crash"):
                    state = made(kind, store)
                continue
            heard = not (faulty and fault == "a crash before the source hears of the commit")
            happened |= not heard
            spout.committed(heard)
            break
        if not tuples:
            break
    assert happened, "the fault did not happen"
    words = sorted(set(TUPLES))
    values = made(kind, store).multi_get([[word] for word in words])
    return {word: value for word, value in zip(words, values, strict=True) if value}


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


@pytest.mark.parametrize(
    ("spout", "state", "fault", "exact"),
    [pytest.param(*cell, id=re.sub(r"\W+", "-", " ".join(cell[:3]))) for cell in CELLS],
)
def test_a_cell_of_the_matrix(spout: str, state: str, fault: str, exact: bool) -> None:
    found = counted(spout, state, fault)
    assert (found == Counter(TUPLES)) is exact, found


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
