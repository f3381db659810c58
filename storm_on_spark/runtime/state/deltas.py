"""Deltas: the difference between two snapshots, byte for byte.

A bolt with a large attribute, a `Counter` of half a million keys for example, changes little of it in a micro-batch.
Written whole, all of its bytes would pass through the JVM into the state store. So a snapshot that resembles the one
before is stored as the difference.

This module does not know what the bytes mean. A pickle of the same attributes a micro-batch later has most of its bytes
in the same order; where a number became longer or a key was added, what follows is shifted. So a delta is made of runs
of the old bytes, of new bytes between them, and of single bytes that are written over both. Which runs are found
matters to the size of a delta only: whatever they are, the single bytes make it exact, and a checksum of the result
says so.

    version u8, runs u32, new bytes u32, single bytes u32, size before u64, size after u64, crc32 of the result u32
    runs     (start among the old bytes, or -1 for the next of the new ones; length) i64 each
    new      bytes
    single   positions in the result (see `packing`), then a byte for each
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from storm_on_spark.api.errors import CheckpointError
from storm_on_spark.api.text.wording import other_format
from storm_on_spark.runtime.codec.packing import pack_ids, unpack_ids

_VERSION = 1
_HEAD = struct.Struct("<BIIIQQI")
_RUN = struct.Struct("<qq")
_LEAST = 1 << 14
"""The size of the smallest snapshot for which a delta is searched; smaller ones are written whole."""
_SHARE = 8
"""The largest size of a delta, as a part of the snapshot."""
_WINDOW = 64
"""Bytes that are old or new together."""
_ALIKE, _SIMILAR = 8, 32
"""Bytes of a window that may differ: from where the old bytes are at the right place; from where it is worth something
to have found them. Numbers in a row resemble each other at the wrong place, too."""
_SPAN = 1 << 16
"""Bytes that are compared at a time, and how far away shifted ones are searched."""
_PROBE = 24
"""The length of the byte string that is searched."""
_PROBES = (0, 16, 40, 100, 250, 600)
"""Where they are taken from, behind the first difference; any may hold a change itself."""
_MOST_RUNS = 200
_NEW = -1

_Run = tuple[int, int]
"""Start among the old bytes, or _NEW; length."""


def delta_of(before: bytes, after: bytes) -> bytes | None:
    """Returns the delta from `before` to `after`, for `applied`; None if it is not much smaller than `after`.

    Example:
        >>> before = b"".join(number.to_bytes(4, "little") for number in range(10_000))
        >>> after = before[:20_000] + b"storm" + before[20_000:]
        >>> delta = delta_of(before, after)
        >>> len(delta) < 200, applied(before, delta) == after
        (True, True)
    """
    most = len(after) // _SHARE
    if min(len(before), len(after)) < _LEAST or abs(len(after) - len(before)) > most:
        return None
    runs = _runs(before, after, most)
    if runs is None:
        return None
    new, at = [], 0
    for start, length in runs:
        if start == _NEW:
            new.append(after[at : at + length])
        at += length
    added = b"".join(new)
    wanted = np.frombuffer(after, np.uint8)
    single = np.flatnonzero(_made(before, runs, added) != wanted)
    head = _HEAD.pack(_VERSION, len(runs), len(added), len(single), len(before), len(after), crc32(after))
    places = pack_ids(single.astype(np.uint64))
    delta = b"".join((head, *(_RUN.pack(*run) for run in runs), added, places, wanted[single].tobytes()))
    return delta if len(delta) <= most else None


def applied(before: bytes, delta: bytes) -> bytes:
    """Returns the bytes that `delta_of` was given as `after`.

    Raises:
        CheckpointError: the delta is damaged, of another version or one of other bytes.
    """
    if len(delta) < _HEAD.size:
        raise CheckpointError(f"a delta of {len(delta)} bytes is shorter than its header of {_HEAD.size} bytes")
    version, count, added, single, size_before, size, checksum = _HEAD.unpack_from(delta)
    if version != _VERSION:
        raise CheckpointError(other_format("the delta of a snapshot", version, _VERSION))
    if size_before != len(before):
        raise CheckpointError(
            f"a delta for a snapshot of {size_before} bytes can't be applied to one of {len(before)} bytes"
        )
    view = memoryview(delta)[_HEAD.size :]
    end = _RUN.size * count
    if len(view) < end + added:
        raise CheckpointError(f"a delta of {len(delta)} bytes is cut short: it has {count} runs and {added} new bytes")
    runs: list[_Run] = list(_RUN.iter_unpack(view[:end]))
    new = sum(length for start, length in runs if start == _NEW)
    inside = all(n >= 0 and (start == _NEW or 0 <= start <= size_before - n) for start, n in runs)
    if not inside or new != added or sum(length for _, length in runs) != size:
        raise CheckpointError(f"a delta is damaged: its {count} runs don't make {size} bytes of {size_before}")
    if single > len(view) - end - added:
        raise CheckpointError(f"a delta of {len(delta)} bytes is cut short: it has {single} single bytes")
    made = _made(before, runs, view[end : end + added])
    positions, view = unpack_ids(view[end + added :], single)
    if len(view) != single or (single and int(positions.max()) >= size):
        raise CheckpointError(f"a delta is damaged: its {single} single bytes don't fit in {size} bytes")
    made[positions.astype(np.int64)] = np.frombuffer(view, np.uint8)
    after = made.tobytes()
    if crc32(after) != checksum:
        raise CheckpointError("a delta is damaged, or of another snapshot: what it makes has the wrong checksum")
    return after


def _made(before: bytes, runs: Sequence[_Run], added: bytes | memoryview) -> NDArray[np.uint8]:
    """Returns what the runs make, without the single bytes."""
    parts: list[bytes | memoryview] = []
    old, taken = memoryview(before), 0
    for start, length in runs:
        if start == _NEW:
            parts.append(added[taken : taken + length])
            taken += length
        else:
            parts.append(old[start : start + length])
    return np.frombuffer(bytearray().join(parts), np.uint8)


def _runs(before: bytes, after: bytes, most: int) -> list[_Run] | None:
    """Returns the runs of a delta; None if it would have more than `most` new bytes, or very many runs."""
    old, wanted = np.frombuffer(before, np.uint8), np.frombuffer(after, np.uint8)
    runs: list[_Run] = []
    at = shift = new = 0
    unknown = _WINDOW
    while at < len(after):
        length = _alike(old, wanted, at, shift, _ALIKE)
        if not length:
            other = _shift_at(before, after, at, shift)
            length = _alike(old, wanted, at, other, _ALIKE)
            shift = other if length else shift
        start = at + shift
        if length:
            unknown = _WINDOW
        else:
            # Bytes that are found nowhere are taken in ever larger parts, because each search is slow.
            length = _alike(old, wanted[: at + unknown], at, shift, _SIMILAR)
            if not length:
                start, length, shift = _NEW, min(unknown, len(after) - at), other
                new += length
            unknown *= 2
        last = runs[-1] if runs else (0, 0)
        if start == (_NEW if last[0] == _NEW else sum(last)) and runs:
            runs[-1] = (last[0], last[1] + length)
        else:
            runs.append((start, length))
        at += length
        if new > most or len(runs) > _MOST_RUNS:
            return None
    return runs


def _alike(old: NDArray[np.uint8], wanted: NDArray[np.uint8], at: int, shift: int, most: int) -> int:
    """Returns how many bytes from `at` on are the old ones `shift` further on, but for `most` in each window."""
    done = 0
    while at + shift >= 0 and (size := min(_SPAN, len(wanted) - at - done, len(old) - at - shift - done)) > 0:
        first = at + done
        differ = wanted[first : first + size] != old[first + shift : first + shift + size]
        if np.count_nonzero(differ) > most:
            windows = np.add.reduceat(differ, np.arange(0, size, _WINDOW), dtype=np.uint8)
            other = np.flatnonzero(windows > most)
            if len(other):
                begin = int(other[0]) * _WINDOW
                return done + begin + (int(differ[begin:].argmax()) if done + begin else 0)
        done += size
    return done


def _shift_at(before: bytes, after: bytes, at: int, shift: int) -> int:
    """Returns where the old bytes are, from `at` on, that come next; `shift` if they aren't found."""
    for ahead in _PROBES:
        probe = after[at + ahead : at + ahead + _PROBE]
        expected = max(0, at + ahead + shift)
        if len(probe) == _PROBE:
            behind = before.find(probe, expected, expected + _SPAN)
            ahead_of = before.rfind(probe, max(0, expected - _SPAN), expected + _PROBE)
            found = min(
                (place for place in (behind, ahead_of) if place >= 0), key=lambda n: abs(n - expected), default=-1
            )
            if found >= 0:
                return found - at - ahead
    return shift
