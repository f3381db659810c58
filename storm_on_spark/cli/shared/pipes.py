"""Output whose reader ends early, as in `storm-spark config | head`, which is not an error."""

from __future__ import annotations

import contextlib
import os
import select
from collections.abc import Iterable, Iterator
from typing import Final, TextIO

_STANDARD: Final = (1, 2)


def is_no_error(error: BaseException, descriptors: Iterable[int] = _STANDARD) -> bool:
    """Returns whether `error` only means that the reader of this command's output has ended."""
    return isinstance(error, BrokenPipeError) and bool(_without_reader(descriptors))


@contextlib.contextmanager
def reader_may_leave(stream: TextIO) -> Iterator[None]:
    """Ends the block when the reader of `stream` has ended, and continues after it."""
    try:
        yield
        stream.flush()
    except BrokenPipeError as error:
        if not is_no_error(error, (stream.fileno(),)):
            raise
        discard((stream.fileno(),))


@contextlib.contextmanager
def output_may_be_cut() -> Iterator[None]:
    """Ends the command with exit code 0 when the reader of its output has ended, having read all that it wanted."""
    try:
        yield
    except BrokenPipeError as error:
        if not is_no_error(error):
            raise
        discard()
        raise SystemExit(0) from None
    except SystemExit as end:
        # rich raises this after it has redirected standard output to nowhere.
        if end.code == 1 and isinstance(end.__context__, BrokenPipeError):
            raise SystemExit(0) from None
        raise


def discard(descriptors: Iterable[int] = _STANDARD) -> None:
    """Discards everything that is still printed if there is no reader."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    try:
        for descriptor in _without_reader(descriptors):
            os.dup2(nowhere, descriptor)
    finally:
        os.close(nowhere)


def _without_reader(descriptors: Iterable[int]) -> list[int]:
    """Returns which of these are pipes whose reader has ended."""
    poll = select.poll()
    for descriptor in descriptors:
        poll.register(descriptor, 0)
    return [descriptor for descriptor, events in poll.poll(0) if events & select.POLLERR]
