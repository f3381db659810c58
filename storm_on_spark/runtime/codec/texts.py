"""Columns of texts, packed.

Most values that topologies send are texts. Pickle remembers each object that it has seen, which takes most of its
time; to pack texts joined into one needs less. If texts repeat, as words do, each different text is sent once and its
number as often as it occurs. That needs fewer bytes, and the reader gets one object, with a known hash, for equal
texts. docs/decisions/optimisations.md says what each form buys.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from storm_on_spark.api.errors import CheckpointError
from storm_on_spark.runtime.values.frozen import Frozen, FrozenColumn, pack_frozen, unpack_frozen

_BETWEEN = "\0"
_LEAST = 256
"""The shortest column that is checked for repeated texts."""
_MOST = 1 << 16
"""The number of different texts of a column that get numbers; a `uint16` can hold them."""
_LONGEST = 256
"""The longest text that gets a number, in characters: numbered texts are kept in memory."""
_MOST_REST = 64
"""The most columns that a sender skips after columns that did not repeat."""
Numbers = NDArray[np.uint16]
NumberedTexts = tuple[bytes, int, bytes]
"""The texts that occur, joined, and the width and bytes of their numbers."""
Packed = list[Any] | bytes | FrozenColumn | NumberedTexts
"""A column as it is pickled: its values, joined texts, values of which some are frozen, or numbered texts.
The last two are tuples of different lengths."""


class TextNumbers(dict[str, int]):
    """Numbers the different texts of one column, in the order in which they occur.

    A column whose texts hardly repeat is not numbered for a while, each time for longer.
    """

    def __init__(self) -> None:
        super().__init__()
        self._texts: list[str] = []
        self._rest = self._next_rest = 0

    def __missing__(self, text: str) -> int:
        number = len(self._texts)
        if number == _MOST or len(text) > _LONGEST or _BETWEEN in text:
            raise OverflowError
        self._texts.append(text)
        self[text] = number
        return number

    def pack(self, column: list[str]) -> NumberedTexts | None:
        """Returns a column as its different texts and their numbers, or None if that does not save bytes."""
        if self._rest:
            self._rest -= 1
            return None
        try:
            numbers = np.fromiter(map(self.__getitem__, column), np.uint16, len(column))
        except OverflowError:
            self._give_up()
            return None
        used = np.flatnonzero(np.bincount(numbers, minlength=len(self._texts)))
        if 2 * len(used) > len(column):
            self._give_up()
            return None
        self._next_rest = 0
        own = np.empty(len(self._texts), np.uint8 if len(used) <= 1 << 8 else np.uint16)
        own[used] = np.arange(len(used))
        texts = self._texts
        joined = _BETWEEN.join([texts[number] for number in used.tolist()])
        return joined.encode("utf-8", "surrogatepass"), own.itemsize, own[numbers].tobytes()

    def _give_up(self) -> None:
        self._next_rest = min(max(1, 2 * self._next_rest), _MOST_REST)
        self._rest = self._next_rest
        if len(self._texts) == _MOST:
            self.clear()
            self._texts.clear()


def pack_column(column: list[Any], numbers: TextNumbers | None = None) -> Packed:
    r"""Returns a column of texts as bytes, any other as it is.

    Args:
        column: the values.
        numbers: of the texts that this column has had before.

    Example:
        >>> pack_column(["storm", "spark"]), pack_column([1, "spark"])
        (b'storm\x00spark', [1, 'spark'])
        >>> texts, width, each = pack_column(["storm", "spark"] * 500, TextNumbers())
        >>> texts, width, len(each), unpack_column((texts, width, each), 1000)[:3]
        (b'storm\x00spark', 1, 1000, ['storm', 'spark', 'storm'])
    """
    types = set(map(type, column))
    if types != {str}:
        return pack_frozen(column) if Frozen in types else column
    if numbers is not None and len(column) >= _LEAST and (packed := numbers.pack(column)) is not None:
        return packed
    joined = _BETWEEN.join(column)
    if joined.count(_BETWEEN) != len(column) - 1:
        return column
    return joined.encode("utf-8", "surrogatepass")


def unpack_column(packed: Packed, size: int) -> list[Any]:
    """Returns the values of a column.

    Raises:
        CheckpointError: it is damaged.
    """
    if isinstance(packed, list):
        return packed
    if isinstance(packed, bytes):
        return packed.decode("utf-8", "surrogatepass").split(_BETWEEN)
    if len(packed) == 2:
        return unpack_frozen(packed)
    texts = np.array(packed[0].decode("utf-8", "surrogatepass").split(_BETWEEN), dtype=object)
    values: list[Any] = texts[_numbers(packed, len(texts), size)].tolist()
    return values


def unpack_to_arrow(packed: Packed, size: int) -> pa.Array:
    """Returns the values of a column as an Arrow array; of texts without an object for each.

    Raises:
        pyarrow.ArrowInvalid: they have no common Arrow type.
        CheckpointError: the column is damaged.
    """
    if isinstance(packed, list):
        return pa.array(packed)
    assert len(packed) != 2 or isinstance(packed, bytes), "frozen values are thawed by row"
    joined = packed if isinstance(packed, bytes) else packed[0]
    try:
        joined.decode("utf-8")
    except UnicodeDecodeError:  # half of a pair of surrogates
        return pa.array(unpack_column(packed, size))
    texts = _arrow_texts(joined)
    if isinstance(packed, bytes):
        return texts
    return texts.take(pa.array(_numbers(packed, len(texts), size)))


def _arrow_texts(joined: bytes) -> pa.StringArray:
    ends = np.flatnonzero(np.frombuffer(joined, np.uint8) == 0)
    offsets = np.empty(len(ends) + 2, np.int32)
    offsets[0] = 0
    offsets[1:-1] = ends - np.arange(len(ends))
    offsets[-1] = len(joined) - len(ends)
    data = joined.replace(_BETWEEN.encode(), b"")
    return pa.StringArray.from_buffers(len(ends) + 1, pa.py_buffer(offsets), pa.py_buffer(data))


def _numbers(packed: NumberedTexts, texts: int, size: int) -> NDArray[Any]:
    _, width, each = packed
    numbers = np.frombuffer(each, np.uint8 if width == 1 else np.uint16)
    if len(numbers) != size or (size and int(numbers.max()) >= texts):
        raise CheckpointError(f"a chunk of {size} tuples has {len(numbers)} numbers of {texts} texts")
    return numbers
