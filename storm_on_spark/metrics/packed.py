"""Windows as a short text, for heartbeats: a topology of 50 components and 200 tasks takes some 30 kB."""

from __future__ import annotations

import base64
import binascii
import json
import zlib
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any, Final

from storm_on_spark.api.info import COUNTERS, ComponentWindow, LatencyInfo, StreamCounts, TaskCounts, WindowInfo

_MOST_CHARS: Final = 200_000
"""The longest text. If windows need more, the counts of single tasks are left out, then the windows."""
_MOST_BYTES: Final = 16 << 20
"""The most that a text may unpack to."""
_MOST_UNPACKED: Final = 32
"""Texts whose windows stay in memory: those of 50 components with 4 tasks each take 0.7 MB."""
_LATENCIES: Final = ("execute", "process", "complete")


def pack_windows(windows: Mapping[str, WindowInfo]) -> str:
    """Returns windows as a text for `unpack_windows`; an empty one if they are too large for a heartbeat.

    Example:
        >>> windows = {"600": WindowInfo("600", 12.5, {"split": ComponentWindow(emitted=7)})}
        >>> unpack_windows(pack_windows(windows)) == windows
        True
    """
    for tasks in (True, False):
        rows = [_window_row(window, tasks=tasks) for window in windows.values()]
        data = zlib.compress(json.dumps(rows, separators=(",", ":")).encode())
        text = base64.b64encode(data).decode()
        if len(text) <= _MOST_CHARS:
            return text
    return ""


def unpack_windows(text: str) -> dict[str, WindowInfo]:
    """Returns the windows of a text.

    Raises:
        ValueError: `pack_windows` has not made it.
    """
    if not text:
        return {}
    try:
        inflate = zlib.decompressobj()
        data = inflate.decompress(base64.b64decode(text, validate=True), _MOST_BYTES)
        if inflate.unconsumed_tail:
            raise ValueError(f"it unpacks to more than {_MOST_BYTES:,} bytes")
        found = [_window(*row) for row in json.loads(data)]
    except (binascii.Error, zlib.error, TypeError, AttributeError) as error:
        raise ValueError(f"these are no windows: {error}") from error
    return {window.name: window for window in found}


class PackedWindows(Mapping[str, WindowInfo]):
    """The windows of a text, unpacked on first use: a Nimbus has many heartbeats and shows few of their windows.

    The windows of the texts that were used last stay unpacked. A text that is not from `pack_windows` has no windows.

    Example:
        >>> windows = {"600": WindowInfo("600", 12.5, {"split": ComponentWindow(emitted=7)})}
        >>> PackedWindows(pack_windows(windows)) == windows, dict(PackedWindows("?"))
        (True, {})
    """

    def __init__(self, text: str) -> None:
        self._text = text

    def __getitem__(self, name: str) -> WindowInfo:
        return _unpacked(self._text)[name]

    def __iter__(self) -> Iterator[str]:
        return iter(_unpacked(self._text))

    def __len__(self) -> int:
        return len(_unpacked(self._text))


@lru_cache(_MOST_UNPACKED)
def _unpacked(text: str) -> Mapping[str, WindowInfo]:
    try:
        return unpack_windows(text)
    except ValueError:
        return {}


def _window_row(window: WindowInfo, *, tasks: bool) -> list[Any]:
    components = {
        name: [
            _row(part),
            {task: _row(counted) for task, counted in part.tasks.items()} if tasks else {},
            {key: dict(metric) for key, metric in part.metrics.items()},
        ]
        for name, part in window.components.items()
    }
    return [window.name, window.secs, components, _latency_row(window.complete)]


def _row(counted: TaskCounts) -> list[Any]:
    latencies = [_latency_row(getattr(counted, name)) for name in _LATENCIES]
    return [_counters(counted), latencies, counted.busy_secs, [_stream_row(stream) for stream in counted.streams]]


def _counters(counted: TaskCounts | StreamCounts) -> list[int]:
    return [getattr(counted, name) for name in COUNTERS]


def _latency_row(latency: LatencyInfo | None) -> list[float] | None:
    return None if latency is None else [latency.mean, latency.p50, latency.p95, latency.p99]


def _stream_row(stream: StreamCounts) -> list[Any]:
    return [stream.stream, stream.source, _counters(stream), stream.execute_ms, stream.process_ms, stream.complete_ms]


def _window(name: str, secs: float, components: Mapping[str, Any], complete: list[float] | None) -> WindowInfo:
    found = {
        component: ComponentWindow(
            **_fields(*row),
            tasks={int(task): TaskCounts(**_fields(*part)) for task, part in tasks.items()},
            metrics=more,
        )
        for component, (row, tasks, more) in components.items()
    }
    return WindowInfo(name, secs, found, _latency(complete))


def _fields(counters: list[int], latencies: list[Any], busy: float, streams: list[Any]) -> dict[str, Any]:
    return {
        **dict(zip(COUNTERS, counters, strict=True)),
        **{name: _latency(row) for name, row in zip(_LATENCIES, latencies, strict=True)},
        "busy_secs": busy,
        "streams": tuple(_stream(*row) for row in streams),
    }


def _latency(row: list[float] | None) -> LatencyInfo | None:
    return None if row is None else LatencyInfo(*row)


def _stream(
    stream: str, source: str, counters: list[int], execute: float | None, process: float | None, complete: float | None
) -> StreamCounts:
    counted = dict(zip(COUNTERS, counters, strict=True))
    return StreamCounts(stream, source, **counted, execute_ms=execute, process_ms=process, complete_ms=complete)
