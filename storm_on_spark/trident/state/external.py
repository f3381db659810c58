"""States in other systems: what is the same for all of them.

Each task writes a mark beside its values: the run, and the last batch that it began to write. It refuses batches that
are older than that, and those of another run that are not newer. An older checkpoint would give them other tuples, and
by the rules alone they might be taken for batches that are in the values already.

The mark of an opaque state has the keys that were written, too. A batch that comes again first takes back what its
earlier attempt did to them, as it may not have them any more.
"""

from __future__ import annotations

import contextlib
import json
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple, NoReturn

from storm_on_spark.api.config.secrets import scrubbed
from storm_on_spark.api.errors import ConfigError, ReportedFailedException
from storm_on_spark.trident.state.caches import CachedMap
from storm_on_spark.trident.state.checkpoint import SNAPSHOT_KEY, value_of
from storm_on_spark.trident.state.encoding import EncodingError, key_to_text, value_from_text, value_to_text
from storm_on_spark.trident.state.interfaces import IBackingMap, Key, State, StateFactory
from storm_on_spark.trident.state.maps import SnapshottableMap, map_of
from storm_on_spark.trident.state.values import StaleBatchError, StateType

if TYPE_CHECKING:
    from storm_on_spark.api.task.context import TopologyContext

DEFAULT_CACHE: Final = 5_000
"""Keys that a task keeps in memory; Storm's default."""
_MOST_PAUSE: Final = 1.0
"""Seconds that a task waits, at most, before a batch fails because the other system is away."""


class StoreAwayError(ReportedFailedException):
    """The system that holds a state doesn't answer: the batch fails, and comes again."""


class TextStore(ABC):
    """Texts by key in another system, for one task."""

    #: What it is, for messages.
    title: str

    @abstractmethod
    def read(self, keys: Sequence[str]) -> Mapping[str, str]:
        """Returns the text of each key that has one."""

    @abstractmethod
    def write(self, entries: Mapping[str, str]) -> None:
        """Stores texts, all or none; a system that can't stores the first one first."""

    @abstractmethod
    def is_away(self, error: Exception) -> bool:
        """Returns whether an error says that the system can't be reached, or is busy: it may be there again soon."""

    @abstractmethod
    def close(self) -> None:
        """Closes the connection; the next call makes a new one."""


class Mark(NamedTuple):
    """What a task has begun to write."""

    run: str
    """The id of the run of the topology, which stays where it continues from its checkpoint."""
    txid: int
    keys: tuple[str, ...] = ()
    """The keys that were written, of an opaque state."""

    @classmethod
    def of(cls, text: str) -> Mark:
        """Reads a mark.

        Raises:
            EncodingError: it is none.
        """
        try:
            found = json.loads(text)
        except ValueError:
            found = None
        if isinstance(found, dict):
            run, txid, keys = found.get("run"), found.get("txid"), found.get("keys")
            if isinstance(run, str) and type(txid) is int and isinstance(keys, list):
                return cls(run, txid, tuple(map(str, keys)))
        raise EncodingError(f"expected the mark of a task, with run, txid and keys (found {text!r:.100})")

    def to_text(self) -> str:
        """Writes the mark."""
        return json.dumps(self._asdict(), ensure_ascii=False, separators=(",", ":"))

    def check(self, run: str, txid: int) -> None:
        """Checks a batch that is to be written.

        Raises:
            StaleBatchError: a later one is written, or another run has written one with that number.

        Example:
            >>> Mark("count-1", 7).check("count-1", 7)
            >>> Mark("count-1", 7).check("count-2", 8)
        """
        if txid < self.txid or (txid == self.txid and run != self.run):
            raise StaleBatchError(txid, self.txid)


class _Texts(IBackingMap[Any]):
    """The values of a state as texts, with the mark of the batch that writes them."""

    def __init__(self, store: TextStore, kind: StateType, pause: Callable[[float], None]) -> None:
        self._store = store
        self._kind = kind
        self._pause = pause
        self._failures = 0
        self.mark_key = ""
        #: What is written with the values; None outside of batches.
        self.mark: Mark | None = None
        #: The mark as this task has written or read it; None if there is none.
        self.known: Mark | None = None

    def multi_get(self, keys: Sequence[Key]) -> list[Any]:
        return self.stored([key_to_text(key) for key in keys])

    def multi_put(self, keys: Sequence[Key], values: Sequence[Any]) -> None:
        self.put(dict(zip(map(key_to_text, keys), values, strict=True)))

    def stored(self, texts: Sequence[str]) -> list[Any]:
        found = self.read(texts)
        return [value_from_text(self._kind, found[text]) if text in found else None for text in texts]

    def put(self, values: Mapping[str, Any]) -> None:
        entries = {key: value_to_text(self._kind, value) for key, value in values.items()}
        mark = self.mark
        if mark is not None:
            if self._kind is StateType.OPAQUE:
                mark = mark._replace(keys=tuple(dict.fromkeys([*mark.keys, *entries])))
            entries = {self.mark_key: mark.to_text(), **entries}
        with self._reaching():
            self._store.write(entries)
        if mark is not None:
            self.mark = self.known = mark

    def read(self, texts: Sequence[str]) -> Mapping[str, str]:
        if not texts:
            return {}
        with self._reaching():
            return self._store.read(texts)

    @contextlib.contextmanager
    def _reaching(self) -> Iterator[None]:
        try:
            yield
        except Exception as error:
            with contextlib.suppress(Exception):
                self._store.close()
            if not self._store.is_away(error):
                raise
            self._failures += 1
            self._pause(min(0.05 * 2**self._failures, _MOST_PAUSE))
            text = scrubbed(f"{type(error).__name__}: {error}")
            raise StoreAwayError(f"{self._store.title} can't be reached, so the batch comes again: {text}") from None
        self._failures = 0


class ExternalMapState(SnapshottableMap[Any]):
    """Values by key, and one value beside them, in another system.

    It is not part of the checkpoint: a task makes it again where it is restored. Reads outside of a batch ask the
    system, as others may write to it. Those of a batch are answered from memory where it has the keys, as long as the
    mark says that nobody else has written this part of the state: tasks of Spark move.

    Args:
        store: where.
        kind: what is stored beside a value.
        run: the id of the topology's run.
        part: which part of the state the task has.
        cache_size: the most keys to keep in memory.
        pause: waits for some seconds.
    """

    keeps_elsewhere = True

    def __init__(
        self,
        store: TextStore,
        kind: StateType,
        run: str,
        part: str,
        cache_size: int = DEFAULT_CACHE,
        pause: Callable[[float], None] = time.sleep,
    ) -> None:
        self._store, self._kind, self._run, self._cache_size = store, kind, run, cache_size
        self._texts = _Texts(store, kind, pause)
        self._texts.mark_key = f"$mark {part}"
        self._in_batch = False
        self._forget()

    def close(self) -> None:
        """Closes the connection."""
        self._store.close()

    def begin_commit(self, txid: int | None) -> None:
        """Begins a batch.

        Raises:
            StaleBatchError: a later batch is written, or one of another run with that number.
            StoreAwayError: the system doesn't answer.
        """
        self._in_batch = False
        self._texts.mark = None
        if txid is not None:
            self._begin(txid)
        super().begin_commit(txid)
        self._in_batch = True

    def commit(self, txid: int | None) -> None:  # noqa: D102
        self._texts.mark = None
        self._in_batch = False
        super().commit(txid)

    def multi_get(self, keys: Sequence[Key]) -> list[Any]:  # noqa: D102
        if self._in_batch:
            return super().multi_get(keys)
        return [value_of(stored) for stored in self._texts.multi_get(keys)]

    def _begin(self, txid: int) -> None:
        texts = self._texts
        text = texts.read([texts.mark_key]).get(texts.mark_key)
        mark = None if text is None else Mark.of(text)
        if mark != texts.known:
            self._forget()
            texts.known = mark
        if mark is not None and self._kind is not StateType.NON_TRANSACTIONAL:
            mark.check(self._run, txid)
        again = mark is not None and (mark.run, mark.txid) == (self._run, txid)
        texts.mark = mark if again else Mark(self._run, txid)
        if again and mark is not None and mark.keys:
            found = zip(mark.keys, texts.stored(mark.keys), strict=True)
            texts.put({key: value.without(txid) for key, value in found if value is not None})
            self._forget()

    def _forget(self) -> None:
        super().__init__(map_of(self._kind, CachedMap(self._texts, self._cache_size)), SNAPSHOT_KEY)

    def __reduce__(self) -> NoReturn:
        raise TypeError(f"{self._store.title} is not part of the checkpoint")


class ExternalMapStateFactory(StateFactory):
    """Makes states in another system.

    Args:
        kind: what is stored beside a value. Opaque values are exact with every spout that can be exact.
        cache_size: the most keys that each task keeps in memory.

    Raises:
        ConfigError: an argument makes no sense.
    """

    def __init__(self, kind: StateType = StateType.OPAQUE, cache_size: int = DEFAULT_CACHE) -> None:
        given: Any = kind
        if not isinstance(given, StateType):
            raise ConfigError(f"expected a StateType (given {kind!r:.100})", key="kind")
        if cache_size < 1:
            raise ConfigError(f"a cache keeps at least 1 key (given {cache_size})", key="cache_size")
        self.kind = kind
        self.cache_size = cache_size

    @abstractmethod
    def open_store(self) -> TextStore:
        """Returns the store of a task; it connects when it is needed."""

    def make_state(  # noqa: D102
        self, conf: Mapping[str, Any], metrics: TopologyContext, partition_index: int, num_partitions: int
    ) -> State:
        part = f"{partition_index}/{num_partitions}"
        return ExternalMapState(self.open_store(), self.kind, metrics.storm_id, part, self.cache_size)
