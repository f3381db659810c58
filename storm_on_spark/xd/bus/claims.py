"""Each record of a queue goes to one of the instances that read the queue.

A claim is a file beside the journal that can be created only once, so one instance gets the record. An instance reads
its records in order, so it is done with every claimed record before its position.

If the claimer will not return, another instance takes over its claims. It first writes an empty record into the
claimer's journal. If the claimer was only paused, its next write fails, as for any process that runs an instance a
second time. The last record shows how far the claimer has read. A record that was taken over is before the position of
its new claimer, so it has its own position, named `<journal>#<number>`.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Final, NamedTuple

from storm_on_spark.xd.bus.files import TAKERS, make_once, read_by
from storm_on_spark.xd.bus.journal import Journal, Positions, Record, TakenError
from storm_on_spark.xd.bus.port import Alive

_CLAIMS: Final = "claims"
_MARK: Final = "#"
_LOOK_SECS: Final = 3.0


class _Claim(NamedTuple):
    turn: int
    """0 for the first claimer of a record."""
    holder: str
    begin: int
    """The position of the first message."""

    def place(self, number: int) -> str:
        """Returns the name under which the holder records that it is done."""
        return f"{self.holder}{_MARK}{number}" if self.turn else self.holder

    def done(self, folder: Path, number: int) -> bool:
        return read_by(folder, self.place(number), taker=True).number > number


class Claims:
    """The claims of one instance.

    Args:
        bus: the folder of all.
        reader: the instance's name.
        alive: whether another one may continue.
        clock: seconds.
        sync: whether a record must survive the loss of the machine.
    """

    def __init__(
        self,
        bus: Path,
        reader: str,
        alive: Alive,
        clock: Callable[[], float] = time.monotonic,
        *,
        sync: bool = False,
    ) -> None:
        self._bus = bus
        self._reader = reader
        self._alive = alive
        self._clock = clock
        self._sync = sync
        #: Journals -> when their claims were last searched.
        self._looked: dict[str, float] = {}

    def take(self, folder: Path, number: int) -> bool:
        """Claims an existing record; returns whether the instance has it.

        Args:
            folder: of the journal.
            number: of the record.
        """
        found = _latest(folder, number)
        return self._make(folder, number, 0, 0) if found is None else (found.turn, found.holder) == (0, self._reader)

    def left(self, name: str, folder: Path, first: int, positions: Positions) -> Positions:
        """Takes over claims of instances that will not return; returns positions of these records.

        Args:
            name: of the journal, as positions have it.
            folder: of the journal.
            first: number of the first record that still exists. Records up to the instance's position are searched.
            positions: of the instance.
        """
        now = self._clock()
        if now - self._looked.get(name, -_LOOK_SECS) < _LOOK_SECS:
            return {}
        self._looked[name] = now
        found: Positions = {}
        gone: dict[str, bool] = {}
        for number in range(first, positions.get(name, (first, 0))[0]):
            claim, place = _latest(folder, number), f"{name}{_MARK}{number}"
            if claim is None or place in positions or claim.done(folder, number):
                continue
            if claim.holder == self._reader:
                if claim.turn:
                    found[place] = number, claim.begin
                continue
            if claim.holder not in gone:
                gone[claim.holder] = not self._alive(claim.holder)
            if gone[claim.holder] and (reached := self._fenced(claim.holder)) is not None:
                at, index = reached.get(place if claim.turn else name, (number, claim.begin))
                begin = (number + 1, 0) if at > number else (number, max(index, claim.begin) if at == number else 0)
                if self._make(folder, number, claim.turn + 1, begin[1]):
                    found[place] = begin
        return found

    def _make(self, folder: Path, number: int, turn: int, index: int) -> bool:
        return make_once(_path(folder, number, turn), f"{self._reader} {index}".encode())

    def _fenced(self, holder: str) -> Positions | None:
        """Stops an instance from continuing; returns how far it has read, or None if it has just continued."""
        stream, label, sequence = holder.split(".")
        journal = Journal(self._bus / stream / label / sequence, sync=self._sync)
        last = journal.last()
        record = journal.read(last) or Record()
        with contextlib.suppress(TakenError):
            journal.append(last + 1, replace(record, messages=()))
            return record.positions
        return None


def record_of(name: str) -> tuple[str, int] | None:
    """Returns journal and number of a record that was taken over; None for the name of a whole journal.

    >>> record_of("s-1-1.rate.1#7"), record_of("s-1-1.rate.1")
    (('s-1-1.rate.1', 7), None)
    """
    journal, mark, number = name.partition(_MARK)
    return (journal, int(number)) if mark else None


def unclaimed_from(folder: Path, first: int, behind: int) -> int:
    """Returns the number of the first record of a queue's journal that is not done yet.

    Args:
        folder: of the journal.
        first: where to begin; all records before it are done.
        behind: one more than the number of the last record.
    """
    for number in range(first, behind):
        claim = _latest(folder, number)
        if claim is None or not claim.done(folder, number):
            return number
    return behind


def forget_claims(folder: Path, number: int) -> None:
    """Removes the claims of a removed record."""
    while (claim := _latest(folder, number)) is not None:
        _path(folder, number, claim.turn).unlink(missing_ok=True)
        if claim.turn:
            (folder / TAKERS / claim.place(number)).unlink(missing_ok=True)


def _latest(folder: Path, number: int) -> _Claim | None:
    found: _Claim | None = None
    turn = 0
    with contextlib.suppress(FileNotFoundError):
        while True:
            holder, index = _path(folder, number, turn).read_bytes().decode().split()
            found = _Claim(turn, holder, int(index))
            turn += 1
    return found


def _path(folder: Path, number: int, turn: int) -> Path:
    return folder / _CLAIMS / f"{number:012}.{turn}"
