"""What spouts are told of rounds, once these are written down: at once in a directory, later in a store."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence

from storm_on_spark.runtime.bolts.worker import Worker
from storm_on_spark.runtime.live.execution.rounds import Round, RoundLog, rounds_of
from storm_on_spark.runtime.live.processes.live_processes import GivenUpError
from storm_on_spark.runtime.run.settings import SpoutSettings
from storm_on_spark.runtime.spouts.messages import Told
from storm_on_spark.runtime.storage import as_storage, inside
from storm_on_spark.runtime.storage.claims import OWNERS, Claim, successor


class ToldRounds:
    """The log of a live process's rounds, and the outcomes that wait for it.

    Args:
        more: called in another thread when `ready` may return more, because a store has more rounds.
    """

    def __init__(self, more: Callable[[], object] = lambda: None) -> None:
        self._more = more
        self._log: RoundLog | None = None
        #: The number of a round in the log, and its outcomes.
        self._waiting: deque[tuple[int, Told]] = deque()

    def open(self, worker: Worker, tokens: Sequence[bytes]) -> None:
        """Begins with the rounds that follow some states; see `RoundLog.follow`.

        Raises:
            CheckpointError: a file of rounds is damaged.
            OSError: one can't be read or written.
        """
        assert worker.folder is not None, "a run has a checkpoint"
        self.close()
        sync = worker.wiring.settings(SpoutSettings).durability == "machine"
        owner, owners = worker.spec.owner, as_storage(inside(worker.folder, OWNERS))
        # Nobody else can own a directory.
        is_ours = (lambda: successor(owners, Claim(owner, "")) is None) if owner else (lambda: True)
        self._log = RoundLog(rounds_of(worker.folder, owner), sync, self._more, is_ours)
        self._log.follow(tokens)

    def follow(self, tokens: Sequence[bytes]) -> None:
        """Goes on with the rounds that follow other states; without effect while none is open."""
        if self._log is not None:
            self._log.follow(tokens)

    def note(self, done: Round) -> None:
        """Writes a round.

        Raises:
            GivenUpError: it can't be.
        """
        assert self._log is not None
        try:
            self._log.append(done)
        except OSError as error:
            raise _not_written(error) from error

    def hold(self, told: Told) -> None:
        """Keeps the outcomes of the last round until `ready` returns them."""
        assert self._log is not None
        self._waiting.append((self._log.given, told))

    def ready(self) -> Told:
        """Returns the outcomes of all rounds that have been written since.

        Raises:
            GivenUpError: a round can't be written.
        """
        if self._log is None or not self._waiting:
            return []
        try:
            written = self._log.written
        except OSError as error:
            raise _not_written(error) from error
        told: Told = []
        while self._waiting and self._waiting[0][0] <= written:
            told += self._waiting.popleft()[1]
        return told

    def close(self) -> None:
        """Ends writing. Whoever reads the rounds now has all of them; outcomes that wait are dropped."""
        if self._log is not None:
            self._log.close()
        self._log = None
        self._waiting.clear()


def _not_written(error: OSError) -> GivenUpError:
    return GivenUpError(f"a round can't be written: {error}")
