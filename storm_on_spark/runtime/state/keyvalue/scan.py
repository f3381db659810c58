"""All entries of a state that has pages, in an order that is the same on every worker."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from storm_on_spark.runtime.state.keyvalue.hashes import hashes_of
from storm_on_spark.runtime.state.keyvalue.pages import Pages
from storm_on_spark.runtime.state.keyvalue.rows import GONE
from storm_on_spark.runtime.state.keyvalue.store import Store
from storm_on_spark.runtime.values import pickling


def all_entries(pages: Pages, store: Store, own: Sequence[Any], hot: Mapping[Any, Any]) -> Iterator[tuple[Any, Any]]:
    """Yields all (key, value), one bucket of pages after the other.

    Args:
        pages: the pages.
        store: where they are.
        own: keys that pages may not know, or with another value; all are in `hot`.
        hot: entries in memory, which are newer than pages.
    """
    hashes = hashes_of(own)
    order = np.argsort(hashes)
    hashes, places, first = hashes[order], order.tolist(), 0
    for _, end, rows in pages.scan(store):
        last = first + int(np.searchsorted(hashes[first:], end))
        found: dict[Any, tuple[int, Any]] = {}
        if rows is not None:
            for hashed, (key, value) in zip(rows.hashes.tolist(), rows.items(), strict=True):
                found[key] = hashed, value
        for place, hashed in zip(places[first:last], hashes[first:last].tolist(), strict=True):
            found.setdefault(own[place], (hashed, GONE))
        first = last
        yield from _in_order(found, hot)


def _in_order(found: dict[Any, tuple[int, Any]], hot: Mapping[Any, Any]) -> Iterator[tuple[Any, Any]]:
    """Yields the entries of a bucket in an order that does not depend on what is in memory, or was merged when."""
    ordered = sorted(found.items(), key=lambda item: item[1][0])
    if len({hashed for hashed, _ in found.values()}) < len(found):
        ordered.sort(key=lambda item: (item[1][0], pickling.dumps(item[0])))
    for key, (_, value) in ordered:
        now = hot.get(key, value)
        if now is not GONE:
            yield key, now
