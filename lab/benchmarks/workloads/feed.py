"""Spouts that emit for ever, at full speed or at a rate that can be changed while they run."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from lab.benchmarks.cases import Draw
from lab.benchmarks.workloads.data import read_sentences
from storm_on_spark import BaseRichSpout, BatchSpout, Fields, OutputFieldsDeclarer

_LOOK_SECS = 0.05
_BURST = 1000
"""Tuples between two looks at the clock, at full speed."""
_DRAWN = 8192
"""Keys that are drawn together."""
_ROWS = 8192
"""The same of record batches, and so the most rows of one."""


class Control:
    """The measuring process's instructions for the spout, in a file.

    Args:
        path: the file.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    def set(self, rate: float | None, keys: int | None = None, draw: Draw = "uniform") -> None:
        """Changes the rate and the keys.

        Args:
            rate: tuples per second; None for full speed.
            keys: their number; None for the spout's own.
            draw: how they are chosen, if the spout draws them.
        """
        new = self.path.with_suffix(".new")
        new.write_text(json.dumps({"rate": rate, "keys": keys, "draw": draw}))
        new.rename(self.path)


class _Pace:
    """Decides when the next tuples are due. No state, so that snapshots don't change without a tuple."""

    def __init__(self, path: str, burst: int = _BURST) -> None:
        self._path = path
        self._burst = burst
        self._seen = 0
        self._next_look = 0.0
        self.rate: float | None = 0.0
        self.keys: int | None = None
        self.draw: Draw = "uniform"
        self._since = 0.0
        self._emitted = 0

    def __reduce__(self) -> str:
        raise TypeError("created by open")

    def grant(self) -> int:
        """Returns how many tuples may be emitted now."""
        now = time.monotonic()
        if now >= self._next_look:
            self._next_look = now + _LOOK_SECS
            self._look(now)
        if self.rate is None:
            return self._burst
        granted = max(0, int((now - self._since) * self.rate) - self._emitted)
        self._emitted += granted
        return granted

    def _look(self, now: float) -> None:
        path = Path(self._path)
        changed = path.stat().st_mtime_ns
        if changed != self._seen:
            self._seen = changed
            wanted = json.loads(path.read_text())
            self.rate, self.keys, self.draw = wanted["rate"], wanted["keys"], wanted["draw"]
            self._since, self._emitted = now, 0


class _Texts:
    """Sentences; no state either."""

    def __init__(self, path: str) -> None:
        self.items = read_sentences(path)

    def __reduce__(self) -> str:
        raise TypeError("created by open")


class Feed(BaseRichSpout):
    """Emits values that depend on their number only.

    Args:
        control: path of a `Control`.
        source: the file with the sentences.
        acked: whether tuples have message ids.
    """

    field = "value"

    def __init__(self, control: str, source: str, acked: bool = True) -> None:
        self.control = control
        self.source = source
        self.acked = acked
        self.emitted = 0

    def open(self, conf: Mapping[str, Any], context: Any, collector: Any) -> None:
        self.collector = collector
        self.texts = _Texts(self.source)
        self.pace = _Pace(self.control)
        self.granted = 0

    def next_tuple(self) -> None:
        if not self.granted:
            self.granted = self.pace.grant()
            if not self.granted:
                return
        self.granted -= 1
        self.send(self.emitted)
        self.emitted += 1

    def send(self, number: int) -> None:
        """Emits the tuple with this number."""
        self.collector.emit([self.value(number)], number if self.acked else None)

    def value(self, number: int) -> Any:
        """Returns the value of the tuple with this number."""
        raise NotImplementedError

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        declarer.declare(Fields(self.field))


class Sentences(Feed):
    """Emits sentences."""

    field = "sentence"

    def send(self, number: int) -> None:
        items = self.texts.items
        self.collector.emit([items[number % len(items)]], number if self.acked else None)


class _Columns:
    """The sentences as an Arrow array, twice, so that any stretch of them is a slice; no state either."""

    def __init__(self, path: str) -> None:
        once = pa.array(read_sentences(path))
        self.count = len(once)
        self.items = pa.concat_arrays([once, once])

    def __reduce__(self) -> str:
        raise TypeError("created by open")


class SentenceBatches(BatchSpout):
    """Emits the same sentences as record batches.

    Args:
        control: path of a `Control`.
        source: the file with the sentences.
        acked: whether tuples have message ids.
    """

    def __init__(self, control: str, source: str, acked: bool = True) -> None:
        self.control = control
        self.source = source
        self.acked = acked
        self.emitted = 0

    def open(self, conf: Mapping[str, Any], context: Any, collector: Any) -> None:
        self.collector = collector
        self.texts = _Columns(self.source)
        self.pace = _Pace(self.control, _ROWS)

    def next_batch(self) -> None:
        first, count = self.emitted, min(self.pace.grant(), _ROWS)
        if count:
            self.emitted += count
            self.collector.emit(self.batch(first, count), np.arange(first, self.emitted) if self.acked else None)

    def batch(self, first: int, count: int) -> pa.RecordBatch:
        """Returns the tuples from a number on."""
        sentences = self.texts.items.slice(first % self.texts.count, count)
        return pa.RecordBatch.from_arrays([sentences], ["sentence"])

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        declarer.declare(Fields("sentence"))


class Words(Feed):
    """Emits the first word of each sentence."""

    field = "word"

    def value(self, number: int) -> str:
        items = self.texts.items
        return items[number % len(items)].partition(" ")[0]


class Numbers(Feed):
    """Emits 0, 1, 2, ..."""

    def value(self, number: int) -> int:
        return number


class Keys(Feed):
    """Emits each key below a bound in turn."""

    field = "key"

    def __init__(self, control: str, source: str, keys: int) -> None:
        super().__init__(control, source)
        self.keys = keys

    def value(self, number: int) -> int:
        return number % (self.pace.keys or self.keys)


class _Draws:
    """Keys that were drawn together, for a number of tuples in turn; no state either."""

    def __init__(self) -> None:
        self._of: tuple[Draw, int] = "uniform", -1
        self._keys: list[int] = []

    def __reduce__(self) -> str:
        raise TypeError("created by open")

    def key(self, number: int, draw: Draw, keys: int) -> int:
        """Returns the key of the tuple with this number."""
        block, place = divmod(number, _DRAWN)
        if self._of != (draw, block):
            self._of, self._keys = (draw, block), drawn(np.random.default_rng(block), draw, keys, _DRAWN)
        return self._keys[place]


def drawn(random: np.random.Generator, draw: Draw, keys: int, count: int) -> list[int]:
    """Returns random keys below `keys`, as likely one as the other, or by Zipf's law with exponent 1."""
    if draw == "uniform":
        return list(random.integers(0, keys, count).tolist())
    # By the inverse of the distribution. The frequent keys are not adjacent.
    ranks = np.minimum(keys ** random.random(count), keys).astype(np.int64) - 1
    return list((ranks * 7919 % keys).tolist())


class DrawnKeys(Feed):
    """Emits ranges that hold all keys, each once the previous one is acked, and then keys drawn as the phase says.

    Args:
        control: path of a `Control`.
        source: the file with the sentences.
        keys: how many there are.
        each: keys of a range.
    """

    field = "key"

    def __init__(self, control: str, source: str, keys: int, each: int) -> None:
        super().__init__(control, source)
        self.keys, self.each = keys, each
        self.filled, self.waits = 0, False

    def open(self, conf: Mapping[str, Any], context: Any, collector: Any) -> None:
        super().open(conf, context, collector)
        self.draws = _Draws()

    def next_tuple(self) -> None:
        if self.filled >= self.keys:
            super().next_tuple()
        elif not self.waits:
            self.waits = True
            end = min(self.keys, self.filled + self.each)
            self.collector.emit([self.filled, end], ("filled", end), stream="fill")

    def ack(self, msg_id: Any) -> None:
        if isinstance(msg_id, tuple):
            self.filled, self.waits = msg_id[1], False

    def value(self, number: int) -> int:
        return self.draws.key(number, self.pace.draw, self.keys)

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        super().declare_output_fields(declarer)
        declarer.declare_stream("fill", Fields("first", "end"))


class Held(Feed):
    """Emits a number of integers below zero, then numbers from zero on."""

    def __init__(self, control: str, source: str, held: int) -> None:
        super().__init__(control, source)
        self.held = held

    def value(self, number: int) -> int:
        return number - self.held


class Pairs(Feed):
    """Emits each number on two streams, as two roots."""

    field = "key"

    def send(self, number: int) -> None:
        self.collector.emit([number], ("left", number), stream="left")
        self.collector.emit([number], ("right", number), stream="right")

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        declarer.declare_stream("left", Fields("key"))
        declarer.declare_stream("right", Fields("key"))
