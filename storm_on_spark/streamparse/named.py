"""Named tuples for the values of tuples: types that are made as streams are, and can be pickled all the same."""

from __future__ import annotations

import functools
from collections import namedtuple
from typing import Any


@functools.lru_cache(maxsize=1024)
def named_tuple(name: str, fields: tuple[str, ...]) -> Any:
    """Returns the named tuple type of a stream; a field whose name is not an identifier is read by its position.

    Example:
        >>> import pickle
        >>> values = named_tuple("WordsDefaultTuple", ("word", "count"))("storm", 3)
        >>> values.word, pickle.loads(pickle.dumps(values)).count
        ('storm', 3)
    """
    make: Any = namedtuple  # its fields are known only now
    kind = make(name, fields, rename=True)

    def reduced(self: tuple[Any, ...]) -> Any:
        # By name and fields, since the type is in no module.
        return _restored, (name, fields, tuple(self))

    kind.__reduce__ = reduced
    return kind


def _restored(name: str, fields: tuple[str, ...], values: tuple[Any, ...]) -> Any:
    return named_tuple(name, fields)(*values)
