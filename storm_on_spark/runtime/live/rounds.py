"""The rounds since a barrier, on the disk, so that they can be executed again just as they were.

What a topology does may depend on which tuples it executes together: on their order behind a shuffle, above all. A
spout hears of a round's outcomes at once. If the same tuples were executed again in other rounds, a message that was
acked could fail. So each round is written down before anybody hears of it.

The rounds that follow the state with some token are in a file with the name of the token. A round is a line of JSON:
its number, the offset at which it ended, whether it was saved, and in how many processes it was executed. A line that
was not written whole is one of which nobody has heard.
"""

from __future__ import annotations

import json
import os
from collections.abc import Collection
from pathlib import Path
from typing import NamedTuple

from storm_on_spark.api.errors import CheckpointError
from storm_on_spark.runtime.batches.offsets import Offset
from storm_on_spark.runtime.storage.durable import sync_folder

ROUNDS = "rounds"
"""The folder of these files in the topology's own."""


class Round(NamedTuple):
    """One execution of all tasks."""

    number: int
    end: Offset
    saved: bool
    """Whether the state was saved before and after it, because a bolt raises in it."""
    processes: int = 1
    """Between how many processes the tasks were: what those without state emit depends on it."""


class RoundLog:
    """Writes down rounds.

    A micro-batch may be committed or not, so there are two states that they may follow, each with a file.

    Args:
        folder: of all such files.
        sync: whether each round must survive the loss of the machine.
    """

    def __init__(self, folder: Path, sync: bool) -> None:
        self._folder = folder
        self._sync = sync
        self._files: dict[str, int] = {}

    def follow(self, tokens: Collection[bytes]) -> None:
        """Writes rounds, from here on, as those that follow the states with these tokens, and forgets others.

        Raises:
            OSError: a file can't be made.
        """
        names = {token.hex() for token in tokens}
        self._folder.mkdir(exist_ok=True)
        for name in names - self._files.keys():
            flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC
            self._files[name] = os.open(self._folder / name, flags, 0o600)
        if self._sync:
            sync_folder(self._folder)
        for name in self._files.keys() - names:
            os.close(self._files.pop(name))
        if (
            len(names) > 1
        ):  # one that was just handed over may not be committed, and the file of the one before is needed
            for file in self._folder.iterdir():
                if file.name not in names:
                    file.unlink(missing_ok=True)

    def append(self, done: Round) -> None:
        """Writes a round.

        Raises:
            OSError: the disk is full or fails.
        """
        line = json.dumps([done.number, done.end.to_json(), done.saved, done.processes]).encode() + b"\n"
        for file in self._files.values():
            if os.write(file, line) != len(line):
                raise OSError("the disk took only a part of a round")
            if self._sync:
                os.fdatasync(file)

    def close(self) -> None:
        """Closes the files."""
        for file in self._files.values():
            os.close(file)
        self._files = {}


def read_rounds(folder: Path, token: bytes) -> list[Round]:
    """Returns the rounds that followed the state with a token, oldest first; none if nothing is known of any.

    Raises:
        CheckpointError: the file is damaged.
    """
    file = folder / token.hex()
    try:
        lines = file.read_bytes().split(b"\n")[:-1]
    except FileNotFoundError:
        return []
    try:
        # Those of a release before have three parts: all was executed in one process.
        return [
            Round(int(number), Offset.from_json(end), bool(saved), *map(int, more))
            for number, end, saved, *more in map(json.loads, lines)
        ]
    except (ValueError, TypeError, KeyError) as error:
        raise CheckpointError(f"{file} is damaged: {type(error).__name__}: {error}") from None
