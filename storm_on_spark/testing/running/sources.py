"""A spout that emits a test's items, and stops or dies at places that the test chooses.

The idea of sentinels among the items, so that a recovery test reads like any other, comes from bytewax's
`TestingSource` (`bytewax/bytewax:pysrc/bytewax/testing.py`).
"""

from __future__ import annotations

import fcntl
import os
import signal
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from storm_on_spark.api.component import BaseRichSpout
from storm_on_spark.api.errors import InvalidTopologyError
from storm_on_spark.api.streams.fields import Fields
from storm_on_spark.api.streams.stream import DEFAULT_STREAM, StreamSpec
from storm_on_spark.testing.tuples import default_fields

if TYPE_CHECKING:
    from storm_on_spark.api.streams.declarer import OutputFieldsDeclarer
    from storm_on_spark.api.task.collector import SpoutOutputCollector
    from storm_on_spark.api.task.context import TopologyContext

FieldNames = Fields | str | Iterable[str]

_SAVED = ("position", "replays", "fails", "acked", "given_up", "_ids")


@dataclass(frozen=True)
class PAUSE:
    """Among the items of a `ListSpout`: emit nothing for a while.

    Args:
        seconds: the pause.
    """

    seconds: float


@dataclass(frozen=True)
class GATE:
    """Among the items of a `ListSpout`: emit nothing until the test opens the gate; see `open_gate`.

    Args:
        name: which gate.
    """

    name: str


@dataclass(frozen=True)
class CRASH:
    """Among the items of a `ListSpout`: the spout's process kills itself with SIGKILL.

    Args:
        times: how often; then the spout continues. Counted in a file, since nothing else survives.
    """

    times: int = 1


@dataclass(frozen=True)
class EOF:
    """An item of a `ListSpout`: the spout is exhausted here, and continues after this item when it is restarted."""


@dataclass(frozen=True)
class On:
    """Among the items of a `ListSpout`: values for another stream than the default one.

    Args:
        stream: which.
        values: the values, in the order of its fields.
    """

    stream: str
    values: tuple[Any, ...] | list[Any]


_SENTINELS = (PAUSE, GATE, CRASH, EOF)


class ListSpout(BaseRichSpout):
    """A finite spout that emits given items in order, and emits failed ones again.

    With several tasks, items are distributed in turn, and every task meets every sentinel. After a restart the spout
    continues where it stopped: its position is in plain attributes.

    Args:
        items: a list or tuple is the values of one tuple; anything else is its only value. `PAUSE`, `GATE`, `CRASH`,
            `EOF` and `On` are special items.
        fields: the names of the values; for None `value` if the first item has one, else `value0`,
            `value1`...
        streams: the fields of further streams, for items `On` them.
        message_ids: True: the id of an item is its position among all items; False: no ids, so nothing is
            tracked; or a function from that position to the id.
        max_fails: how often a failed item is emitted again; after one more fail it is given up. None for no limit.
        markers: a folder that outlives the process, for the counts of `CRASH` and the marker of `GATE`. `run_topology`
            sets one.

    Raises:
        InvalidTopologyError: an item has another number of values than its stream has fields.

    Example:
        >>> from storm_on_spark.testing import run_spout
        >>> spout = ListSpout([["storm", 1], ["spark", 2]], fields=["word", "count"])
        >>> run_spout(spout).values()
        [('storm', 1), ('spark', 2)]
        >>> spout.position, spout.acked
        (2, 2)
    """

    def __init__(
        self,
        items: Iterable[Any],
        fields: FieldNames | None = None,
        *,
        streams: Mapping[str, FieldNames | StreamSpec] | None = None,
        message_ids: bool | Callable[[int], Any] = True,
        max_fails: int | None = 3,
        markers: str | os.PathLike[str] | None = None,
    ) -> None:
        self._opened = False
        given = list(items)
        self._streams = {name: _spec(spec) for name, spec in (streams or {}).items()}
        if fields is not None or DEFAULT_STREAM not in self._streams:
            self._streams[DEFAULT_STREAM] = StreamSpec(_fields_for(given, fields))
        #: Sentinels, and (position among all items, stream, values).
        self._items: list[Any] = []
        position = 0
        for item in given:
            if isinstance(item, _SENTINELS):
                self._items.append(item)
            else:
                self._items.append((position, *self._checked(position, item)))
                position += 1
        self._message_ids = message_ids
        self._max_fails = max_fails
        self.markers = None if markers is None else Path(markers)
        #: How many of this task's items, sentinels included, are done with.
        self.position = 0
        #: Positions of failed items that will be emitted again.
        self.replays: list[int] = []
        #: How often an item that is not acked yet has failed, by position.
        self.fails: dict[int, int] = {}
        #: How many items were acked.
        self.acked = 0
        #: Positions of items that failed too often.
        self.given_up: list[int] = []
        #: Position by message id, where ids are not the positions themselves.
        self._ids: dict[Any, int] = {}

    def _checked(self, position: int, item: Any) -> tuple[str, tuple[Any, ...]]:
        stream, values = (item.stream, item.values) if isinstance(item, On) else (DEFAULT_STREAM, item)
        row = tuple(values) if isinstance(values, (list, tuple)) else (values,)
        spec = self._streams.get(stream)
        if spec is None:
            raise InvalidTopologyError(
                f"item {position} of a ListSpout is on stream {stream!r}; there are: {sorted(self._streams)}"
            )
        if len(row) != len(spec.fields):
            raise InvalidTopologyError(
                f"item {position} of a ListSpout has {len(row)} value(s), but stream {stream!r} has the "
                f"fields {list(spec.fields)}: {item!r:.100}. A list or tuple is the values of a tuple; "
                "put one that is itself a value into a list"
            )
        if spec.direct:
            raise InvalidTopologyError(
                f"item {position} of a ListSpout is on stream {stream!r}, which is direct; "
                "a ListSpout can't choose receivers"
            )
        return stream, row

    # --- what the runtime calls -----------------------------------------------------------------------------

    def open(self, conf: Mapping[str, Any], context: TopologyContext, collector: SpoutOutputCollector) -> None:
        """Takes this task's share of the items."""
        self._collector = collector
        self._where = f"{context.this_component_id}-{context.this_task_id}"
        tasks = len(context.component_tasks(context.this_component_id))
        index = context.this_task_index
        self._by_position = {item[0]: item for item in self._items if not isinstance(item, _SENTINELS)}
        self._share = [item for item in self._items if isinstance(item, _SENTINELS) or item[0] % tasks == index]
        self._resume_at: float | None = None
        self._at_eof = False
        self._opened = True

    def next_tuple(self) -> None:
        """Emits one item: one that failed before if there is one, else the next."""
        if self.replays:
            self._emit(self.replays.pop(0))
            return
        self._pass_sentinels()
        if self._at_eof or self.position >= len(self._share) or isinstance(self._share[self.position], _SENTINELS):
            return
        position = self._share[self.position][0]
        self.position += 1
        # In the same call, so that a snapshot with the item also has the end after it.
        self._pass_end()
        self._emit(position)

    def exhausted(self) -> bool:
        """Whether nothing is left to emit, as of now: an item may still fail."""
        return (self._at_eof or self.position >= len(self._share)) and not self.replays

    def ack(self, message_id: Any) -> None:
        """Counts."""
        position = self._position_of(message_id)
        if position is not None:
            self.acked += 1
            self.fails.pop(position, None)

    def fail(self, message_id: Any) -> None:
        """Schedules the item to be emitted again, or gives it up."""
        position = self._position_of(message_id)
        if position is None:
            return
        failed = self.fails.pop(position, 0) + 1
        if self._max_fails is not None and failed > self._max_fails:
            self.given_up.append(position)
        else:
            self.fails[position] = failed
            self.replays.append(position)

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        """Declares the streams that the spout was made with."""
        for stream, spec in self._streams.items():
            declarer.declare_stream(stream, spec.fields, spec.direct)

    # --- inside ---------------------------------------------------------------------------------------------

    def _pass_sentinels(self) -> None:
        while not self._at_eof and self.position < len(self._share):
            item = self._share[self.position]
            if isinstance(item, PAUSE):
                now = time.monotonic()
                if self._resume_at is None:
                    self._resume_at = now + item.seconds
                if now < self._resume_at:
                    return
                self._resume_at = None
            elif isinstance(item, GATE):
                if not _gate(self._marker_folder(item), item.name).exists():
                    return
            elif isinstance(item, CRASH):
                crash(self._marker_folder(item) / f"crash-{self._where}-{self.position}", item.times)
            elif isinstance(item, EOF):
                self._at_eof = True
            else:
                return
            self.position += 1

    def _pass_end(self) -> None:
        if self.position < len(self._share) and isinstance(self._share[self.position], EOF):
            self._at_eof = True
            self.position += 1

    def _marker_folder(self, item: GATE | CRASH) -> Path:
        if self.markers is None:
            raise InvalidTopologyError(
                f"a ListSpout with {type(item).__name__} among its items needs markers=FOLDER, a folder that "
                "outlives its process"
            )
        return self.markers

    def _emit(self, position: int) -> None:
        _, stream, values = self._by_position[position]
        if self._message_ids is False:
            self._collector.emit(values, stream=stream)
        elif self._message_ids is True:
            self._collector.emit(values, message_id=position, stream=stream)
        else:
            message_id = self._message_ids(position)
            self._ids[message_id] = position
            self._collector.emit(values, message_id=message_id, stream=stream)

    def _position_of(self, message_id: Any) -> int | None:
        return message_id if self._message_ids is True else self._ids.pop(message_id, None)

    def __getstate__(self) -> dict[str, Any]:
        # Once it is open, only changing attributes are saved: the items come with the topology.
        if not self._opened:
            return dict(self.__dict__)
        return {name: getattr(self, name) for name in _SAVED}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)


def open_gate(markers: str | os.PathLike[str], name: str) -> None:
    """Lets spouts pass a `GATE`.

    Args:
        markers: the folder that the spouts were given.
        name: the gate.
    """
    _gate(Path(markers), name).touch()


def crash(marker: str | os.PathLike[str], times: int = 1) -> bool:
    """Kills this process with SIGKILL, unless that has happened `times` times; for bolts and spouts.

    Args:
        marker: the file with the count, one byte for each crash; it need not exist.
        times: how often.

    Returns: False, if the process was not killed.

    Example:
        >>> import tempfile
        >>> with tempfile.NamedTemporaryFile() as marker:
        ...     crash(marker.name, times=0), crashes(marker.name)
        (False, 0)
    """
    descriptor = os.open(marker, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        # Two workers may come here at the same time; the lock makes each read and write in turn.
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        if os.fstat(descriptor).st_size >= times:
            return False
        os.write(descriptor, b"x")
    finally:
        os.close(descriptor)
    os.kill(os.getpid(), signal.SIGKILL)
    raise AssertionError("unreachable: SIGKILL can't be caught")


def crashes(marker: str | os.PathLike[str]) -> int:
    """Returns how often `crash` has killed a process for this marker: the proof that the fault happened."""
    path = Path(marker)
    return path.stat().st_size if path.exists() else 0


def _gate(markers: Path, name: str) -> Path:
    return markers / f"gate-{name}"


def _fields_for(items: list[Any], fields: FieldNames | None) -> Fields:
    if fields is not None:
        return Fields.of(fields)
    for item in items:
        if not isinstance(item, (*_SENTINELS, On)):
            return default_fields(len(item) if isinstance(item, (list, tuple)) else 1)
    return default_fields(1)


def _spec(spec: FieldNames | StreamSpec) -> StreamSpec:
    return spec if isinstance(spec, StreamSpec) else StreamSpec(Fields.of(spec))
