"""What an instance reads: the journals of all instances of the module before it, each from a position of its own."""

from __future__ import annotations

import contextlib
import json
import os
import re
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NamedTuple

from storm_on_spark.runtime.storage.durable import make_folder, sync_folder, write_file
from storm_on_spark.xd.bus.journal import Journal, Message, Positions, Record

_REFRESH_SECS: Final = 0.5
_INSTANCE: Final = re.compile(r"[1-9][0-9]{0,5}")
_READERS: Final = "readers"


class Input(NamedTuple):
    """A message, and where it stands."""

    journal: str
    record: int
    place: int
    message: Message
    following: tuple[int, int]
    """The position behind it."""


@dataclass(frozen=True)
class Share:
    """Which of the messages an instance takes: those of its partitions, and of the others every n-th.

    >>> [Share(1, 2).takes(3, index, None) for index in range(4)]
    [False, True, False, True]
    """

    sequence: int
    count: int

    def takes(self, record: int, index: int, key: int | None) -> bool:
        """Whether a message is for this instance."""
        return (record + index if key is None else key) % self.count == self.sequence - 1


class Inputs:
    """Reads the journals of one module.

    Args:
        folder: of the module that is read, with a folder for each of its instances.
        reader: the name of who reads; no other has it.
        positions: where to begin; what is not named begins with its first record.
        clock: seconds.
    """

    def __init__(
        self, folder: Path, reader: str, positions: Positions, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._folder = folder
        self._reader = reader
        self.positions = dict(positions)
        self._clock = clock
        self._journals: dict[str, Journal] = {}
        self._looked: float | None = None
        #: The last record that was read of each journal.
        self._read: dict[str, tuple[int, Record]] = {}

    def next(self, most: int) -> Iterator[Input]:
        """Yields messages behind the positions; the caller moves these on."""
        self._look()
        left = most
        for name, journal in self._journals.items():
            number, index = self.positions.get(name) or (journal.first() or 1, 0)
            while left > 0:
                record = self._record(name, journal, number)
                if record is None:
                    break
                for place in range(index, len(record.messages)):
                    whole = place + 1 == len(record.messages)
                    following = (number + 1, 0) if whole else (number, place + 1)
                    yield Input(name, number, place, record.messages[place], following)
                    left -= 1
                    if left <= 0:
                        break
                number, index = number + 1, 0

    def publish(self) -> None:
        """Lets writers know which records are not needed any more."""
        for name in self._journals:
            number = self.positions[name][0] if name in self.positions else 0
            write_whole(self._folder / name / _READERS / self._reader, str(number).encode())

    def _look(self) -> None:
        now = self._clock()
        if self._looked is None or now - self._looked >= _REFRESH_SECS:
            self._looked = now
            for name in instances(self._folder):
                self._journals.setdefault(name, Journal(self._folder / name))

    def _record(self, name: str, journal: Journal, number: int) -> Record | None:
        known = self._read.get(name)
        if known is not None and known[0] == number:
            return known[1]
        record = journal.read(number)
        if record is not None:
            self._read[name] = number, record
        return record


def instances(folder: Path) -> list[str]:
    """Returns the names of the folders of a module's instances, in order."""
    with contextlib.suppress(FileNotFoundError):
        return sorted((path.name for path in folder.iterdir() if _INSTANCE.fullmatch(path.name)), key=int)
    return []


def unread_from(folder: Path, expected: Sequence[str]) -> int:
    """Returns the number of the first record of a journal that some reader still needs; 0 if one has not begun.

    Args:
        folder: of the journal.
        expected: the readers that there have to be.
    """
    found: dict[str, int] = {}
    readers = folder / _READERS
    with contextlib.suppress(FileNotFoundError):
        for path in readers.iterdir():
            with contextlib.suppress(FileNotFoundError, ValueError):
                found[path.name] = int(path.read_bytes())
    if any(name not in found for name in expected):
        return 0
    return min(found.values(), default=0)


def forget_reader(folder: Path, reader: str) -> None:
    """Has no journal of a module wait for a reader any longer."""
    for name in instances(folder):
        (folder / name / _READERS / reader).unlink(missing_ok=True)


def beginning(
    folder: Path, generation: tuple[int, int], own: Record | None, first: Callable[[], Positions]
) -> Positions:
    """Returns where an instance begins to read.

    An instance goes on where it was. If the number of instances has changed, messages belong to other instances, so all
    begin where the least advanced one was: nothing is lost, and a message may come twice.

    Args:
        folder: of the module.
        generation: of the deployment, and the number of instances.
        own: the instance's last record.
        first: returns where a module begins that never ran.
    """
    if own is not None and own.generation == _text(generation):
        return own.positions
    base = folder / f"base-{_text(generation)}"
    if not base.exists():
        before = _before(folder, generation)
        positions = first() if before is None else _least(folder, before)
        make_once(base, json.dumps(positions).encode())
    return _positions(base)


def _before(folder: Path, generation: tuple[int, int]) -> tuple[int, int] | None:
    known = [found for found in map(_generation, folder.glob("base-*")) if found is not None]
    return max((each for each in known if each < generation), default=None)


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


def make_once(path: Path, body: bytes) -> None:
    """Makes a file as a whole, unless it is there; it survives the loss of the machine."""
    half = path.with_name(f".{uuid.uuid4().hex}.tmp")
    write_whole(half, body, sync=True)
    try:
        os.link(half, path)
        sync_folder(path.parent)
    except FileExistsError:
        pass
    finally:
        half.unlink(missing_ok=True)


def write_whole(path: Path, body: bytes, *, sync: bool = False) -> None:
    """Writes a file as a whole, in the place of one that is there.

    Args:
        path: of the file.
        body: all of it.
        sync: whether it must survive the loss of the machine.
    """
    make_folder(path.parent, sync=sync)
    write_file(path, body, sync=sync, temporary=f".{uuid.uuid4().hex}.tmp")
