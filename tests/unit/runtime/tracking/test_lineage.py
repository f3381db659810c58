"""What the ackers are told of the tuples that a task executed."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from storm_on_spark.api import Fields
from storm_on_spark.api.tuple import Delivery, KnownLineage
from storm_on_spark.runtime.tracking.acker import FAIL
from storm_on_spark.runtime.tracking.fold import Fold
from storm_on_spark.runtime.tracking.lineage import InputLineage, PackedLineage, contributions

ROOT = st.integers(0, 6)
DELIVERIES = st.lists(
    st.one_of(
        st.tuples(st.none(), st.integers(1, 4), st.booleans()),
        st.tuples(st.lists(ROOT, min_size=1, max_size=5), st.none(), st.booleans()),
        st.tuples(st.lists(ROOT | st.tuples(ROOT, ROOT), min_size=1, max_size=5), st.none(), st.booleans()),
    ),
    max_size=5,
)


def xors_of(folds: list[Fold], mark: int = 0) -> dict[int, int]:
    found: Counter[int] = Counter()
    for fold in folds:
        for root, xor, own in zip(*(column.tolist() for column in fold), strict=True):
            if own == mark:
                found[root] ^= xor
    return {root: xor for root, xor in found.items() if xor}


@given(DELIVERIES, st.data(), st.booleans())
def test_it_comes_to_the_same_as_if_all_were_told_of_each_edge(
    given: list[tuple[Any, Any, bool]], data: st.DataObject, rich: bool
) -> None:
    """Storm's acker hears of an edge twice: from who emitted the tuple, and from who acked it."""
    deliveries, sent, every = [], [], []
    edge = 1
    for roots, size, told in given:
        lineage = None
        count = size if roots is None else len(roots)
        if roots is not None:
            edges = np.array([1 << (edge + i) for i in range(count)], np.uint64)
            edge += count
            plain = all(isinstance(root, int) for root in roots)
            known = np.array(roots, np.uint64) if plain else roots
            lineage = KnownLineage(known, edges, told) if told else PackedLineage(lambda k=known: k, lambda e=edges: e)
            pairs = contributions(known, edges)
            if told:
                sent.append(Fold(*pairs, np.zeros(len(pairs[0]), np.uint8)))
            every += list(zip(roots, edges.tolist(), strict=True))
        else:
            every += [(0, 0)] * count
        deliveries.append((Delivery("source", "default", 1, Fields("value"), lineage), count))
    positions = range(len(every))
    outcome = data.draw(st.lists(st.sampled_from("afh" if rich else "af"), min_size=len(every), max_size=len(every)))
    acked, failed = ([i for i in positions if outcome[i] == what] for what in "af")
    left = InputLineage(deliveries).report(acked if rich else None, failed)
    expected: Counter[int] = Counter()
    for i in positions:
        roots = every[i][0] if isinstance(every[i][0], tuple) else (every[i][0],)
        for root in roots:
            if root:
                expected[root] ^= every[i][1] if outcome[i] != "a" else 0
    assert xors_of([*sent, *left]) == {root: xor for root, xor in expected.items() if xor}
    marked = {root for fold in left for root, _, mark in zip(*(c.tolist() for c in fold), strict=True) if mark == FAIL}
    assert marked == {
        root for i in failed for root in (every[i][0] if isinstance(every[i][0], tuple) else (every[i][0],)) if root
    }


def test_nobody_asks_for_roots_and_edges_where_all_was_acked() -> None:
    def refuse() -> Any:
        pytest.fail("it was asked for")

    packed = Delivery("source", "default", 1, Fields("value"), PackedLineage(refuse, refuse))
    lineage = InputLineage([(packed, 3), (packed, 2)])
    assert lineage.report(None, []) == []
    assert lineage.report([4, 1, 2, 3, 0], []) == []
    assert lineage.size == 5
