"""Walks cells of the exactly-once matrix, each in processes of its own that are killed where the cell says so.

`matrix_walk.py FOLDER` reads cells from standard input, and prints what each has counted. All that outlives a process
lies in files: the state, what the source knows, and how far the coordinator is. Each process is forked, so that it
starts at once.
"""

from __future__ import annotations

import itertools
import json
import os
import pickle
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[3]))
from lengths import PATIENCE_SECS

from storm_on_spark.trident.state import FunctionUpdater, IBackingMap, OpaqueMap, StateType
from storm_on_spark.trident.state.external import ExternalMapState, TextStore
from storm_on_spark.trident.state.interfaces import Key

RULE = "opaque, by Storm's rule alone"
WHOLE = "the batch comes again whole"
OTHER = "the batch comes again with other tuples"
AMID = "a crash amid the state's commit"
BETWEEN = "a crash between the state's commit and the batch's"
UNHEARD = "a crash before the source hears of the commit"
TUPLES = list("abcabdacbaab")
SIZE = 3
FAULTY = 2
"""The batch in whose first attempt the fault is."""


def die() -> None:
    """Ends this process as a crash does."""
    os.kill(os.getpid(), signal.SIGKILL)


class Kept:
    """A file that has an old content or a new one."""

    def __init__(self, place: Path, content: Any) -> None:
        self._place = place
        self.content = pickle.loads(place.read_bytes()) if place.exists() else content

    def save(self) -> None:
        new = self._place.with_suffix(".new")
        new.write_bytes(pickle.dumps(self.content))
        new.replace(self._place)


class Torn(TextStore, IBackingMap[Any]):
    """A store without transactions: a file of one entry after the other. It can crash when half of them are written."""

    title = "a store"

    def __init__(self, place: Path) -> None:
        self._place = place
        self.crashes = False

    def read(self, keys: Sequence[str]) -> Mapping[str, str]:
        stored = self._stored()
        return {key: stored[key] for key in keys if key in stored}

    def write(self, entries: Mapping[Any, Any]) -> None:
        with self._place.open("ab", buffering=0) as file:
            for number, entry in enumerate(entries.items()):
                if self.crashes and number == (len(entries) + 1) // 2:
                    die()
                file.write(pickle.dumps(entry))

    def is_away(self, error: Exception) -> bool:
        return False

    def close(self) -> None: ...

    def multi_get(self, keys: Sequence[Key]) -> list[Any]:
        stored = self._stored()
        return [stored.get(tuple(key)) for key in keys]

    def multi_put(self, keys: Sequence[Key], values: Sequence[Any]) -> None:
        self.write(dict(zip(map(tuple, keys), values, strict=True)))

    def _stored(self) -> dict[Any, Any]:
        stored: dict[Any, Any] = {}
        if self._place.exists():
            with self._place.open("rb") as file:
                while file.peek(1):  # type: ignore[attr-defined]
                    key, value = pickle.load(file)
                    stored[key] = value
        return stored


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


KINDS: dict[str, Any] = {"non-transactional": NonTransactional, "transactional": Transactional, "opaque": Opaque}


def made(kind: str, store: Torn) -> Any:
    """Returns a state over a store, as a new process makes it."""
    return OpaqueMap.build(store) if kind == RULE else ExternalMapState(store, StateType(kind), "run", "0/1")


def walk(folder: Path, spout_kind: str, kind: str, fault: str) -> None:
    """Processes all tuples from where the last process was killed; writes the counts that are in the state."""
    source = Kept(folder / "source", KINDS[spout_kind](fault == OTHER))
    #: The batch, its attempt, and whether the source has heard of the commit of the one before.
    progress = Kept(folder / "progress", (1, 0, True))
    store = Torn(folder / "store")
    state = made(kind, store)
    txid, attempt, heard = progress.content
    if not heard:
        source.content.committed(heard=False)
    elif attempt:
        source.content.failed()
    while True:
        progress.content = txid, attempt + 1, True
        tuples = source.content.batch(txid, attempt)
        source.save()
        progress.save()
        faulty = txid == FAULTY and attempt == 0
        store.crashes = faulty and fault == AMID
        state.begin_commit(txid)
        counts = Counter(tuples)
        updaters = [FunctionUpdater(lambda old, more=more: (old or 0) + more) for more in counts.values()]
        if counts:
            state.multi_update([[word] for word in counts], updaters)
        state.commit(txid)
        if faulty and fault in (WHOLE, OTHER):
            source.content.failed()
            attempt += 1
            continue
        if faulty and fault == BETWEEN:
            die()
        txid, attempt = txid + 1, 0
        progress.content = txid, attempt, False
        progress.save()
        if faulty and fault == UNHEARD:
            die()
        source.content.committed(heard=True)
        if not tuples:
            break
    words = sorted(set(TUPLES))
    values = made(kind, store).multi_get([[word] for word in words])
    found = {word: value for word, value in zip(words, values, strict=True) if value}
    (folder / "counts.json").write_text(json.dumps(found))


def killed(folder: Path, cell: Sequence[str], walk: Callable[..., None]) -> int:
    """Walks a cell in one process after the other until one ends by itself; returns how many were killed."""
    folder.mkdir()
    for kills in itertools.count():
        child = os.fork()
        if not child:
            try:
                walk(folder, *cell)
                os._exit(0)
            except BaseException:
                sys.excepthook(*sys.exc_info())
                os._exit(1)
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        if status == 0:
            return kills
        if status != -signal.SIGKILL or kills > 1:
            raise RuntimeError(f"{cell} ended with {status} after {kills} kills")
    raise AssertionError


def killed_walks(folder: Path, walk: Callable[..., None]) -> None:
    """Walks the cells of standard input, and prints for each how often it was killed, and its counts."""
    for number, cell in enumerate(json.load(sys.stdin)):
        place = folder / str(number)
        kills = killed(place, cell, walk)
        print(json.dumps([kills, json.loads((place / "counts.json").read_text())]), flush=True)


def results_of(script: str, folder: Path, cells: Sequence[Sequence[str]]) -> list[tuple[int, dict[str, int]]]:
    """Returns how often the process of each cell was killed, and what its state has counted."""
    done = subprocess.run(
        [sys.executable, script, str(folder)],
        input=json.dumps(cells),
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECS,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return [(kills, counts) for kills, counts in map(json.loads, done.stdout.splitlines())]


if __name__ == "__main__":
    killed_walks(Path(sys.argv[1]), walk)
