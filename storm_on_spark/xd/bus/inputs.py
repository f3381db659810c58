"""What an instance reads: journals of other instances, each from its own position."""

from __future__ import annotations

import contextlib
import json
import logging
import re
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from storm_on_spark.xd.bus.claims import Claims, record_of
from storm_on_spark.xd.bus.files import Read, make_once, read_by, say_read
from storm_on_spark.xd.bus.journal import Journal, Message, Positions, Record
from storm_on_spark.xd.bus.port import Input

logger = logging.getLogger(__name__)

_INSTANCE: Final = re.compile(r"[1-9][0-9]{0,5}")
_REFRESH_SECS: Final = 0.5
_NOTHING: Final = Message(None, {})

Journals = Callable[[], Mapping[str, Path]]
"""Returns name -> folder of the journals to read; more may be added later."""


@dataclass(frozen=True)
class Share:
    """The messages for an instance: those of its partitions, and every n-th of the others.

    >>> [Share(1, 2).takes(3, index, None) for index in range(4)]
    [False, True, False, True]
    """

    sequence: int
    count: int

    def takes(self, record: int, index: int, key: int | None) -> bool:
        """Whether a message is for this instance."""
        return (record + index if key is None else key) % self.count == self.sequence - 1


class Inputs:
    """Reads journals.

    Args:
        journals: returns the journals to read.
        reader: the unique name of the reader.
        positions: where to begin; a journal that is not named begins with its first record.
        share: which messages are for the instance.
        claims: on the records of a queue; None if the instance reads all records.
        generation: of the deployment.
        clock: seconds.
    """

    def __init__(
        self,
        journals: Journals,
        reader: str,
        positions: Positions,
        share: Share = Share(1, 1),
        claims: Claims | None = None,
        generation: int = 1,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._find = journals
        self._reader = reader
        self.positions = dict(positions)
        self._share = share
        self._claims = claims
        self._generation = generation
        self._clock = clock
        self._journals: dict[str, Journal] = {}
        self._looked: float | None = None
        self._turn = 0
        #: The last record read from each journal.
        self._read: dict[str, tuple[int, Record]] = {}

    def next(self, most: int) -> Iterator[Input]:
        """Yields messages after the positions; the caller advances the positions."""
        self.look()
        left = most
        names = list(self._journals)
        # Start with another journal each time: one that always has messages would use up `most`.
        self._turn = (self._turn + 1) % max(1, len(names))
        for place, at in list(self.positions.items()):
            if (taken := record_of(place)) is not None and at[0] == taken[1] and taken[0] in self._journals:
                record = self._record(taken[0], self._journals[taken[0]], taken[1])
                found = [] if record is None else self._inputs(place, *at, record)[: max(0, left)]
                yield from found
                left -= len(found)
        for name in names[self._turn :] + names[: self._turn]:
            journal = self._journals[name]
            number, index = self.positions.get(name) or (journal.first() or 1, 0)
            while left > 0:
                record = self._record(name, journal, number)
                if record is None:
                    break
                whole = self._claims is None or self._claims.take(journal.folder, number)
                for each in self._inputs(name, number, index if whole else len(record.messages), record)[:left]:
                    yield each
                    left -= 1
                number, index = number + 1, 0

    def publish(self, positions: Positions | None = None) -> None:
        """Tells writers which records are no longer needed.

        Args:
            positions: of the first records still needed; None for the current positions.
        """
        found = self.positions if positions is None else positions
        for name, journal in self._journals.items():
            self._say(journal.folder, self._reader, found.get(name, (0, 0))[0])
        for name, (number, _) in found.items():
            if (taken := record_of(name)) is not None and (known := self._journals.get(taken[0])) is not None:
                self._say(known.folder, f"{self._reader}#{taken[1]}", number)

    def _say(self, folder: Path, name: str, number: int) -> None:
        say_read(folder, name, Read(number, self._generation), taker=self._claims is not None)

    def _inputs(self, name: str, number: int, index: int, record: Record) -> list[Input]:
        end, messages = (number + 1, 0), record.messages
        if index >= len(messages):
            # One input stands for the whole record, so that the position advances.
            return [Input(name, number, 0, _NOTHING, end, False)]
        found = []
        for place in range(index, len(messages)):
            following = end if place + 1 == len(messages) else (number, place + 1)
            mine = self._share.takes(number, place, messages[place].key)
            found.append(Input(name, number, place, messages[place], following, mine))
        return found

    def look(self) -> None:
        """Looks for new journals and does other regular work, if due."""
        now = self._clock()
        if self._looked is not None and now - self._looked < _REFRESH_SECS:
            return
        self._looked = now
        for name, folder in self._find().items():
            if name not in self._journals:
                # Recorded before anything is read: the writer removes records that all known readers have read.
                self._say(folder, self._reader, self.positions.get(name, (0, 0))[0])
                self._journals[name] = Journal(folder)
        for name, journal in self._journals.items():
            number, _ = self.positions.get(name, (0, 0))
            if self._claims is not None:
                self.positions |= self._claims.left(name, journal.folder, journal.first() or number, self.positions)
            if number and not journal.has(number) and (first := journal.first()) > number:
                # Records that the instance no longer needs, or that others took from a queue, are not lost.
                if self._claims is None and read_by(journal.folder, self._reader).number < first:
                    logger.warning(
                        "%s was too far behind: it misses records %d to %d of %s",
                        self._reader, number, first - 1, journal.folder,
                    )  # fmt: skip
                self.positions[name] = first, 0
        for place in [place for place, at in self.positions.items() if self._is_forgotten(place, at[0])]:
            del self.positions[place]

    def _is_forgotten(self, place: str, number: int) -> bool:
        """Whether a position belongs to a record that was taken over, is done and was removed."""
        taken = record_of(place)
        journal = None if taken is None else self._journals.get(taken[0])
        return taken is not None and journal is not None and number > taken[1] and not journal.has(taken[1])

    def _record(self, name: str, journal: Journal, number: int) -> Record | None:
        known = self._read.get(name)
        if known is not None and known[0] == number:
            return known[1]
        record = journal.read(number)
        if record is not None:
            self._read[name] = number, record
        return record


def beginning(
    folder: Path, generation: tuple[int, int], own: Record | None, first: Callable[[], Positions]
) -> Positions:
    """Returns where an instance begins to read.

    An instance continues where it stopped. If the number of instances has changed, messages belong to other instances,
    so all begin where the least advanced one was: nothing is lost, and a message may be read twice.

    Args:
        folder: of the module.
        generation: of the deployment, and the number of instances.
        own: the instance's last record.
        first: returns where a module begins on its first run.
    """
    if own is not None and own.generation == _text(generation):
        return own.positions
    before = _before(folder, generation)
    base = folder / f"base-{_text(generation)}"
    if not base.exists():
        positions = first() if before is None else _least(folder, before)
        make_once(base, json.dumps(positions).encode(), sync=True)
    if own is not None and before is not None and before[1] == generation[1] and own.generation == _text(before):
        return own.positions
    return _positions(base)


def ends(journals: Mapping[str, Path]) -> Positions:
    """Returns the ends of journals: a reader that begins there sees only new messages."""
    return {name: (Journal(folder).last() + 1, 0) for name, folder in journals.items()}


def numbered(folder: Path, prefix: str = "") -> dict[str, Path]:
    """Returns the journals of one module, by the numbers of its instances in order.

    Args:
        folder: of the module.
        prefix: of their names.
    """
    with contextlib.suppress(FileNotFoundError):
        names = sorted((path.name for path in folder.iterdir() if _INSTANCE.fullmatch(path.name)), key=int)
        return {f"{prefix}{name}": folder / name for name in names}
    return {}


def _before(folder: Path, generation: tuple[int, int]) -> tuple[int, int] | None:
    known = [found for found in map(_generation, _bases(folder)) if found is not None]
    return max((each for each in known if each < generation), default=None)


def _bases(folder: Path) -> list[Path]:
    with contextlib.suppress(FileNotFoundError):
        return [path for path in folder.iterdir() if path.name.startswith("base-")]
    return []


def _least(folder: Path, generation: tuple[int, int]) -> Positions:
    base = _positions(folder / f"base-{_text(generation)}")
    every: list[Positions] = []
    for sequence in range(1, generation[1] + 1):
        journal = Journal(folder / str(sequence))
        record = journal.read(journal.last())
        every.append(record.positions if record is not None and record.generation == _text(generation) else base)
    names = set.intersection(*map(set, every)) if every else set()
    return {name: min(each[name] for each in every) for name in names}


def _text(generation: tuple[int, int]) -> str:
    return f"{generation[0]}x{generation[1]}"


def _generation(path: Path) -> tuple[int, int] | None:
    match = re.fullmatch(r"base-([0-9]+)x([0-9]+)", path.name)
    return None if match is None else (int(match[1]), int(match[2]))


def _positions(path: Path) -> Positions:
    found: Mapping[str, Any] = json.loads(path.read_bytes())
    return {name: (int(number), int(index)) for name, (number, index) in found.items()}
