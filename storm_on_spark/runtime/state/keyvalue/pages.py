"""The pages of a task's key-value state: read through a cache, merged and written.

Changes are added to a bucket as a small page, or merged with its newest pages where these are not much larger; so each
entry is rewritten a few times as the state grows, not each time that a neighbour changes.
"""

from __future__ import annotations

import os
import random
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from storm_on_spark.api.errors import CheckpointError
from storm_on_spark.runtime.state.keyvalue.directory import PARTS, WIDTH, Header, PageRef, Part, empty_part, slots_of
from storm_on_spark.runtime.state.keyvalue.hashes import Hashes, hashed, reordered
from storm_on_spark.runtime.state.keyvalue.page import MISSING, Page, encode
from storm_on_spark.runtime.state.keyvalue.rows import GONE, Rows, merged
from storm_on_spark.runtime.state.keyvalue.store import Store

HEADER, DIRECTORY, PAGES = "header", "directory", "pages"
"""Names in the state store."""

PAGE_BYTES = 64 << 10
"""About what a page of the lowest level has when a bucket is cut. Below, a call to the state store costs more than its
bytes; above, a bucket of which few entries are wanted costs more to read. See decision 5."""
_MERGED_UP_TO = 3
"""A page is merged with newer ones unless it has more than this many times their entries."""


class PageCache:
    """Pages in memory, bounded in bytes.

    What goes is chosen at random. A bolt that works through all buckets in their order, batch after batch, would find
    nothing in a cache that drops the least recently used.

    Args:
        limit: bytes.
        seed: of the choice.
    """

    def __init__(self, limit: int, seed: int = 0) -> None:
        self.limit = limit
        self.bytes = 0
        self._pages: dict[tuple[int, int], Page] = {}
        self._order: list[tuple[int, int]] = []
        self._random = random.Random(seed)

    def get(self, ref: PageRef) -> Page | None:
        """Returns a page, or None."""
        return self._pages.get(ref[:2])

    def put(self, ref: PageRef, page: Page) -> None:
        """Adds a page; drops others to make room."""
        name = ref[:2]
        if len(page.data) > self.limit or name in self._pages:
            return
        self._pages[name] = page
        self._order.append(name)
        self.bytes += len(page.data)
        while self.bytes > self.limit:
            place = self._random.randrange(len(self._order))
            self._order[place], self._order[-1] = self._order[-1], self._order[place]
            if self._order[-1] in self._pages:
                self.bytes -= len(self._pages.pop(self._order[-1]).data)
            self._order.pop()

    def drop(self, ref: PageRef) -> None:
        """Removes a page that is no longer needed."""
        page = self._pages.pop(ref[:2], None)
        if page is not None:
            self.bytes -= len(page.data)
        if len(self._order) > 2 * len(self._pages) + 64:
            self._order = list(self._pages)


class Pages:
    """All pages of a task.

    Args:
        cache_bytes: pages that are kept in memory.
        page_bytes: about the size of a page.
    """

    def __init__(self, cache_bytes: int, page_bytes: int = PAGE_BYTES) -> None:
        self._cache = PageCache(cache_bytes)
        self._page_bytes = page_bytes
        self._header: Header | None = None
        self._parts: list[Part] = []
        self._free: list[int] | None = None
        #: Parts that have changed since the last `commit`.
        self._changed: set[int] = set()

    @property
    def exist(self) -> bool:
        """Whether there are pages; a small state has none."""
        return self._header is not None

    @property
    def keys(self) -> int:
        """How many keys the whole state had when it was last committed."""
        return 0 if self._header is None else self._header.keys

    @property
    def cached_bytes(self) -> int:
        """What is in memory."""
        return self._cache.bytes

    def load(self, store: Store) -> list[int]:
        """Reads which pages there are now, as far as that has changed; returns the numbers of the parts that have.

        Raises:
            CheckpointError: a record is missing, or of another format version.
        """
        record = store.get(HEADER)
        changed = []
        if record is None:
            self._header, self._parts = None, []
        else:
            before, known = self._header or Header(), self._parts
            self._header = Header.load(record)
            self._parts = []
            for number, stamp in enumerate(self._header.stamps):
                if known and before.stamps[number] == stamp and number not in self._changed:
                    self._parts.append(known[number])
                    continue
                self._parts.append(self._load_part(store, number) if stamp else empty_part(number))
                if stamp != before.stamps[number]:
                    changed.append(number)
        self._free = None
        self._changed.clear()
        return changed

    @staticmethod
    def _load_part(store: Store, number: int) -> Part:
        record = store.get(DIRECTORY, number)
        if record is None:
            raise CheckpointError(f"part {number} of the directory of key-value state is missing")
        return Part.load(record)

    def begin(self) -> None:
        """Makes an empty directory, for a state that has become too large for memory."""
        self._header = Header()
        self._parts = [empty_part(number) for number in range(PARTS)]

    def commit(self, store: Store, keys: int) -> None:
        """Writes what has changed in the directory.

        Args:
            store: where to.
            keys: how many keys the whole state has.
        """
        if self._header is None:
            return
        if not self._changed and keys == self._header.keys:
            return
        self._header.keys = keys
        for number in sorted(self._changed):
            self._header.stamps[number] = _stamp()
            store.put(DIRECTORY, self._parts[number].dump(), number)
        self._changed.clear()
        store.put(HEADER, self._header.dump())

    # --- reading ---------------------------------------------------------------------------------------------------

    def find(self, key: Any, hashed: int, store: Store) -> Any:
        """Returns the value of a key; `GONE` if it has none."""
        for ref in self._parts[hashed // WIDTH].bucket(hashed):
            value = self._page(ref, store).find(key, hashed)
            if value is not MISSING:
                return value
        return GONE

    def find_all(self, keys: Sequence[Any], store: Store, found: dict[Any, Any]) -> None:
        """Adds the values of keys to `found`, `GONE` for those that have none. Each page is looked at once."""
        hashes, numbers = hashed(keys)
        order = np.argsort(hashes)
        hashes, keys = hashes[order], reordered(keys, numbers, order)
        numbers = None if numbers is None else numbers[order]
        #: Where in `keys` integers were found, and their values; Python objects are made of all at once.
        places: list[NDArray[np.intp]] = []
        values: list[NDArray[np.int64]] = []
        for number, start, end in _runs(hashes):
            part = self._parts[number]
            for refs, first, last in zip(part.pages, *part.cuts(hashes, start, end), strict=True):
                wanted = np.arange(first, last)
                for ref in refs:
                    if not len(wanted):
                        break
                    page, mine = self._page(ref, store), hashes[wanted]
                    ints = None if numbers is None else page.find_ints(numbers[wanted], mine)
                    if ints is None:
                        missing = page.find_all([keys[place] for place in wanted.tolist()], mine, found)
                        wanted = wanted[missing]
                    else:
                        hits, of_hits, others = ints
                        places.append(wanted[hits])
                        values.append(of_hits)
                        wanted = wanted[others]
                if len(wanted):
                    found.update(dict.fromkeys([keys[place] for place in wanted.tolist()], GONE))
        if places:
            known = [keys[place] for place in np.concatenate(places).tolist()]
            found.update(zip(known, np.concatenate(values).tolist(), strict=True))

    def scan(self, store: Store) -> Iterator[tuple[int, int, Rows | None]]:
        """Yields each bucket in the order of hashes: first hash, first of the next, and its entries, if it has any."""
        for number, part in enumerate(self._parts):
            ends = [*part.lows[1:], (number + 1) * WIDTH]
            for low, end, refs in zip(list(part.lows), ends, list(part.pages), strict=True):
                pages = [self._page(ref, store, keep=False).rows() for ref in refs]
                yield low, end, merged(pages, whole=True) if pages else None

    def _page(self, ref: PageRef, store: Store, *, keep: bool = True) -> Page:
        page = self._cache.get(ref)
        if page is None:
            data = store.get(PAGES, ref.slot)
            if data is None or len(data) != ref.size:
                found = "nothing" if data is None else len(data)
                raise CheckpointError(f"page {ref.slot} of key-value state has {found}, not {ref.size} bytes")
            page = Page(data)
            if keep:
                self._cache.put(ref, page)
        return page

    # --- writing ---------------------------------------------------------------------------------------------------

    def merge(self, rows: Rows, store: Store) -> None:
        """Writes changed entries into pages.

        Args:
            rows: the entries, or `GONE` for those that have been deleted.
            store: where to.
        """
        for number, start, end in _runs(rows.hashes):
            part = self._parts[number]
            self._changed.add(number)
            lows, pages = [], []
            for low, refs, first, last in zip(part.lows, part.pages, *part.cuts(rows.hashes, start, end), strict=True):
                buckets = [(low, refs)] if first == last else self._merge(low, refs, rows.slice(first, last), store)
                for bucket_low, bucket_pages in buckets:
                    lows.append(bucket_low)
                    pages.append(bucket_pages)
            self._parts[number] = Part(lows, pages)

    def _merge(self, low: int, refs: list[PageRef], changes: Rows, store: Store) -> list[tuple[int, list[PageRef]]]:
        """Returns what becomes of a bucket: one or several, each with its pages."""
        count, total = 0, len(changes)
        while count < len(refs) and refs[count].rows <= _MERGED_UP_TO * total:
            total += refs[count].rows
            count += 1
        old, kept = refs[:count], refs[count:]
        rows = merged([changes, *(self._page(ref, store).rows() for ref in old)], whole=not kept)
        for ref in old:
            self._cache.drop(ref)
        slots = [ref.slot for ref in old]
        buckets: list[tuple[int, list[PageRef]]] = []
        if not len(rows):
            buckets.append((low, kept))
        else:
            data = encode(rows)
            if kept or len(data) <= 2 * self._page_bytes:
                buckets.append((low, [self._write(rows, data, slots, store), *kept]))
            else:
                for part_low, part in _cut(low, rows, -(-len(data) // self._page_bytes)):
                    buckets.append((part_low, [self._write(part, encode(part), slots, store)]))
        for slot in slots:
            store.remove(PAGES, slot)
            self._free_slots().append(slot)
        return buckets

    def _write(self, rows: Rows, data: bytes, slots: list[int], store: Store) -> PageRef:
        slot = slots.pop() if slots else self._slot()
        store.put(PAGES, data, slot)
        ref = PageRef(slot, _stamp(), len(rows), len(data))
        self._cache.put(ref, Page(data))
        return ref

    def _slot(self) -> int:
        if free := self._free_slots():
            return free.pop()
        assert self._header is not None
        self._header.slots += 1
        return self._header.slots - 1

    def _free_slots(self) -> list[int]:
        if self._free is None:
            assert self._header is not None
            self._free = sorted(set(range(self._header.slots)).difference(slots_of(self._parts)), reverse=True)
        return self._free


def _stamp() -> int:
    """Returns 64 random bits, not all zero."""
    return int.from_bytes(os.urandom(8), "little") or 1


def _runs(hashes: Hashes) -> Iterator[tuple[int, int, int]]:
    """Yields (part, start, end) for ascending hashes."""
    bounds = np.searchsorted(hashes, np.arange(1, PARTS, dtype=np.uint32) * np.uint32(WIDTH)).tolist()
    for number, (start, end) in enumerate(zip([0, *bounds], [*bounds, len(hashes)], strict=True)):
        if start < end:
            yield number, start, end


def _cut(low: int, rows: Rows, count: int) -> Iterator[tuple[int, Rows]]:
    """Yields entries in about `count` buckets, (first hash, entries); those of one hash stay together."""
    bounds, size = [0], len(rows)
    for number in range(1, count):
        # The first entry of its hash.
        place = int(np.searchsorted(rows.hashes, rows.hashes[number * size // count]))
        if place > bounds[-1]:
            bounds.append(place)
    for start, end in zip(bounds, [*bounds[1:], size], strict=True):
        yield low if start == 0 else int(rows.hashes[start]), rows.slice(start, end)
