"""The windows as a file that outlives a process.

Format: a line of JSON, then packed amounts one after the other, as long as the line says. The line has a version and
the CRC of what follows it.
"""

from __future__ import annotations

import json
from collections import deque
from dataclasses import dataclass
from typing import Any, Final
from zlib import crc32

from storm_on_spark.metrics.amounts import add, pack, unpack
from storm_on_spark.metrics.windows import BUCKETS, Windows

VERSION: Final = 1
_MOST_HEAD: Final = 64 << 10
_MARK: Final = b"storm-metrics "


@dataclass(frozen=True)
class Saved:
    """What a file holds.

    Args:
        windows: what was counted.
        batch: the last micro-batch that is counted. Up to it, a repeated micro-batch is not counted again.
    """

    windows: Windows
    batch: int = -1


def dump(saved: Saved) -> bytes:
    """Returns the bytes of a file.

    Example:
        >>> windows = Windows(0.0)
        >>> windows.add({("split", 3, "emitted", "default", ""): 7}, 100.0)
        >>> found = load(dump(Saved(windows, 4)))
        >>> found.batch, found.windows.sums("600", 100.0)
        (4, {('split', 3, 'emitted', 'default', ''): 7})
    """
    windows = saved.windows
    windows.close_slot()
    parts = [pack(windows.ever)]
    rings: dict[str, Any] = {}
    for name, ring in windows.rings.items():
        rings[name] = {"index": ring.index, "closed": [[index, len(data)] for index, data in ring.closed]}
        parts += [data for _, data in ring.closed]
        parts.append(pack(ring.open))
        rings[name]["open"] = len(parts[-1])
    body = b"".join(parts)
    head = {
        "version": VERSION,
        "crc": crc32(body),
        "began": windows.began,
        "seen": windows.seen,
        "batch": saved.batch,
        "ever": len(parts[0]),
        "rings": rings,
    }
    return _MARK + json.dumps(head).encode() + b"\n" + body


def load(data: bytes) -> Saved:
    """Returns what a file holds.

    Raises:
        ValueError: it is damaged, cut short, or of another version.
    """
    end = data.find(b"\n", 0, _MOST_HEAD)
    if not data.startswith(_MARK) or end < 0:
        raise ValueError("it is not a file of metrics")
    head = json.loads(data[len(_MARK) : end])
    version = head.get("version") if isinstance(head, dict) else None
    if version != VERSION:
        raise ValueError(f"it is of version {version!r}, and this release reads version {VERSION}")
    body = memoryview(data)[end + 1 :]
    if crc32(body) != head["crc"]:
        raise ValueError("it is damaged or cut short: its checksum is wrong")
    try:
        return _loaded(head, body)
    except (KeyError, TypeError) as error:
        raise ValueError(f"it is damaged: {error!r}") from error


def _loaded(head: dict[str, Any], body: memoryview) -> Saved:
    windows = Windows(float(head["began"]))
    windows.seen = float(head["seen"])
    at = 0

    def take(length: int) -> bytes:
        nonlocal at
        at += length
        return bytes(body[at - length : at])

    windows.ever = unpack(take(head["ever"]))
    for name, ring in windows.rings.items():
        known = head["rings"][name]
        ring.index = int(known["index"])
        ring.closed = deque((int(index), take(length)) for index, length in known["closed"][-BUCKETS - 1 :])
        for _, packed in ring.closed:
            add(ring.total, unpack(packed))
        ring.open = unpack(take(known["open"]))
    return Saved(windows, int(head["batch"]))
