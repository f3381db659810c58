"""`KeyValueState`: what is in use as a dict with a journal, the rest in pages in Spark's state store.

What changed in a micro-batch is written as entries of a journal. A state that fits in memory is no more than that:
when the entries since then weigh as much as the whole, the journal is rewritten.

A larger one has pages as well, and the dict holds what the pages don't say yet (`_unmerged`, which the journal has too)
and a cache of what they do. When too much is unmerged, some parts of the key space are merged into pages. A start reads
the journal, not the pages. Code that knows which keys come tells `look_ahead`: then each page is looked at once for
all of them.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterable, Iterator
from itertools import chain, compress, islice
from typing import Any, NamedTuple

import numpy as np

from storm_on_spark.api.errors import StormError
from storm_on_spark.api.state import KeyValueState
from storm_on_spark.runtime.state.keyvalue import journal
from storm_on_spark.runtime.state.keyvalue.directory import WIDTH
from storm_on_spark.runtime.state.keyvalue.hashes import hash_of, hashes_of
from storm_on_spark.runtime.state.keyvalue.pages import PAGE_BYTES, Pages
from storm_on_spark.runtime.state.keyvalue.rows import GONE, Rows
from storm_on_spark.runtime.state.keyvalue.scan import all_entries
from storm_on_spark.runtime.state.keyvalue.steps import Copied, Step
from storm_on_spark.runtime.state.keyvalue.store import Store, WatchedStore
from storm_on_spark.runtime.state.keyvalue.unmerged import Unmerged
from storm_on_spark.runtime.values import pickling

DEFAULT_MEMORY = 192 << 20
"""Bytes of memory for a task's entries, where nothing else is said."""

_LEAST_BYTES = 4 << 20
"""The journal is not rewritten before what was added weighs this much, or less where memory is small."""
_ENTRY_BYTES = 150
"""What an entry takes in a dict beside key and value themselves, and these as objects beside their bytes."""
_UNMERGED = 3 / 8
"""Of the entries that fit in memory, those that are not in pages, at most. The more there are, the more entries of a
page change when it is rewritten, and the longer a start takes."""
_NEWEST = 1 / 4
"""Of the entries that fit in memory, those that came last. They are kept: a bolt that reads without a look ahead may
want them again."""
_FETCHED_BEFORE_TRIM = 1 << 16
REST_BATCHES = 64
"""Micro-batches without a look ahead after one that did not help."""

_PLAIN = (int, float, str, bytes, bool, type(None))
"""Values of these types can't be changed in place."""

Guard = Callable[[], contextlib.AbstractContextManager[None]]


class Written(NamedTuple):
    """What `commit` has written.

    Args:
        entries: how many the journal has now.
        rewritten: whether the journal was rewritten.
    """

    entries: int
    rewritten: bool


class Usage(NamedTuple):
    """What a state holds in memory."""

    keys: int
    """Entries as Python objects; a key that is known to have no value counts too."""
    unmerged: int
    """Those of which the pages don't have the newest value."""
    page_bytes: int
    """Of pages."""


class StoredState(KeyValueState):
    """The key-value state of a task, as its worker holds it.

    Args:
        memory: bytes for what is held; 5/8 for entries as Python objects, of which there are a few times fewer than
            in as many bytes of pages, and the rest for pages.
        page_bytes: about the size of a page.

    Example:
        >>> state = StoredState()
        >>> state.put("storm", state.get("storm", 0) + 1)
        >>> state.get("storm"), "spark" in state, list(state.items())
        (1, False, [('storm', 1)])
    """

    def __init__(self, memory: int = DEFAULT_MEMORY, page_bytes: int = PAGE_BYTES) -> None:
        self._hot_bytes = memory * 5 // 8
        self._pages = Pages(memory - self._hot_bytes, page_bytes)
        #: The state in this micro-batch; None between two.
        self._store: WatchedStore | None = None
        #: Entries in memory. `GONE` is the value of a key that is known to have none; only where there are pages.
        self._hot: dict[Any, Any] = {}
        #: Keys of which the pages may say something else; all are in `_hot` and in the journal. Empty without pages.
        self._unmerged = Unmerged()
        #: Since the last commit: entries that have been set, and keys that have been deleted before that, or for good.
        self._changed: dict[Any, Any] = {}
        self._removed: dict[Any, None] = {}
        self._size = 0
        #: Whether steps are noted for `undo`, with copies of what `get` hands out: it may be changed in place.
        self._careful = False
        self._steps: list[Step] = []
        #: Keys whose values have been copied since the last mark.
        self._copied: set[Any] = set()
        #: Of the journal: what it was rewritten to, and what was added since.
        self._base_bytes = self._added_bytes = self._added_keys = 0
        #: Of all entries written or read: keys and bytes.
        self._seen_keys = self._seen_bytes = 0
        #: The keys of the last look ahead; how many were looked for, and how many were fetched one by one.
        self._recent: set[Any] = set()
        self._looked = self._fetched = self._rest = 0

    # --- for the bolt ----------------------------------------------------------------------------------------------

    def get(self, key: Any, default: Any = None) -> Any:
        """Returns the value of `key`, or `default`."""
        value = self._hot.get(key, GONE)
        if value is GONE:
            value = self._fetch(key)
            if value is GONE:
                return default
        if self._careful:
            self._copy(key, value)
        return value

    def put(self, key: Any, value: Any) -> None:
        """Sets the value of `key`."""
        if self._careful or key not in self._changed:
            before = self._hot.get(key, GONE)
            if before is GONE:
                before = self._fetch(key)
                if before is GONE:
                    self._size += 1
            if self._careful:
                self._note_step(key, before)
        self._changed[key] = self._hot[key] = value

    def delete(self, key: Any) -> Any:
        """Removes `key`; returns the value that it had, or None."""
        before = self._hot.get(key, GONE)
        if before is GONE:
            before = self._fetch(key)
            if before is GONE:
                return None
        if self._careful:
            self._note_step(key, before)
        self._size -= 1
        self._changed.pop(key, None)
        self._removed[key] = None
        self._clear(key)
        return before

    def items(self) -> Iterator[tuple[Any, Any]]:
        """Yields all (key, value); from pages, where there are any, one bucket after the other."""
        if not self._pages.exist:
            return iter(self._hot.items())
        own = dict.fromkeys(chain(self._unmerged, self._changed, self._removed))
        return all_entries(self._pages, self._reading(), list(own), self._hot)

    def ahead(self, keys: Iterable[Any]) -> Iterator[Any]:
        """Yields keys in an order, and after a reading, with which each page is looked at once."""
        if not self._pages.exist:
            yield from keys
            return
        given = list(keys)
        order, most = np.argsort(hashes_of(given), kind="stable").tolist(), max(1, self.most_ahead)
        for first in range(0, len(order), most):
            part = [given[place] for place in order[first : first + most]]
            self._bring(set(part))
            yield from part

    def __contains__(self, key: object) -> bool:
        return self._hot.get(key, GONE) is not GONE or self._fetch(key) is not GONE

    def __len__(self) -> int:
        return self._size

    def _clear(self, key: Any) -> None:
        if self._pages.exist:
            self._hot[key] = GONE
        else:
            self._hot.pop(key, None)

    def _fetch(self, key: Any) -> Any:
        """Returns the value of a key that is not in memory, or has none; it is in memory from now on."""
        if not self._pages.exist or key in self._hot:
            return GONE
        value = self._pages.find(key, hash_of(key), self._reading())
        self._fetched += 1
        if self._fetched % _FETCHED_BEFORE_TRIM == 0:
            self._trim()
        self._hot[key] = value
        return value

    def _reading(self) -> Store:
        if self._store is None:
            raise StormError("key-value state that is larger than memory can only be read while its bolt executes")
        return self._store

    # --- for the runtime: reading ahead, and taking back -----------------------------------------------------------

    @property
    def looks_ahead(self) -> bool:
        """Whether it helps to know the keys that come."""
        return self._pages.exist and not self._rest

    @property
    def most_ahead(self) -> int:
        """Keys in one look ahead: the fewer looks, the fewer pages are read twice; but the entries have to fit."""
        return self._most // 4

    def look_ahead(self, keys: set[Any]) -> None:
        """Brings the entries of keys into memory that will probably be asked for."""
        self._looked += self._bring(keys)

    def _bring(self, keys: set[Any]) -> int:
        """Brings the entries of keys into memory; returns how many were not there."""
        self._recent = keys
        unknown = list(keys.difference(self._hot))
        if unknown:
            self._trim(len(unknown))
            self._pages.find_all(unknown, self._reading(), self._hot)
        return len(unknown)

    def mark(self) -> int:
        """Returns a mark for `undo`."""
        self._copied.clear()
        return len(self._steps)

    def undo(self, mark: int) -> None:
        """Takes back what was done since `mark`; only after `start_again`, for before it nothing is noted."""
        assert self._careful, "nobody has noted what is to be taken back"
        hot, changed = self._hot, self._changed
        for step in reversed(self._steps[mark:]):
            key, before = step.key, step.before
            if before is GONE:
                self._size -= 1
                changed.pop(key, None)
                self._clear(key)
                continue
            self._size += hot.get(key, GONE) is GONE
            hot[key] = pickling.loads(before.data) if isinstance(before, Copied) else before
            # A key of `_removed` that is there again has to be written, too: as the last one, where a dict has it.
            if step.changed or key in self._removed:
                changed[key] = hot[key]
            else:
                changed.pop(key, None)
        del self._steps[mark:]
        self._copied.clear()

    def start_again(self, store: Store, entries: int) -> None:
        """Takes back all that was done since the last commit, and prepares for more of the kind.

        Until the next `commit`, steps are noted for `undo`, and values are copied before the bolt gets them.

        Args:
            store: what was written so far.
            entries: how many entries of the journal there are in it.
        """
        self.load(store, entries)
        self._careful = True

    def _copy(self, key: Any, value: Any) -> None:
        if not isinstance(value, _PLAIN) and key not in self._copied:
            self._note_step(key, Copied(pickling.dumps(value)))
            self._copied.add(key)

    def _note_step(self, key: Any, before: Any) -> None:
        self._steps.append(Step(key, before, key in self._changed))

    # --- for the runtime: state store -------------------------------------------------------------------------------

    def attach(self, store: Store | None) -> None:
        """Says where entries that are not in memory come from in this micro-batch; from nowhere after it."""
        self._store = None if store is None else WatchedStore(store)

    def load(self, store: Store, entries: int) -> None:
        """Replaces the state by what was written.

        Raises:
            CheckpointError: a record is missing, or has another format version.
        """
        self._hot.clear()
        self._unmerged.clear()
        self._changed, self._removed, self._recent = {}, {}, set()
        self._steps.clear()
        self._base_bytes = self._added_bytes = self._added_keys = 0
        self._pages.load(store)
        self._replay(store, 0, entries)

    def catch_up(self, store: Store, first: int | None, entries: int) -> None:
        """Does what others have written since this state was the present one.

        Args:
            store: what was written.
            first: how many entries of the journal there were then; None if it has been rewritten since.
            entries: how many there are now.
        """
        small = not self._pages.exist
        if first is None:
            if small:
                self.load(store, entries)
            else:
                self._catch_up_rewritten(store, entries)
            return
        merged = self._pages.load(store)
        if small and self._pages.exist:
            self._unmerged.add(self._hot)
        # All that was unmerged in these parts is in their pages; `_replay` adds what has changed since.
        self._unmerged.remove(merged)
        self._replay(store, first, entries)

    def _catch_up_rewritten(self, store: Store, entries: int) -> None:
        """Does it for a rewritten journal, which has all that is not in pages.

        What is in memory is kept, but for the parts that have been merged: there, pages have changes that the journal
        no longer has. A worker that forgot all would look it all up again, after each rewriting by another.
        """
        merged, hot = self._pages.load(store), self._hot
        if merged and hot:
            stale = np.isin(hashes_of(list(hot)) // np.uint32(WIDTH), merged)
            _keep_only(compress(hot.items(), (~stale).tolist()), hot)
        self._unmerged.clear()
        self._base_bytes = self._added_bytes = self._added_keys = 0
        self._replay(store, 0, entries)

    def _replay(self, store: Store, first: int, end: int) -> None:
        hot = self._hot
        for entry, size in journal.unpack(journal.entries(store, first, end)):
            for key in entry.removed:
                self._clear(key)
            hot.update(zip(entry.keys, entry.values, strict=True))
            if self._pages.exist:
                self._unmerged.add(chain(entry.removed, entry.keys))
            self._count(size, len(entry.keys) + len(entry.removed), base=entry.kind == journal.BASE)
        self._size = self._pages.keys if self._pages.exist else len(hot)

    def commit(self, store: Store, entries: int, guard: Guard = contextlib.nullcontext) -> Written | None:
        """Writes what has changed since the last commit; returns None if nothing has.

        Args:
            store: where to.
            entries: how many entries the journal has.
            guard: surrounds what runs code of the bolt's values: pickling.

        Raises:
            Exception: the state store raised when the bolt read from it, whatever the bolt has made of that.
        """
        if self._store is not None and self._store.error is not None:
            raise self._store.error
        self._careful = False
        self._steps.clear()
        self._settle_looks()
        changed, removed = self._changed, list(self._removed)
        if not changed and not removed:
            self._trim()
            return None
        self._changed, self._removed = {}, {}
        with guard():
            added = journal.pack(journal.CHANGES, list(changed), list(changed.values()), removed)
        self._count(sum(map(len, added)), len(changed) + len(removed), base=False)
        if self._pages.exist:
            self._unmerged.add(chain(changed, removed))
        elif len(self._hot) > self._most:
            self._pages.begin()
            self._unmerged.add(self._hot)
        del changed, removed  # Merging takes memory, too.
        self._merge(store, guard)
        rewritten = self._is_long()
        if rewritten:
            with guard():
                added = self._whole_journal()
            self._base_bytes, self._added_bytes, self._added_keys = sum(map(len, added)), 0, 0
            for number in range(len(added), entries):
                store.remove(journal.ENTRIES, number)
            entries = 0
        for number, entry in enumerate(added, entries):
            store.put(journal.ENTRIES, entry, number)
        self._pages.commit(store, self._size)
        self._trim()
        return Written(entries + len(added), rewritten)

    def _whole_journal(self) -> list[bytes]:
        """Returns entries that hold all that is not in pages."""
        hot = self._hot
        if not self._pages.exist:
            return journal.pack(journal.BASE, list(hot), list(hot.values()), [])
        keys = list(self._unmerged)
        values = list(map(hot.__getitem__, keys))
        removed = [key for key, value in zip(keys, values, strict=True) if value is GONE]
        if removed:
            pairs = [pair for pair in zip(keys, values, strict=True) if pair[1] is not GONE]
            keys, values = [key for key, _ in pairs], [value for _, value in pairs]
        return journal.pack(journal.BASE, keys, values, removed)

    def _is_long(self) -> bool:
        """Returns whether the journal is to be rewritten: a start brings all its keys into memory."""
        base, most_keys = (2 * self._base_bytes, self._most) if self._pages.exist else (self._base_bytes, math.inf)
        # Keys count as well as bytes: of packed integers there may be a million in a few kB.
        return self._added_bytes > max(min(_LEAST_BYTES, self._hot_bytes // 16), base) or self._added_keys > most_keys

    def _count(self, size: int, keys: int, *, base: bool) -> None:
        if base:
            self._base_bytes += size
        else:
            self._added_bytes += size
            self._added_keys += keys
        self._seen_bytes += size
        self._seen_keys += keys

    # --- memory -----------------------------------------------------------------------------------------------------

    def usage(self) -> Usage:
        """Returns what is in memory now."""
        return Usage(len(self._hot), len(self._unmerged), self._pages.cached_bytes if self._pages.exist else 0)

    def check(self) -> None:
        """Checks what must always hold: what pages don't say is in memory, and what is in memory will be written.

        For tests; it takes as long as there are entries.

        Raises:
            AssertionError: it does not hold.
        """
        if self._pages.exist:
            assert self._unmerged.keys <= self._hot.keys(), "unmerged entries that are not in memory"
        there = {key for key in self._removed if self._hot.get(key, GONE) is not GONE}
        assert there <= self._changed.keys(), "entries that are there again and would be written as removed"

    @property
    def _most(self) -> int:
        """How many entries fit in memory."""
        return int(self._hot_bytes / (_ENTRY_BYTES + 2 * self._seen_bytes / max(1, self._seen_keys)))

    def _merge(self, store: Store, guard: Guard) -> None:
        """Merges parts into pages, those with most to merge first, when too much is unmerged.

        A part is merged as a whole: another worker takes it from the directory that nothing of it is left.
        """
        for keys in self._unmerged.take(int(self._most * _UNMERGED)):
            with guard():
                rows = Rows.of(keys, list(map(self._hot.__getitem__, keys)))
            self._pages.merge(rows, store)

    def _trim(self, room: int = 0) -> None:
        """Forgets entries that pages hold, until the rest, and `room` more, fits in memory.

        What pages don't say stays; then what was wanted last, and then what came last.
        """
        hot, most = self._hot, self._most
        if not self._pages.exist or len(hot) + room <= most:
            return
        goal = most * 7 // 8 - room
        stay = self._unmerged.keys.union(self._changed, self._removed)
        if len(hot) - len(stay) < len(hot) // 8:
            return  # To forget so few is not worth copying the rest.
        stay.update(islice(self._recent, max(0, goal - len(stay))))
        newest = max(0, min(int(most * _NEWEST), goal - len(stay)))
        entries = iter(hot.items())
        older = compress(islice(entries, max(0, len(hot) - newest)), map(stay.__contains__, hot))
        _keep_only(chain(older, entries), hot)

    def _settle_looks(self) -> None:
        if self._rest:
            self._rest -= 1
        elif self._looked and self._fetched > self._looked:
            self._rest = REST_BATCHES
        self._looked = self._fetched = 0


def _keep_only(kept: Iterable[tuple[Any, Any]], entries: dict[Any, Any]) -> None:
    """Removes all but some from a dict; to remove the others one by one takes several times as long."""
    copied = dict(kept)
    entries.clear()
    entries.update(copied)
