"""The rounds since a barrier, written down, so that a replay executes exactly the same rounds.

A topology's results may depend on which tuples are executed together, above all on their order after a shuffle. A
spout hears of a round's outcomes before a checkpoint. If a replay grouped the same tuples into other rounds, an acked
message could fail. So each round is logged before its outcomes are sent.

The rounds that follow the state with some token are in a file with the name of the token. A line of it is JSON:

    [number, offset, saved, processes]      a round: its number, the offset at which it ended, whether it was saved, and
                                            in how many processes it was executed; behind these, if tasks had moved
                                            between the processes, [[task, process], ...] for those
    [steps, ms, task, bytes, ...]           one more, by what changed since the line before: number, clock, and logs
    "token"                                 the state that was saved then; the rounds continue in its file

About nine lines in ten are of the second kind. The outcomes of an incomplete line were never sent.

A store has no lock: an owner of the checkpoint that was only frozen may write on after another one has taken over. So
each owner has a folder of its own there, and begins with a copy of what the one before had written. What that one adds
is in nobody's rounds, and it does not tell spouts of it: after each object that it has written it looks at the claims.
A round that is told was written before the next claim, and so is in the copy.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

from storm_on_spark.api.errors import CheckpointError
from storm_on_spark.plan.live_homes import Moved
from storm_on_spark.runtime.batches.offsets import Offset
from storm_on_spark.runtime.live.execution.round_files import copy, files_of, names_in, read_lines
from storm_on_spark.runtime.storage import Folder, Storage, as_storage, inside, name_of, within
from storm_on_spark.runtime.storage.background import in_background

ROUNDS = "rounds"
"""The folder of these files in the topology's own."""
_BEGAN: Final = ".began"
"""What the name of an owner's folder is followed by in that of an object which says that its copy is complete."""


_as_json = json.JSONEncoder(separators=(",", ":")).encode


class Round(NamedTuple):
    """One execution of all tasks."""

    number: int
    end: Offset
    saved: bool
    """Whether the state was saved before and after it, because a bolt raises in it."""
    processes: int = 1
    """Between how many processes the tasks were: what those without state emit depends on it."""
    moved: Moved = ()
    """And which of them were elsewhere than in the beginning."""


class RoundLog:
    """Appends rounds to the file of their state.

    Args:
        folder: of all files of rounds.
        sync: whether each round must survive the loss of the machine; in a store it always does.
        on_written: called in another thread when a store has more of them, or can't write one.
        is_ours: whether a store is still this owner's; asked after each write.
    """

    def __init__(
        self,
        folder: Folder,
        sync: bool,
        on_written: Callable[[], object] = lambda: None,
        is_ours: Callable[[], bool] = lambda: True,
    ) -> None:
        self._folder = folder
        self._files = files_of(folder, sync=sync, on_written=on_written, is_ours=is_ours)
        self._name = ""
        self._last: Round | None = None

    def follow(self, tokens: Sequence[bytes]) -> None:
        """Writes rounds, from here on, as those that follow the last of some states, and forgets those of others.

        Args:
            tokens: of the state in the state store, if it is known, and of the one after it, which may be committed or
                not. Whichever process continues from the first also finds the rounds of the second.

        Raises:
            CheckpointError: a file is damaged.
            OSError: a file can't be written.
        """
        *before, name = (token.hex() for token in tokens)
        if name == self._name:
            return
        kept = {name}
        for earlier in before:
            # A state between them may never be committed, but spouts already know the outcomes of the rounds after it.
            # This log has written its own file from the beginning, so nothing continues it yet.
            chain = [earlier] if earlier == self._name else _chain(self._folder, earlier)
            kept.update(chain)
            if name not in chain:
                self._files.append(chain[-1], json.dumps(name).encode() + b"\n")
        self._name, self._last = name, None
        if before:  # without it, the state may be committed or not, and the file of the one before is needed
            self._files.forget_others(kept)

    def append(self, done: Round) -> None:
        """Writes a round. It is `given` then; a store has it once `written` is as much.

        Raises:
            OSError: the disk is full or fails, or an earlier round can't be written to the store.
        """
        self._files.append(self._name, _as_json(_line(done, self._last)).encode() + b"\n")
        self._last = done

    @property
    def given(self) -> int:
        """The number of the last round or other line."""
        return self._files.given

    @property
    def written(self) -> int:
        """The number of the last round that is written.

        Raises:
            OSError: the next one can't be.
        """
        return self._files.written

    def finish(self) -> None:
        """Returns when all rounds are written.

        Raises:
            OSError: one can't be.
        """
        self._files.finish()

    def close(self) -> None:
        """Ends writing. A round that a store has not got by then is never written."""
        self._files.close()
        self._name, self._last = "", None


def rounds_of(folder: Folder, owner: int) -> Folder:
    """Returns the folder of the rounds that an owner of a checkpoint reads and writes.

    Args:
        folder: the topology's own.
        owner: the number of its claim in a store; 0 in a directory.
    """
    own = inside(folder, ROUNDS)
    return inside(own, _name(owner)) if owner else own


def begin_rounds(folder: Folder, owner: int, planned: Offset) -> int | None:
    """Begins with the rounds of the owner before, and returns how far they go; see `last_executed_ms`.

    Args:
        folder: the topology's own.
        owner: the number of the claim, which has been made, to a checkpoint in a store; 0 in a directory.
        planned: the last offset that Spark has in its log.

    Raises:
        CheckpointError: a file is damaged.
        OSError: one can't be read, or copied.
    """
    if owner:
        _take_over(as_storage(inside(folder, ROUNDS)), _name(owner))
    return last_executed_ms(rounds_of(folder, owner), planned)


def _name(owner: int) -> str:
    return f"{owner:010d}"


def _take_over(storage: Storage, own: str) -> None:
    found = {one.name for one in storage.list_folder(deep=True)}
    began = sorted(name.removesuffix(_BEGAN) for name in found if name.endswith(_BEGAN))
    if began:
        copy(within(storage, began[-1]), within(storage, own))
    storage.put(own + _BEGAN, b"")
    others = {name.partition("/")[0] for name in found} - {own, own + _BEGAN}

    def clean() -> None:
        for name in sorted(others):
            storage.delete(name) if name.endswith(_BEGAN) else storage.delete_folder(name)

    in_background(clean, "round-cleaner")


def _whole(done: Round) -> list[Any]:
    line = [done.number, done.end.to_json(), done.saved, done.processes]
    return [*line, done.moved] if done.moved else line


def _line(done: Round, last: Round | None) -> list[Any]:
    end = done.end
    if last is None or done != last._replace(number=done.number, end=end) or done.saved or done.number < last.number:
        return _whole(done)
    former = last.end
    if (end.carried, end.epochs, end.logs.keys()) != (former.carried, former.epochs, former.logs.keys()):
        return _whole(done)
    grown = (
        part
        for task, position in end.logs.items()
        if position != former.logs[task]
        for part in (task, position - former.logs[task])
    )
    return [done.number - last.number, end.clock - former.clock, *grown]


def read_rounds(folder: Folder, token: bytes) -> list[Round]:
    """Returns the logged rounds after the state with a token, oldest first; empty if there are none.

    Raises:
        CheckpointError: a file is damaged.
        OSError: one can't be read.
    """
    found: list[Round] = []
    names, name = set[str](), token.hex()
    while name and name not in names:
        names.add(name)
        rounds, name = _read(folder, name)
        found += rounds
    return found


def last_executed_ms(folder: Folder, planned: Offset) -> int | None:
    """Returns the topology's time in ms at the end of the last round on the disk; None if none ended after an offset.

    Args:
        folder: of all files of rounds.
        planned: the offset.

    Raises:
        CheckpointError: a file is damaged.
    """
    ends = [done.end for name in names_in(folder) for done in _read(folder, name)[0]]
    return max((end.clock for end in ends if not is_before(end, planned)), default=None)


def is_before(one: Offset, other: Offset) -> bool:
    """Whether a round ended within a micro-batch that ends at `other`."""
    within = all(position <= other.logs.get(task, 0) for task, position in one.logs.items())
    return within and one.clock <= other.clock


def _chain(folder: Folder, name: str) -> list[str]:
    """Returns the names of a state and of the states whose files continue its rounds, in this order."""
    names: list[str] = []
    while name and name not in names:
        names.append(name)
        _, name = _read(folder, name)
    return names


def _read(folder: Folder, name: str) -> tuple[list[Round], str]:
    """Returns the rounds in a file, and the name of the file that continues them ("" for none)."""
    found: list[Round] = []
    following = ""
    try:
        for line in map(json.loads, read_lines(folder, name)):
            if isinstance(line, str):
                following = bytes.fromhex(line).hex()
            elif isinstance(line[1], dict):
                number, end, saved, processes, *others = line
                moved = tuple((int(task), int(process)) for pairs in others for task, process in pairs)
                found.append(Round(int(number), Offset.from_json(end), bool(saved), int(processes), moved))
            else:
                found.append(_next(found[-1], *map(int, line)))
    except (ValueError, TypeError, KeyError, IndexError) as error:
        raise CheckpointError(f"{name_of(folder)}/{name} is damaged: {type(error).__name__}: {error}") from None
    return found, following


def _next(last: Round, steps: int, ms: int, *grown: int) -> Round:
    former = last.end
    logs = dict(former.logs)
    for task, size in zip(grown[::2], grown[1::2], strict=True):
        logs[task] += size
    return last._replace(
        number=last.number + steps, end=Offset(logs, former.clock + ms, former.carried, former.epochs), saved=False
    )
